//! `resource`: the protected resource's own process.

use std::path::PathBuf;

use clap::Args;
use fencepost_workloads::resources::service::server::{ServiceRules, serve};

use crate::exit::{Exit, OrExit};

/// The protected resource of a run (serves on a port of 127.0.0.1 until killed)
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Resource {
    /// The port of 127.0.0.1
    #[arg(long)]
    port: u16,
    /// The database file
    #[arg(long)]
    database: PathBuf,
    /// The fence's name
    #[arg(long)]
    fence: String,
    /// Where the fence's highest token lives
    #[arg(long)]
    storage: String,
    /// When the fence checks
    #[arg(long)]
    check: String,
}

impl Resource {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let rules = ServiceRules { fence: self.fence, storage: self.storage, check: self.check };
        serve(self.port, &self.database, &rules).or_exit(Exit::Backend)?;
        Ok(Exit::Expected)
    }
}
