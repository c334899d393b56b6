//! `doctor`: what can this machine run?

use clap::Args;

use crate::exit::{Exit, failure};

/// Tell what this machine can run, and how to install the rest
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        Err(failure(Exit::Internal, format!("nothing to examine yet (json: {})", self.json)))
    }
}
