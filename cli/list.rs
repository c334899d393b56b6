//! `list`: what there is to choose from.

use clap::Args;

use crate::exit::{Exit, failure};

/// List what there is to choose from
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        Err(failure(Exit::Internal, format!("nothing to list yet (json: {})", self.json)))
    }
}
