//! `check`: judges a recorded history. The same code as during the run, on the same events.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _, Write},
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use fencepost_checker::{
    check::Checker,
    history::Header,
    plan::{Expectation, Plan},
    readers::{self, Checked, CopyError, ReadError},
    registry::Choice,
    search::Budget,
};
use fencepost_nemesis::quantity;
use fencepost_results::{expectation, store::RunDir};

use crate::{
    exit::{Exit, OrExit as _, failure},
    output, told,
};

/// Judge a recorded history
///
/// Reads a history, ours or Jepsen's (EDN), and says what it proves. Given the directory of a run, its plan is taken
/// into account and its verdict.json renewed. The exit code is that of the judgement.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost check results/store/latest
  fencepost check history.jsonl --json | jq .anomalies
  fencepost check history.edn --model 'semaphore?permits=3'
  fencepost check history.jsonl --to edn > history.edn
  fencepost check - < results/store/latest/witness-1.jsonl")]
pub(crate) struct Check {
    /// A history, the directory of a run, or - for standard input
    #[arg(value_name = "FILE|DIR|-")]
    path: PathBuf,
    /// Ask for an order of the operations that this model allows, too; see `fencepost list models`
    #[arg(long, value_name = "NAME?OPTION=VALUE")]
    model: Option<Choice>,
    /// The values of a history of Jepsen are [key value]: each key is a lock or register of its own
    #[arg(long)]
    keyed: bool,
    /// Give up the search under the model after so many configurations
    #[arg(long, value_name = "COUNT", default_value_t = Budget::default().configurations)]
    budget: u64,
    /// Give up the search under the model when it needs more memory, MiB
    #[arg(long, value_name = "MIB", default_value_t = Budget::default().bytes >> 20, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory: u64,
    /// Give up the search under the model after this time; Ctrl-C gives it up at once
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = length)]
    limit: Duration,
    /// Write the history in another format instead of judging it
    #[arg(long, value_enum, conflicts_with_all = ["model", "json"])]
    to: Option<Format>,
    /// Print the verdict as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// A format of histories.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Jepsen's
    Edn,
}

fn length(text: &str) -> Result<Duration, String> {
    quantity::duration(text, None)
}

impl Check {
    /// Runs the command.
    pub(crate) fn execute(self) -> anyhow::Result<Exit> {
        if let Some(model) = &self.model {
            // Before a long history is read.
            self.with_model(Checker::new(Header::default()), model).or_exit(Exit::Usage)?;
        }
        if let Some(Format::Edn) = self.to {
            return self.convert();
        }
        let (checked, plan) = self.judge()?;
        let mut err = output::stderr();
        for note in &checked.notes {
            writeln!(err, "note: {note}")?;
        }
        let expectation = plan.map(|plan| plan.expectation).unwrap_or_default();
        self.print(&checked, &expectation)
    }

    fn with_model(
        &self,
        checker: Checker,
        model: &Choice,
    ) -> Result<Checker, fencepost_checker::registry::ChoiceError> {
        let budget = Budget { configurations: self.budget, bytes: self.memory << 20 };
        checker.with_model(model, budget)
    }

    fn judge(&self) -> anyhow::Result<(Checked, Option<Plan>)> {
        if self.path.is_dir() {
            return self.judge_run();
        }
        Ok((self.read(None)?, None))
    }

    /// Judges a run again, by its plan. Its verdict is renewed if the directory is one of ours: has a plan.
    fn judge_run(&self) -> anyhow::Result<(Checked, Option<Plan>)> {
        let run = RunDir::open(&self.path)?;
        let plan = run.read_plan()?;
        let checked = self.read(plan.as_ref())?;
        if plan.is_some()
            && let Err(error) = run.write_verdict(&checked.verdict)
        {
            // An archive may be read-only; what it proves is the same.
            writeln!(output::stderr(), "warning: verdict.json was not renewed: {error}")?;
        }
        Ok((checked, plan))
    }

