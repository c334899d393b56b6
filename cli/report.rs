//! `report`: draws what a run directory shows, again.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;
use fencepost_checker::{readers::ReadError, registry};
use fencepost_results::{
    render::{self, FinishedError, OUTPUTS, Output, Warning},
    store::{DEFAULT_STORE, RunDir},
    suite::{self, result::SuiteResult},
};

use crate::{
    exit::{Exit, failure},
    output,
};

/// Draw what a run shows, again
///
/// Reads the directory of a run and writes its pictures, its page, and its summaries into it. Also of a run that
/// goes on, or was killed. The verdict stays what it is. Given the directory of a suite, its matrix and summaries
/// are written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost report
  fencepost report results/store/2026-12-01T02-00-11_redis_daily-report_pause-holder
  fencepost report --format html --format pictures")]
pub(crate) struct Report {
    /// The directory of a run or suite [default: the newest in the store]
    directory: Option<PathBuf>,
    /// Only this format; may be given several times
    #[arg(long, value_name = "NAME", long_help = formats_help())]
    format: Vec<String>,
}

fn formats_help() -> String {
    let formats = OUTPUTS.iter().map(|output| format!("  {:9} {}", output.item.name, output.item.summary));
    format!("Only this format; may be given several times:\n{}", formats.collect::<Vec<_>>().join("\n"))
}

impl Report {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let outputs = chosen(&self.format)?;
        let directory = self.directory.unwrap_or_else(|| Path::new(DEFAULT_STORE).join("latest"));
        if let Some(suite) = SuiteResult::read(&directory)? {
            return finish(&directory, &suite::write_outputs(&suite, &directory));
        }
        let run = RunDir::open(&directory)?;
        let warnings = render::try_render(&run, outputs).map_err(with_code)?;
        finish(run.path(), &warnings)
    }
}

/// Says where it is, and what is missing.
fn finish(directory: &Path, warnings: &[Warning]) -> anyhow::Result<Exit> {
    for warning in warnings {
        writeln!(output::stderr(), "warning: {warning}")?;
    }
    let mut out = output::stdout();
    writeln!(out, "{}", directory.display())?;
    out.flush()?;
    Ok(if warnings.is_empty() { Exit::Expected } else { Exit::Store })
}

fn with_code(error: FinishedError) -> anyhow::Error {
    match error {
        FinishedError::Store(error) => error.into(),
        FinishedError::History { error: ReadError::Io { .. }, .. } => failure(Exit::Usage, error),
        FinishedError::History { .. } => failure(Exit::Malformed, error),
    }
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Output>> {
    if names.is_empty() {
        return Ok(OUTPUTS.iter().collect());
    }
    let find = |name: &String| registry::find("format", OUTPUTS, |output| output.item, name);
    let places = names.iter().map(find).collect::<Result<Vec<_>, _>>();
    let places = places.map_err(|error| failure(Exit::Usage, error))?;
    Ok(places.into_iter().map(|place| &OUTPUTS[place]).collect())
}
