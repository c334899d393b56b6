//! How is a cell run once? By this very program, as a process of its own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use fencepost_checker::verdict::Verdict;
use fencepost_results::{
    store::{RunDir, name_part},
    suite::result::{Attempt, CellResult},
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{exit::Exit, parent};

/// Beside its time a run needs some to start, to heal, to check and to draw.
const GRACE: Duration = Duration::from_secs(60);

/// What one run came to.
pub(super) struct Once {
    pub(super) attempt: Attempt,
    pub(super) verdict: Option<Verdict>,
    /// What it said last, if it failed.
    pub(super) error: String,
}

/// Starts runs and waits for them.
pub(super) struct Runner {
    program: PathBuf,
    dir: PathBuf,
    runtime: Runtime,
    /// Becomes true at Ctrl-C or SIGTERM, also at one between two runs.
    interrupted: watch::Receiver<bool>,
}

impl Runner {
    /// A runner for the suite in this directory.
    pub(super) fn new(dir: &Path) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let interrupted = watch_signals(&runtime)?;
        Ok(Self { program: std::env::current_exe()?, dir: dir.to_owned(), runtime, interrupted })
    }

    /// Runs the cell once, with this seed.
    pub(super) fn once(&self, result: &CellResult, seed: u64) -> anyhow::Result<Once> {
        let home =
            PathBuf::from("runs").join(format!("{:03}_{}", result.number, name_part(&result.cell.name)));
        let store = self.dir.join(&home);
        fs::create_dir_all(&store)?;
        let log = store.join(format!("seed-{seed}.log"));
        let before = latest(&store);
        let begun = Instant::now();
        let code = self.runtime.block_on(self.run(result, seed, &store, &log))?;
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let run = latest(&store).filter(|run| before.as_ref() != Some(run)).map(|run| home.join(run));
        let verdict = run.as_ref().and_then(|run| read_verdict(&self.dir.join(run)));
        let run = run.map(|run| run.display().to_string());
        Ok(Once { attempt: Attempt { seed, run, code, took_ms }, verdict, error: last_error(&log) })
    }

    async fn run(&self, result: &CellResult, seed: u64, store: &Path, log: &Path) -> anyhow::Result<u8> {
        let log = File::create(log)?;
        let mut child = Command::new(&self.program)
            .args(result.cell.arguments(seed))
            .arg("--store")
            .arg(store)
            .env("NO_COLOR", "1")
            .envs([parent::variable()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let mut interrupted = self.interrupted.clone();
        let limit = result.cell.time * 3 + GRACE;
        let interrupted = tokio::select! {
            status = child.wait() => return Ok(code_of(status?)),
            _ = interrupted.wait_for(|interrupted| *interrupted) => true,
            () = tokio::time::sleep(limit) => false,
        };
        ask_to_end(&child);
        // It heals its faults and keeps what it has; if it cannot, it is killed, and cleans up all the same.
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            child.kill().await?;
        }
        Ok(if interrupted { Exit::Interrupted as u8 } else { Exit::Internal as u8 })
    }
}

fn watch_signals(runtime: &Runtime) -> anyhow::Result<watch::Receiver<bool>> {
    let _inside = runtime.enter();
    let (say, interrupted) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let (mut signals, say) = (signal(kind)?, say.clone());
        runtime.spawn(async move {
            signals.recv().await;
            say.send_replace(true);
            // The sender must live on: a closed channel would look like a signal.
            std::future::pending::<()>().await;
        });
    }
    Ok(interrupted)
}

fn ask_to_end(child: &Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself in the meantime.
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn code_of(status: std::process::ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Internal as u8)
}

/// The name of the newest run in a store.
fn latest(store: &Path) -> Option<PathBuf> {
    fs::read_link(store.join("latest")).ok()
}

/// The verdict of a cell's last run.
pub(super) fn verdict_of(dir: &Path, result: &CellResult) -> Option<Verdict> {
    read_verdict(&dir.join(result.run()?))
}

fn read_verdict(run: &Path) -> Option<Verdict> {
    RunDir::open(run).ok()?.read_verdict().ok()?
}

/// The last error line of a run's output, without its label.
fn last_error(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let error = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    error.or(text.lines().last()).unwrap_or("it said nothing").to_owned()
}
