//! `worker`: a client process, driven by its runner.

use clap::Args;

use crate::exit::{Exit, OrExit};

/// A client process of a run (speaks with its runner over stdin and stdout)
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Worker {}

impl Worker {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        // One thread: what a client does takes place in one order, and a reply wakes nobody else.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(fencepost_workloads::worker::run());
        // A stuck transaction must not keep the process from ending.
        runtime.shutdown_background();
        ended.or_exit(Exit::Internal)?;
        Ok(Exit::Expected)
    }
}
