//! What `run` and `demo` share: the sandbox, the runtime, the store, and how a run's end becomes an exit code.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use fencepost_checker::plan::Plan;
use fencepost_nemesis::sandbox::{self, Isolation, Sandbox};
use fencepost_results::{
    expectation::{self, Judgement},
    render,
    store::{RunDir, Store},
};
use fencepost_workloads::{
    runner::{Finished, RunError},
    server,
    settings::Setup,
};
use tokio::{runtime::Runtime, sync::watch};

use crate::{
    exit::{Exit, OrExit, failure},
    output,
};

/// Everything that a run needs from its surroundings.
pub(crate) struct Ground {
    pub(crate) store: Store,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) runtime: Runtime,
}

impl Ground {
    /// Opens the store, enters the sandbox, starts the runtime: in this order, since the sandbox must be entered
    /// before any thread is started.
    pub(crate) fn prepare(store: &Path, isolation: Isolation) -> anyhow::Result<Self> {
        let store = Store::open(store)?;
        let program = std::env::current_exe()?;
        let here = std::env::current_dir()?;
        let sandbox = sandbox::enter(isolation, &[store.path(), &program, &here]).or_exit(Exit::Internal)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { store, sandbox: Arc::new(sandbox), runtime })
    }

    /// A run's own directory for temporary files.
    pub(crate) fn scratch(&self, run: &RunDir) -> PathBuf {
        self.sandbox.scratch().join(run.path().file_name().unwrap_or_default())
    }

    /// Becomes true at Ctrl-C, SIGTERM or SIGHUP.
    pub(crate) fn interrupt(&self) -> anyhow::Result<watch::Receiver<bool>> {
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = self.runtime.enter();
        let (say, interrupted) = watch::channel(false);
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (mut signals, say) = (signal(kind)?, say.clone());
            self.runtime.spawn(async move {
                signals.recv().await;
                let _ = say.send(true);
                // The receivers' copies of the sender must live on, or a second signal would look like none.
                std::future::pending::<()>().await;
            });
        }
        Ok(interrupted)
    }
}

/// Fails early, and leaves no run directory, if a server's program is not installed.
pub(crate) fn check_programs(setup: &Setup) -> anyhow::Result<()> {
    for spec in setup.lock.servers(&setup.lock_options) {
        server::find(spec.as_ref()).or_exit(Exit::Backend)?;
    }
    Ok(())
}

/// The exit code of an error of the runner.
pub(crate) fn run_error(error: RunError) -> anyhow::Error {
    let exit = match &error {
        RunError::Setting(_) => Exit::Usage,
        RunError::Server(_) | RunError::Client(_) | RunError::Unhealed(_) => Exit::Backend,
        RunError::Record(_) => Exit::Store,
    };
    failure(exit, error)
}

/// Writes the plan as completed by the runner; a store that fails now fails the run later, with its reason.
pub(crate) fn write_plan(run: &RunDir, plan: &Plan) {
    let _ = run.write_plan(plan);
}

/// Writes the verdict, draws the pictures, and judges.
pub(crate) fn conclude(run: &RunDir, finished: &Finished) -> anyhow::Result<Judgement> {
    run.write_verdict(&finished.verdict)?;
    let mut err = output::stderr();
    for warning in render::render(run) {
        writeln!(err, "warning: {warning}")?;
    }
    Ok(expectation::judge(&finished.verdict, &finished.plan.expectation))
}
