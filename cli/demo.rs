//! `demo`: the classic story, without fencing and with it.

use std::{
    io::{BufRead, IsTerminal as _, Write},
    path::PathBuf,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use clap::Args;
use fencepost_checker::{
    history::{Event, FORMAT_VERSION, Function, Kind, Released},
    plan::{Drive, Expectation, OnLost, Plan, Span, Vacuity},
    registry::Choice,
};
use fencepost_nemesis::quantity;
use fencepost_results::{expectation::Outcome, store::DEFAULT_STORE};
use fencepost_workloads::{
    runner::{self, Finished},
    scenarios::{Beat, stopped_holder},
    settings,
};
use tokio::sync::mpsc;

use crate::{
    exit::{Exit, OrExit, failure},
    output,
    run::IsolationArg,
    testing::{self, Ground},
};

/// Watch a holder being stopped past its lease, without fencing and with it
///
/// Two client processes share a lock whose lease is one second. The first is stopped right before its write, the
/// second takes the lock and writes, the first wakes up and writes, too. Then the same with a fencing token.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost demo
  fencepost demo --lock redis
  fencepost demo --pause 800ms      (shorter than the lease: nobody is harmed)
  fencepost demo --step")]
pub(crate) struct Demo {
    /// The lock, with options
    #[arg(long, default_value = "sqlite", value_name = "NAME?OPTIONS")]
    lock: Choice,
    /// How long the first client is stopped, ten minutes at most
    #[arg(long, default_value = "1.5s", value_parser = pause)]
    pause: Duration,
    /// Wait for Enter between the steps
    #[arg(long)]
    step: bool,
    /// Where run directories land
    #[arg(long, default_value = DEFAULT_STORE, value_name = "DIR")]
    store: PathBuf,
    /// How the run is kept apart from the machine
    #[arg(long, value_enum, default_value_t, hide = true)]
    isolation: IsolationArg,
}

fn pause(text: &str) -> Result<Duration, String> {
    let pause = quantity::duration(text, None)?;
    if pause > PAUSE_MAX {
        return Err(format!("nobody waits that long: {} minutes at most", PAUSE_MAX.as_secs() / 60));
    }
    Ok(pause)
}

const PAUSE_MAX: Duration = Duration::from_mins(10);
const TTL: Duration = Duration::from_secs(1);
/// A pause this close to the lease may end before the second client's next try, or after it.
const TOO_CLOSE: Duration = Duration::from_millis(100);
const TITLE: Style = Style::new().bold();
const GOOD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green))).bold();
const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red))).bold();
const DIM: Style = Style::new().dimmed();

/// One telling of the story.
struct Act {
    title: &'static str,
    fence: &'static str,
}

const ACTS: [Act; 2] = [
    Act { title: "Without fencing: the resource takes every write", fence: "none" },
    Act {
        title: "With a fencing token: the resource turns away tokens below the highest it has seen",
        fence: "token",
    },
];

