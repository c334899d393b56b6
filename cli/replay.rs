//! `replay`: the test of a run directory once more, with the same plan and seed.

use std::path::{Path, PathBuf};

use clap::Args;
use fencepost_results::store::{DEFAULT_STORE, RunDir, now};
use fencepost_workloads::settings;

use crate::{
    exit::{Exit, OrExit, failure},
    one_test::OneTest,
    run::IsolationArg,
};

/// Run the test of a run directory once more
///
/// Takes plan and seed from its test.json: the same clients, faults and random choices. What the operating system
/// decides, such as which of two clients is faster, is free to differ.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost replay
  fencepost replay results/store/2026-12-01T02-00-11_redis_daily-report_pause-holder")]
pub(crate) struct Replay {
    /// The directory of a run [default: the newest in the store]
    directory: Option<PathBuf>,
    /// Where the new run directory lands
    #[arg(long, default_value = DEFAULT_STORE, value_name = "DIR")]
    store: PathBuf,
    /// How the run is kept apart from the machine
    #[arg(long, value_enum, default_value_t)]
    isolation: IsolationArg,
    /// Print the verdict as JSON on standard output, all else on standard error
    #[arg(long)]
    json: bool,
}

impl Replay {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let directory = self.directory.unwrap_or_else(|| Path::new(DEFAULT_STORE).join("latest"));
        let recorded = RunDir::open(&directory)?.read_plan()?;
        let mut plan = recorded.ok_or_else(|| {
            let text = format!("{} has no test.json: there is no plan to run again", directory.display());
            failure(Exit::Usage, text)
        })?;
        plan.started_at = now();
        plan.versions.clear();
        plan.capabilities.clear();
        let setup = settings::resolve(&plan).or_exit(Exit::Usage)?;
        let one = OneTest {
            store: self.store,
            isolation: self.isolation.into(),
            json: self.json,
            panic_after: None,
        };
        one.carry_out(plan, setup)
    }
}
