//! `run`: one test.

use std::{io::Write as _, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use fencepost_checker::{
    history::FORMAT_VERSION,
    plan::{Drive, Expectation, OnLost, Plan, Span, Vacuity},
    registry::Choice,
};
use fencepost_nemesis::{fault::PlannedFault, quantity, sandbox::Isolation};
use fencepost_results::{expectation, store::DEFAULT_STORE, words};
use fencepost_workloads::settings;

use crate::{
    exit::{Exit, OrExit},
    one_test::OneTest,
    output,
};

/// Run one test of a lock
///
/// Starts the lock's servers and a protected resource, lets clients work under the lock, strikes faults, and
/// judges what was recorded. Every name takes options: NAME?option=value&option=value; see `fencepost list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost run
  fencepost run --lock redis --workload daily-report --nemesis pause-holder
  fencepost run --lock redis --workload daily-report --nemesis pause-holder --fence token --seed 7
  fencepost run --lock 'redis?release=del' --nemesis 'pause-holder?at=release' --require unnoticed-loss
  fencepost run --lock none --stop-on-violation --json | jq .summary")]
pub(crate) struct Run {
    /// The lock, with options
    #[arg(long, default_value = "sqlite", value_name = "NAME?OPTIONS")]
    lock: Choice,
    /// The workload, with options
    #[arg(long, default_value = "counter", value_name = "NAME?OPTIONS")]
    workload: Choice,
    /// A fault, with options; may be given several times
    #[arg(long, default_value = "none", value_name = "NAME?OPTIONS")]
    nemesis: Vec<Choice>,
    /// How the resource tells rightful accesses from stale ones
    #[arg(long, default_value = "none", value_name = "NAME?OPTIONS")]
    fence: Choice,
    /// The protected resource, with options
    #[arg(long, default_value = "service", value_name = "NAME?OPTIONS")]
    resource: Choice,
    /// Client processes
    #[arg(long, default_value_t = 5)]
    clients: u32,
    /// Tasks in each client that share its lock object
    #[arg(long, default_value_t = 1)]
    actors: u32,
    /// Locks, and as many keys
    #[arg(long, default_value_t = 1)]
    keys: u32,
    /// The lease's length
    #[arg(long, default_value = "1s", value_parser = length)]
    ttl: Duration,
    /// How long the workload runs
    #[arg(long, default_value = "10s", value_parser = length)]
    time: Duration,
    /// The seed of every random choice; by default a new one, printed
    #[arg(long)]
    seed: Option<u64>,
    /// From acquire to write
    #[arg(long, default_value = "20ms..60ms", value_parser = quantity::span, value_name = "MIN..MAX")]
    hold: Span,
    /// Between two tenures of a client
    #[arg(long, default_value = "1ms..5ms", value_parser = quantity::span, value_name = "MIN..MAX")]
    think: Span,
    /// How long an acquire waits for a busy lock
    #[arg(long, default_value = "0", value_parser = length)]
    wait: Duration,
    /// After a busy lock, before the next try
    #[arg(long, default_value = "50ms", value_parser = length)]
    retry: Duration,
    /// What a client does when it is told that its lock is lost
    #[arg(long, value_enum, default_value_t)]
    on_lost: OnLostArg,
    /// Who decides on each step: the worker at full speed, or the runner, one verb at a time
    #[arg(long, value_enum, default_value_t)]
    drive: DriveArg,
    /// End the run at the first certain violation
    #[arg(long)]
    stop_on_violation: bool,
    /// Print the plan and what the faults will do; start nothing
    #[arg(long)]
    dry_run: bool,
    /// An anomaly that fails the run; violations do unless allowed
    #[arg(long, value_name = "ID")]
    forbid: Vec<String>,
    /// An anomaly that does not fail the run; '*' allows all
    #[arg(long, value_name = "ID")]
    allow: Vec<String>,
    /// An anomaly that must be found
    #[arg(long, value_name = "ID")]
    require: Vec<String>,
    /// How long a free lock may stay unavailable before it counts as stuck
    #[arg(long, default_value = "500ms", value_parser = length)]
    grace: Duration,
    /// Where run directories land
    #[arg(long, default_value = DEFAULT_STORE, value_name = "DIR")]
    store: PathBuf,
    /// How the run is kept apart from the machine
    #[arg(long, value_enum, default_value_t)]
    isolation: IsolationArg,
    /// Panic in the middle of the run: what is left behind is tested with it
    #[arg(long, hide = true, value_parser = length)]
    panic_after: Option<Duration>,
    /// Print the verdict as JSON on standard output, all else on standard error
    #[arg(long)]
    json: bool,
}

fn length(text: &str) -> Result<Duration, String> {
    quantity::duration(text, None)
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OnLostArg {
    /// It stops before its next access
    #[default]
    Stop,
    /// It goes on
    Ignore,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DriveArg {
    /// The worker, waiting only where a fault asks
    #[default]
    Free,
    /// The runner
    Stepwise,
}

/// See [`Isolation`].
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum IsolationArg {
    /// A namespace where the machine allows it, else a reaper process
    #[default]
    Auto,
    /// A reaper process
    Reaper,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Self {
        match arg {
            IsolationArg::Auto => Self::Auto,
            IsolationArg::Reaper => Self::Reaper,
        }
    }
}

impl Run {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let plan = self.plan();
        let setup = settings::resolve(&plan).or_exit(Exit::Usage)?;
        expectation::validate(&plan.expectation).or_exit(Exit::Usage)?;
        if self.dry_run {
            return self.show_plan(&plan, &setup.faults);
        }
        let one = OneTest {
            store: self.store,
            isolation: self.isolation.into(),
            json: self.json,
            panic_after: self.panic_after,
        };
        one.carry_out(plan, setup)
    }

    fn plan(&self) -> Plan {
        let nemeses: Vec<_> = self.nemesis.iter().filter(|choice| choice.name != "none").cloned().collect();
        let names: Vec<_> = nemeses.iter().map(|choice| choice.name.as_str()).collect();
        let faults = if names.is_empty() { "none".to_owned() } else { names.join("+") };
        let seed = self.seed.unwrap_or_else(new_seed);
        Plan {
            fencepost: FORMAT_VERSION,
            name: format!("{}/{}/{faults}", self.lock.name, self.workload.name),
            started_at: fencepost_results::store::now(),
            command: self.command(seed),
            seed,
            lock: self.lock.clone(),
            workload: self.workload.clone(),
            nemeses,
            fence: self.fence.to_string(),
            resource: self.resource.clone(),
            clients: self.clients,
            actors: self.actors,
            keys: self.keys,
            ttl_ms: ms(self.ttl),
            time_ms: ms(self.time),
            hold: self.hold,
            think: self.think,
            wait_ms: ms(self.wait),
            retry_ms: ms(self.retry),
            on_lost: match self.on_lost {
                OnLostArg::Stop => OnLost::Stop,
                OnLostArg::Ignore => OnLost::Ignore,
            },
            drive: match self.drive {
                DriveArg::Free => Drive::Free,
                DriveArg::Stepwise => Drive::Stepwise,
            },
            stop_on_violation: self.stop_on_violation,
            grace_ms: ms(self.grace),
            vacuity: Vacuity::Judged,
            expectation: Expectation {
                forbid: self.forbid.clone(),
                allow: self.allow.clone(),
                require: self.require.clone(),
            },
            versions: Default::default(),
            capabilities: Default::default(),
            machine: Default::default(),
        }
    }

    /// The command line that runs the same test again.
    fn command(&self, seed: u64) -> String {
        let mut words: Vec<String> = std::env::args().skip(1).collect();
        if self.seed.is_none() {
            words.extend(["--seed".to_owned(), seed.to_string()]);
        }
        let quoted = words.iter().map(|word| quote(word));
        std::iter::once("fencepost".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
    }

    fn show_plan(&self, plan: &Plan, faults: &[PlannedFault]) -> anyhow::Result<Exit> {
        let mut out = output::stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, plan)?;
            writeln!(out)?;
            return Ok(Exit::Expected);
        }
        writeln!(out, "{}", plan.name)?;
        let count = |count: u32, noun: &str| words::number_of(count.into(), noun);
        let (clients, actors) = (count(plan.clients, "client"), count(plan.actors, "actor"));
        let clients = format!("{clients} of {actors} on {}", count(plan.keys, "lock"));
        writeln!(out, "  {} on {}, fence {}: {clients}", plan.workload, plan.lock, plan.fence)?;
        let (ttl, time) = (quantity::show(self.ttl), quantity::show(self.time));
        writeln!(out, "  ttl {ttl}, for {time}, seed {}", plan.seed)?;
        for fault in faults {
            writeln!(out, "  {}", fault.describe())?;
        }
        if faults.is_empty() {
            writeln!(out, "  no fault")?;
        }
        writeln!(out, "  at the end everything is healed")?;
        Ok(Exit::Expected)
    }
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A seed short enough to be typed.
fn new_seed() -> u64 {
    const TYPED: u64 = 1_000_000;
    fencepost_nemesis::clock::raw::realtime_ns() / 1000 % TYPED
}

/// Quotes a word for a shell.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("--ttl"), "--ttl");
        assert_eq!(quote("redis?release=del"), "'redis?release=del'");
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}