impl Demo {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        for act in &ACTS {
            let setup = settings::resolve(&self.plan(act)).or_exit(Exit::Usage)?;
            testing::check_programs(&setup)?;
        }
        let ground = Ground::prepare(&self.store, self.isolation.into())?;
        let mut paths = Vec::new();
        let mut worst = Outcome::Expected;
        for (number, act) in (1..).zip(&ACTS) {
            let mut out = output::stdout();
            writeln!(out, "{TITLE}{number}. {}{TITLE:#}", act.title)?;
            drop(out);
            let (path, outcome) = self.play(&ground, act)?;
            paths.push(path);
            worst = worst.worse(outcome);
        }
        let mut out = output::stdout();
        writeln!(out, "{DIM}Everything that was recorded, with a picture of it (timeline.svg):{DIM:#}")?;
        for path in paths {
            writeln!(out, "  {}", path.display())?;
        }
        if worst != Outcome::Expected {
            return Err(failure(worst.into(), "the story did not go as it should; look at the runs above"));
        }
        Ok(Exit::Expected)
    }

    /// What must be found: with a pause longer than the lease and without a fence, a stale write; with a shorter one
    /// nothing. Where the two are too close to tell, either ending is as it should be.
    fn expectation(&self, act: &Act) -> Expectation {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        match (self.is_longer_than_lease(), act.fence) {
            _ if self.is_close_to_lease() => Expectation { allow: ids(&["*"]), ..Expectation::default() },
            (true, "none") => {
                Expectation { require: ids(&["stale-write"]), allow: ids(&["*"]), ..Expectation::default() }
            }
            (true, _) => Expectation { require: ids(&["belief-overlap"]), ..Expectation::default() },
            (false, _) => Expectation { forbid: ids(&["belief-overlap"]), ..Expectation::default() },
        }
    }

    fn is_longer_than_lease(&self) -> bool {
        self.pause > TTL
    }

    fn is_close_to_lease(&self) -> bool {
        self.pause.abs_diff(TTL) <= TOO_CLOSE
    }

    fn plan(&self, act: &Act) -> Plan {
        let no_span = Span { min_ms: 0.0, max_ms: 0.0 };
        let ms = |length: Duration| length.as_millis() as u64;
        Plan {
            fencepost: FORMAT_VERSION,
            name: format!("{}/daily-report/pause-holder", self.lock.name),
            started_at: fencepost_results::store::now(),
            command: format!("fencepost demo --lock '{}' --pause {}", self.lock, quantity::show(self.pause)),
            seed: 0,
            lock: self.lock.clone(),
            workload: Choice { name: "daily-report".to_owned(), ..Choice::default() },
            nemeses: vec![Choice { name: "pause-holder".to_owned(), ..Choice::default() }],
            fence: act.fence.to_owned(),
            resource: Choice { name: "service".to_owned(), ..Choice::default() },
            clients: 2,
            actors: 1,
            keys: 1,
            ttl_ms: ms(TTL),
            time_ms: ms(self.pause + TTL),
            hold: no_span,
            think: no_span,
            wait_ms: 0,
            retry_ms: 20,
            on_lost: OnLost::Stop,
            drive: Drive::Stepwise,
            stop_on_violation: false,
            grace_ms: 500,
            vacuity: Vacuity::Scripted,
            expectation: self.expectation(act),
            versions: Default::default(),
            capabilities: Default::default(),
            machine: Default::default(),
        }
    }

    fn play(&self, ground: &Ground, act: &Act) -> anyhow::Result<(PathBuf, Outcome)> {
        let mut plan = self.plan(act);
        let setup = settings::resolve(&plan).or_exit(Exit::Usage)?;
        let run = ground.store.create_run(&plan)?;
        plan.nemeses.clear();
        let request = runner::Run {
            setup,
            history: run.history_path(),
            logs: run.logs_dir(),
            sandbox: std::sync::Arc::clone(&ground.sandbox),
            scratch: ground.scratch(&run),
            interrupt: ground.interrupt()?,
            plan: self.plan(act),
        };
        let (audience, mut beats) = mpsc::unbounded_channel();
        let begun = |plan: &Plan| testing::write_plan(&run, plan);
        let teller = ground.runtime.spawn(async move {
            let mut teller = Teller::default();
            while let Some(beat) = beats.recv().await {
                // Where nobody reads the story is still played.
                let _ = teller.tell(beat);
            }
            teller
        });
        let played =
            ground.runtime.block_on(stopped_holder::play(request, self.pause, self.step, audience, begun));
        let finished = played.map_err(testing::run_error)?;
        let teller = ground.runtime.block_on(teller)?;
        let judgement = testing::conclude(&run, &finished)?;
        if finished.interrupted {
            return Err(failure(
                Exit::Interrupted,
                format!("interrupted; what was recorded is in {}", run.path().display()),
            ));
        }
        teller.sum_up(&finished)?;
        Ok((run.path().to_owned(), judgement.outcome))
    }
}

/// Tells what happens, as it happens.
#[derive(Default)]
struct Teller {
    /// Whose report stands, and the token of the last rightful writer.
    standing: Option<String>,
    stopped: Vec<String>,
    last_accepted: Option<(String, u64)>,
    overtaken: bool,
}

impl Teller {
    fn tell(&mut self, beat: Beat) -> std::io::Result<()> {
        let mut out = output::stdout();
        match beat {
            Beat::Step(event) => self.tell_step(&mut out, &event)?,
            Beat::Stopped { process, at_ns } => {
                writeln!(out, "{} {process} is stopped right before its write (SIGSTOP)", at(at_ns))?;
                self.stopped.push(process);
            }
            Beat::Resumed { process, at_ns } => {
                writeln!(out, "{} {process} wakes up and knows nothing of the time that passed", at(at_ns))?;
            }
            Beat::Pause { next, go_on } => {
                drop(out);
                let input = std::io::stdin();
                let echoes = input.is_terminal();
                wait_for_enter(&mut output::stdout(), &mut input.lock(), echoes, next)?;
                let _ = go_on.send(());
            }
        }
        Ok(())
    }

