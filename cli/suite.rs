//! `suite`: many tests with expectations, cell by cell, each a `fencepost run` of its own.

mod child;
mod seek;

use std::{
    fs,
    io::{IsTerminal as _, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use fencepost_results::{
    expectation::Outcome,
    store::{self, DEFAULT_STORE, Store},
    suite::{
        self,
        cell::{self, Cell},
        file::SuiteFile,
        pattern,
        result::{CellResult, CellState, SuiteResult},
        threshold::Threshold,
    },
    words,
};
use fencepost_workloads::LOCKS;

use self::{child::Runner, seek::Seeker};
use crate::{
    exit::{Exit, OrExit as _, failure},
    output,
};

/// Run many tests with expectations
///
/// A suite file names locks, workloads, faults and fences, and what is expected of their combinations. Every cell
/// is a run of its own. Goes on after failures; ends with the code of the worst cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost suite suites/smoke.toml
  fencepost suite suites/known-bad.toml --only 'redis*' --dry-run
  fencepost suite suites/smoke.toml --resume results/store/latest")]
pub(crate) struct Suite {
    /// The suite file
    file: PathBuf,
    /// Only the cells whose name has this in it, or matches it with * for any text; may be given several times
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Print the cells and their command lines; run nothing
    #[arg(long)]
    dry_run: bool,
    /// A cell that this machine cannot run fails instead of being skipped
    #[arg(long)]
    no_skip: bool,
    /// The directory of an earlier run of this suite: what was judged there is taken over, the rest is run
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Where the suite's directory lands
    #[arg(long, default_value = DEFAULT_STORE, value_name = "DIR")]
    store: PathBuf,
    /// Print suite.json on standard output, all else on standard error
    #[arg(long)]
    json: bool,
}

impl Suite {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        let (file, cells) = self.read()?;
        if self.dry_run {
            return show(&file, &cells);
        }
        let dir = self.directory(&file)?;
        let mut result = self.begin(&file, cells, &dir)?;
        result.write(&dir)?;
        let runner = Runner::new(&dir)?;
        let interrupted = self.run_cells(&file, &mut result, &dir, &runner)?;
        self.conclude(&result, &dir)?;
        if interrupted {
            let text = format!("interrupted; go on with: --resume {}", dir.display());
            return Err(failure(Exit::Interrupted, text));
        }
        Ok(Exit::of(result.code()))
    }

    /// The suite and its cells, each with its number in the file.
    fn read(&self) -> anyhow::Result<(SuiteFile, Vec<(usize, Cell)>)> {
        let name = self.file.display();
        let text = fs::read_to_string(&self.file)
            .map_err(|error| failure(Exit::Usage, format!("cannot read {name}: {error}")))?;
        let wrong = |error| failure(Exit::Usage, format!("{name}: {error}"));
        let (file, warnings) = SuiteFile::parse(&text).map_err(wrong)?;
        for warning in warnings {
            writeln!(output::stderr(), "warning: {name}: {warning}")?;
        }
        let locks: Vec<_> = LOCKS.iter().map(|lock| lock.item().name).collect();
        let cells: Vec<_> = (1..).zip(cell::expand(&file, &locks).map_err(wrong)?).collect();
        let meant = |cell: &Cell| self.only.iter().any(|pattern| pattern::matches(pattern, &cell.name));
        let chosen: Vec<_> =
            cells.iter().filter(|(_, cell)| self.only.is_empty() || meant(cell)).cloned().collect();
        if chosen.is_empty() {
            let text = format!("--only {} matches no cell; see --dry-run", self.only.join(" "));
            return Err(failure(Exit::Usage, text));
        }
        Ok((file, chosen))
    }

    fn directory(&self, file: &SuiteFile) -> anyhow::Result<PathBuf> {
        match &self.resume {
            None => Ok(Store::open(&self.store)?.create_suite(&store::now(), &file.name)?),
            Some(dir) => {
                // Through `latest`, a newer suite would take this one's place.
                let dir = fs::canonicalize(dir).map_err(|error| {
                    failure(Exit::Usage, format!("cannot resume {}: {error}", dir.display()))
                })?;
                Ok(dir)
            }
        }
    }

    fn begin(&self, file: &SuiteFile, cells: Vec<(usize, Cell)>, dir: &Path) -> anyhow::Result<SuiteResult> {
        let mut result = SuiteResult {
            fencepost: fencepost_checker::history::FORMAT_VERSION,
            name: file.name.clone(),
            description: file.description.clone(),
            started_at: store::now(),
            command: format!("fencepost suite {}", self.file.display()),
            cells: cells.into_iter().map(|(number, cell)| CellResult::new(number, cell)).collect(),
        };
        if self.resume.is_some() {
            let earlier = SuiteResult::read(dir)?.ok_or_else(|| {
                failure(
                    Exit::Usage,
                    format!("cannot resume {}: no {} in it", dir.display(), SuiteResult::FILE),
                )
            })?;
            result.started_at.clone_from(&earlier.started_at);
            result.take_over(&earlier);
        }
        Ok(result)
    }

    /// Runs what is not judged yet, then again what breaches a threshold. True: it was interrupted.
    fn run_cells(
        &self,
        file: &SuiteFile,
        result: &mut SuiteResult,
        dir: &Path,
        runner: &Runner,
    ) -> anyhow::Result<bool> {
        let total = file.total().or_exit(Exit::Usage)?;
        let begun = Instant::now();
        let seeker =
            Seeker { runner, no_skip: self.no_skip, on_unknown: file.unknown, retries: file.retries };
        let mut progress =
            Progress { number: 0, all: result.cells.len(), live: std::io::stderr().is_terminal() };
        for place in 0..result.cells.len() {
            progress.number = place + 1;
            if result.cells[place].state != CellState::NotRun {
                progress.end(&result.cells[place], " (earlier)")?;
                continue;
            }
            if total.is_some_and(|total| begun.elapsed() > total) {
                result.cells[place].reasons = vec!["the suite's time was over".to_owned()];
                continue;
            }
            progress.begin(&result.cells[place])?;
            let interrupted = seeker.seek(&mut result.cells[place])?;
            if interrupted {
                note_interruption(&mut result.cells[place..]);
            }
            result.write(dir)?;
            if interrupted {
                return Ok(true);
            }
            progress.end(&result.cells[place], "")?;
        }
        let interrupted = check_thresholds(file, result, &seeker, dir)?;
        result.write(dir)?;
        Ok(interrupted)
    }

    fn conclude(&self, result: &SuiteResult, dir: &Path) -> anyhow::Result<()> {
        let mut err = output::stderr();
        for warning in suite::write_outputs(result, dir) {
            writeln!(err, "warning: {warning}")?;
        }
        if self.json {
            tell(&mut err, result, dir)?;
            let mut out = output::stdout();
            serde_json::to_writer_pretty(&mut out, result)?;
            writeln!(out)?;
            out.flush()?;
        } else {
            let mut out = output::stdout();
            tell(&mut out, result, dir)?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Says of the cells from the interrupted one on why they were not run.
fn note_interruption(cells: &mut [CellResult]) {
    let mut why = "interrupted in the middle of its run";
    for cell in cells.iter_mut().filter(|cell| cell.state == CellState::NotRun) {
        cell.reasons = vec![why.to_owned()];
        why = "the suite was interrupted before its turn";
    }
}

/// The cells, and how each is run.
fn show(file: &SuiteFile, cells: &[(usize, Cell)]) -> anyhow::Result<Exit> {
    let mut out = output::stdout();
    for (_, cell) in cells {
        writeln!(out, "{}", cell.name)?;
        let words: Vec<_> = cell.arguments(cell.seed).iter().map(|word| crate::run::quote(word)).collect();
        writeln!(out, "    fencepost {}", words.join(" "))?;
    }
    let time: Duration = cells.iter().map(|(_, cell)| cell.time).sum();
    writeln!(
        out,
        "{}: {}, about {} s if each is run once",
        file.name,
        words::number_of(cells.len() as u64, "cell"),
        time.as_secs()
    )?;
    out.flush()?;
    Ok(Exit::Expected)
}

/// Judges by the thresholds; a cell in breach is run again, as often as the suite allows.
fn check_thresholds(
    file: &SuiteFile,
    result: &mut SuiteResult,
    seeker: &Seeker<'_>,
    dir: &Path,
) -> anyhow::Result<bool> {
    for threshold in &file.thresholds {
        let baseline = baseline(threshold, result, dir);
        for cell in &mut result.cells {
            let passed = cell.state == CellState::Judged { outcome: Outcome::Expected };
            if !passed || !threshold.binds(&cell.cell.name) {
                continue;
            }
            let mut retries = file.retries;
            while let Some(breach) =
                child::verdict_of(dir, cell).and_then(|verdict| threshold.breach(&verdict, baseline.as_ref()))
            {
                if retries == 0 {
                    cell.state = CellState::Judged { outcome: Outcome::Missing };
                    cell.reasons.push(breach);
                    break;
                }
                retries -= 1;
                if seeker.again(cell)? {
                    return Ok(true);
                }
                if cell.state != (CellState::Judged { outcome: Outcome::Expected }) {
                    break;
                }
            }
        }
    }
    Ok(false)
}

fn baseline(
    threshold: &Threshold,
    result: &SuiteResult,
    dir: &Path,
) -> Option<fencepost_checker::verdict::Verdict> {
    let name = threshold.baseline.as_deref()?;
    let cell = result.cells.iter().find(|cell| pattern::matches(name, &cell.cell.name))?;
    child::verdict_of(dir, cell)
}

/// The matrix, what is not as it should be, and where it all is.
fn tell(out: &mut impl Write, result: &SuiteResult, dir: &Path) -> std::io::Result<()> {
    writeln!(out, "\n{}", suite::matrix_text(result))?;
    for cell in result.cells.iter().filter(|cell| cell.counts()) {
        writeln!(out, "{}: {}: {}", cell.word(), cell.cell.name, cell.remark())?;
        if let Some(run) = cell.run() {
            writeln!(out, "    {}", dir.join(run).display())?;
        }
    }
    writeln!(out, "{}", result.totals())?;
    writeln!(out, "{}", dir.display())
}

/// One line a cell.
struct Progress {
    number: usize,
    all: usize,
    /// Standard error is a terminal: a line can be written over.
    live: bool,
}

impl Progress {
    fn begin(&self, cell: &CellResult) -> std::io::Result<()> {
        if self.live {
            let mut err = output::stderr();
            write!(err, "[{}/{}] {} …", self.number, self.all, cell.cell.name)?;
            err.flush()?;
        }
        Ok(())
    }

    fn end(&self, cell: &CellResult, how: &str) -> std::io::Result<()> {
        let mut err = output::stderr();
        let clear = if self.live { "\r\u{1b}[K" } else { "" };
        let seconds = cell.took_ms() as f64 / 1e3;
        let mut remark = cell.remark();
        if let (true, Some(reason)) = (cell.is_quarantined(), &cell.cell.quarantine) {
            remark = format!("{reason}; {}: {remark}", cell.came_to());
        }
        let colon = if remark.is_empty() { "" } else { ": " };
        let (number, all, name, word) = (self.number, self.all, &cell.cell.name, cell.word());
        writeln!(err, "{clear}[{number}/{all}] {name}: {word}{how} in {seconds:.1} s{colon}{remark}")
    }
}