    fn read(&self, plan: Option<&Plan>) -> anyhow::Result<Checked> {
        let (reader, name) = self.open()?;
        let mut checked = self.checked(reader, plan).map_err(|error| cannot_read(&name, error))?;
        let foreign = checked.header.test == "jepsen";
        if self.keyed && !foreign {
            checked.notes.push(
                "--keyed changes nothing: this history names its locks and keys, and each is judged by itself"
                    .to_owned(),
            );
        }
        Ok(checked)
    }

    /// The history, as lines of ours, and how to call it.
    fn open(&self) -> anyhow::Result<(Box<dyn BufRead>, String)> {
        let (mut reader, name): (Box<dyn BufRead>, String) = if self.path == Path::new("-") {
            (Box::new(BufReader::new(io::stdin())), "standard input".to_owned())
        } else {
            let path = match self.path.is_dir() {
                true => RunDir::open(&self.path)?.history_path(),
                false => self.path.clone(),
            };
            let cannot =
                |error: io::Error| failure(Exit::Usage, format!("cannot read {}: {error}", path.display()));
            let file = File::open(&path).map_err(cannot)?;
            (Box::new(BufReader::with_capacity(1 << 20, file)), path.display().to_string())
        };
        let begin = reader.fill_buf().map_err(|source| io_error(&name, source))?;
        if readers::is_edn(begin) {
            let mut text = String::new();
            reader.read_to_string(&mut text).map_err(|source| io_error(&name, source))?;
            let lines =
                readers::from_edn(&text, self.keyed).map_err(|error| cannot_read(&name, error.into()))?;
            reader = Box::new(io::Cursor::new(lines));
        }
        Ok((reader, name))
    }

    fn checked(&self, reader: impl BufRead, plan: Option<&Plan>) -> Result<Checked, ReadError> {
        let new = |header: Header| match &self.model {
            // It was possible before anything was read.
            Some(model) => {
                self.with_model(Checker::new(header.clone()), model).unwrap_or_else(|_| Checker::new(header))
            }
            None => Checker::new(header),
        };
        let patience = Patience::new(self.limit);
        readers::check_unless(reader, plan, new, &|| patience.is_over())
    }

    fn convert(&self) -> anyhow::Result<Exit> {
        let (reader, name) = self.open()?;
        let finished = readers::to_edn(reader, self.keyed, &mut io::BufWriter::new(output::stdout()))
            .map_err(|error| match error {
                CopyError::Read(error) => cannot_read(&name, error),
                CopyError::Write(error) => anyhow::Error::from(error),
            })?;
        for note in finished.notes {
            writeln!(output::stderr(), "note: {note}")?;
        }
        Ok(Exit::Expected)
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

fn io_error(name: &str, source: io::Error) -> anyhow::Error {
    cannot_read(name, ReadError::Io { line: 1, source })
}

fn cannot_read(name: &str, error: ReadError) -> anyhow::Error {
    let exit = if matches!(error, ReadError::Io { .. }) { Exit::Usage } else { Exit::Malformed };
    failure(exit, format!("{name}: {error}"))
}

/// Set by Ctrl-C while a search goes on.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// For how long a search may go on. It begins when the search first asks; until then Ctrl-C ends the process, as
/// ever.
struct Patience {
    limit: Duration,
    begun: std::sync::OnceLock<Instant>,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Self { limit, begun: std::sync::OnceLock::new() }
    }

    fn is_over(&self) -> bool {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(|| {
            // Where that fails Ctrl-C ends the process, which is no hang either.
            let _ = std::thread::Builder::new().spawn(listen);
        });
        INTERRUPTED.load(Ordering::Relaxed) || self.begun.get_or_init(Instant::now).elapsed() >= self.limit
    }
}

/// The first Ctrl-C gives up the search, the second one the process.
fn listen() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted as i32);
            }
        }
    });
}