    fn tell_step(&mut self, out: &mut impl Write, event: &Event<'_>) -> std::io::Result<()> {
        let at = at(event.end.unwrap_or(event.time));
        let (process, value) = (&event.process, &event.value);
        match (&event.f, event.kind) {
            (Function::Acquire, Kind::Ok) => {
                let token = value.token.map(|token| format!(": token {token}")).unwrap_or_default();
                let ttl = value.ttl_ms.map(|ttl| format!(", lease {ttl} ms")).unwrap_or_default();
                self.overtaken |= self.stopped.iter().any(|stopped| stopped != process);
                writeln!(out, "{at} {process} takes the lock{token}{ttl}")
            }
            (Function::Acquire, Kind::Fail) => {
                writeln!(out, "{at} {process} wants the lock: busy, it tries again")
            }
            (Function::Write, Kind::Ok) => {
                self.standing = Some(process.to_string());
                self.last_accepted = Some((process.to_string(), event.attempt.unwrap_or(0)));
                let token = value.token.map(|token| format!(" with token {token}")).unwrap_or_default();
                writeln!(out, "{at} {process} writes its report{token}: {GOOD}ACCEPTED{GOOD:#}")
            }
            (Function::Write, Kind::Fail) => {
                let token = value.token.unwrap_or(0);
                let highest = value.highest_token_before.unwrap_or(0);
                writeln!(
                    out,
                    "{at} {process} writes its report with token {token}: {BAD}REJECTED{BAD:#}, the resource has \
                     seen token {highest}"
                )
            }
            (Function::Release, Kind::Ok) => match value.released {
                Some(Released::Yes) => writeln!(out, "{at} {process} releases the lock"),
                Some(Released::No) => writeln!(
                    out,
                    "{at} {process} releases and is told released:false: the lock has not been its own for a while"
                ),
                _ => writeln!(out, "{at} {process} releases; whether it held the lock nobody says"),
            },
            (f, kind) => writeln!(out, "{at} {process} {f:?}: {kind:?}"),
        }
    }

    fn sum_up(&self, finished: &Finished) -> std::io::Result<()> {
        let mut out = output::stdout();
        let standing = self.standing.as_deref().unwrap_or("nobody");
        let stale = self.stopped.iter().any(|stopped| stopped == standing) && self.overtaken;
        let (style, text) = if stale {
            (BAD, format!("the stale report of {standing} stands at the end: the newer one is gone"))
        } else {
            (GOOD, format!("the report of {standing} stands at the end: nothing is lost"))
        };
        writeln!(out, "          {style}=> {text}{style:#}")?;
        writeln!(out, "          {DIM}{}{DIM:#}\n", finished.verdict.summary)
    }
}

/// Prompts and waits for a line, or the end of the input. Where no terminal echoes the Enter, the prompt's line is
/// ended here.
fn wait_for_enter(
    out: &mut impl Write,
    input: &mut impl BufRead,
    echoes: bool,
    next: &str,
) -> std::io::Result<()> {
    write!(out, "{DIM}            Enter: {next}{DIM:#} ")?;
    out.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    if !(echoes && line.ends_with('\n')) {
        writeln!(out)?;
    }
    out.flush()
}

/// An instant of the run, in a column.
fn at(ns: u64) -> String {
    format!("{:>6} ms ", ns / 1_000_000)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        demo: Demo,
    }

    fn demo(pause: &str) -> Demo {
        Line::try_parse_from(["demo", "--pause", pause]).unwrap_or_else(|error| panic!("{error}")).demo
    }

    #[test]
    fn a_pause_close_to_the_lease_may_end_either_way() {
        for (pause, expects) in [
            ("890ms", true),
            ("900ms", false),
            ("1001ms", false),
            ("1.1s", false),
            ("1.11s", true),
            ("0", true),
        ] {
            for act in &ACTS {
                let Expectation { forbid, require, .. } = demo(pause).expectation(act);
                assert_eq!(!forbid.is_empty() || !require.is_empty(), expects, "{pause} {}", act.fence);
            }
        }
    }

    #[test]
    fn nobody_waits_for_hours() {
        assert_eq!(pause("600s"), Ok(Duration::from_secs(600)));
        for text in ["601s", "11m", "999999h"] {
            assert!(pause(text).is_err_and(|error| error.contains("10 minutes at most")), "{text}");
        }
    }

    #[test]
    fn a_prompt_has_a_line_of_its_own() {
        for (input, echoes, ended) in
            [("\n", true, false), ("\n", false, true), ("", true, true), ("", false, true), ("x", true, true)]
        {
            let mut out = Vec::new();
            wait_for_enter(&mut out, &mut input.as_bytes(), echoes, "c1 wakes up").expect("written");
            let text = String::from_utf8(out).expect("text");
            assert!(text.contains("Enter: c1 wakes up"), "{text}");
            assert_eq!(text.ends_with('\n'), ended, "{input:?} {echoes}");
        }
    }
}
