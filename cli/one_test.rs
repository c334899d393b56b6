//! One test from plan to exit code: what `run` and `replay` do with a plan.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    time::Duration,
};

use fencepost_checker::plan::Plan;
use fencepost_nemesis::sandbox::Isolation;
use fencepost_results::{expectation::Judgement, store::RunDir};
use fencepost_workloads::{
    runner::{self, Finished, Status},
    settings::Setup,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    exit::{Exit, failure},
    output,
    testing::{self, Ground},
    told,
};

/// How one test is carried out.
#[derive(Debug)]
pub(crate) struct OneTest {
    pub(crate) store: PathBuf,
    pub(crate) isolation: Isolation,
    pub(crate) json: bool,
    pub(crate) panic_after: Option<Duration>,
}

impl OneTest {
    /// Runs a plan, keeps what it recorded, and tells the verdict.
    pub(crate) fn carry_out(&self, plan: Plan, setup: Setup) -> anyhow::Result<Exit> {
        testing::check_programs(&setup)?;
        let ground = Ground::prepare(&self.store, self.isolation)?;
        let run = ground.store.create_run(&plan)?;
        let finished = self.run(&ground, &run, plan, setup)?;
        let judgement = testing::conclude(&run, &finished)?;
        self.report(&run, finished, &judgement)
    }

    fn run(&self, ground: &Ground, run: &RunDir, plan: Plan, setup: Setup) -> anyhow::Result<Finished> {
        let time = Duration::from_millis(plan.time_ms);
        writeln!(output::stderr(), "{}, seed {}, in {}", plan.name, plan.seed, run.path().display())?;
        let request = runner::Run {
            setup,
            history: run.history_path(),
            logs: run.logs_dir(),
            sandbox: std::sync::Arc::clone(&ground.sandbox),
            scratch: ground.scratch(run),
            interrupt: ground.interrupt()?,
            plan,
        };
        if let Some(after) = self.panic_after {
            ground.runtime.spawn(async move {
                tokio::time::sleep(after).await;
                panic!("asked for by --panic-after");
            });
        }
        let mut progress = Progress::new(time);
        let begun = |plan: &Plan| testing::write_plan(run, plan);
        let finished =
            ground.runtime.block_on(runner::run(request, begun, &mut |status| progress.show(status)));
        progress.end();
        finished.map_err(testing::run_error)
    }

    fn report(&self, run: &RunDir, finished: Finished, judgement: &Judgement) -> anyhow::Result<Exit> {
        let mut out = output::stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &finished.verdict)?;
            writeln!(out)?;
            told::tell(&mut output::stderr(), &finished.verdict, judgement)?;
        } else {
            told::tell(&mut out, &finished.verdict, judgement)?;
            writeln!(out, "{}", run.path().display())?;
        }
        out.flush()?;
        if let Some(failure) = finished.failure {
            return Err(testing::run_error(failure));
        }
        if finished.interrupted {
            return Err(failure(
                Exit::Interrupted,
                format!(
                    "interrupted; faults are healed, what was recorded is kept in {}",
                    run.path().display()
                ),
            ));
        }
        Ok(judgement.outcome.into())
    }
}

/// Live on a terminal, a line every few seconds elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    next_line: Duration,
    last: (Duration, u64),
    total: Duration,
}

const LINE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    fn new(total: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(ms(total));
            let style = ProgressStyle::with_template("{bar:20} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, next_line: LINE_EVERY, last: (Duration::ZERO, 0), total }
    }

    fn show(&mut self, status: &Status) {
        if self.bar.is_none() && status.elapsed < self.next_line {
            return;
        }
        let (since, operations) = self.last;
        let seconds = status.elapsed.saturating_sub(since).as_secs_f64().max(0.001);
        let rate = status.operations.saturating_sub(operations) as f64 / seconds;
        self.last = (status.elapsed, status.operations);
        let faults =
            if status.faults.is_empty() { String::new() } else { format!(", {}", status.faults.join(" ")) };
        let found: Vec<_> = status.found.iter().map(|(id, count)| format!("{id} {count}x")).collect();
        let found = if found.is_empty() { String::new() } else { format!(", found: {}", found.join(" ")) };
        let elapsed = status.elapsed.min(self.total).as_secs_f64();
        let text = format!(
            "{elapsed:.0} s of {:.0} s, {rate:.0} operations/s{faults}{found}",
            self.total.as_secs_f64()
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(ms(status.elapsed));
                bar.set_message(text);
            }
            None => {
                self.next_line += LINE_EVERY;
                let _ = writeln!(output::stderr(), "{text}");
            }
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
