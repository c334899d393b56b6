//! `check`: judges a recorded history. The same code as during the run, on the same events.

use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use fencepost_checker::{
    plan::{Expectation, Plan},
    readers::{self, Checked, ReadError},
};
use fencepost_results::{expectation, store::RunDir};

use crate::{
    exit::{Exit, failure},
    output, told,
};

/// Judge a recorded history
///
/// Reads a history and says what it proves. Given the directory of a run, its plan is taken into account and
/// its verdict.json renewed. The exit code is that of the judgement.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost check results/store/latest
  fencepost check history.jsonl --json | jq .anomalies
  fencepost check - < results/store/latest/witness-1.jsonl")]
pub(crate) struct Check {
    /// A history, the directory of a run, or - for standard input
    #[arg(value_name = "FILE|DIR|-")]
    path: PathBuf,
    /// Print the verdict as JSON on standard output
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let (checked, plan) = self.judge()?;
        let mut err = output::stderr();
        for note in &checked.notes {
            writeln!(err, "note: {note}")?;
        }
        let expectation = plan.map(|plan| plan.expectation).unwrap_or_default();
        self.print(&checked, &expectation)
    }

    fn judge(&self) -> anyhow::Result<(Checked, Option<Plan>)> {
        if self.path == Path::new("-") {
            return Ok((read(io::stdin().lock(), None, "standard input")?, None));
        }
        if self.path.is_dir() {
            return judge_run(&self.path);
        }
        Ok((read_file(&self.path, None)?, None))
    }

    fn print(&self, checked: &Checked, expectation: &Expectation) -> anyhow::Result<Exit> {
        let verdict = &checked.verdict;
        let judgement = expectation::judge(verdict, expectation);
        let mut out = output::stdout();
        if self.json {
            serde_json::to_writer_pretty(&mut out, verdict)?;
            writeln!(out)?;
        } else {
            told::tell(&mut out, verdict, &judgement)?;
        }
        out.flush()?;
        Ok(judgement.outcome.into())
    }
}

/// Judges a run again, by its plan. Its verdict is renewed if the directory is one of ours: has a plan.
fn judge_run(path: &Path) -> anyhow::Result<(Checked, Option<Plan>)> {
    let run = RunDir::open(path)?;
    let plan = run.read_plan()?;
    let checked = read_file(&run.history_path(), plan.as_ref())?;
    if plan.is_some()
        && let Err(error) = run.write_verdict(&checked.verdict)
    {
        // An archive may be read-only; what it proves is the same.
        writeln!(output::stderr(), "warning: verdict.json was not renewed: {error}")?;
    }
    Ok((checked, plan))
}

fn read_file(path: &Path, plan: Option<&Plan>) -> anyhow::Result<Checked> {
    let cannot = |error: io::Error| failure(Exit::Usage, format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    read(BufReader::new(file), plan, &path.display().to_string())
}

fn read(reader: impl io::BufRead, plan: Option<&Plan>, name: &str) -> anyhow::Result<Checked> {
    readers::check(reader, plan).map_err(|error| {
        let exit = if matches!(error, ReadError::Io { .. }) { Exit::Usage } else { Exit::Malformed };
        failure(exit, format!("{name}: {error}"))
    })
}
