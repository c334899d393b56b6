//! `check`: judges a recorded history.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Exit, failure};

/// Judge a recorded history
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A history, a run directory, or - for standard input
    path: PathBuf,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let Self { path, json } = self;
        Err(failure(Exit::Internal, format!("cannot check {} yet (json: {json})", path.display())))
    }
}
