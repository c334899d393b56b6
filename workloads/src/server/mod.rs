//! How does a real server run as a plain child: started, watched, killed, started again?

#[cfg(feature = "redis")]
pub mod redis;

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use fencepost_nemesis::{
    process::{Group, harden},
    sandbox::Sandbox,
};
use tokio::process::{Child, Command as AsyncCommand};

use crate::runner::Places;

/// How long a server may take to answer after its start.
const START_LIMIT: Duration = Duration::from_secs(15);

/// What a server is: how it is started and how one sees that it is ready.
#[async_trait]
pub trait ServerSpec: Send + Sync {
    /// Its name in the run: `redis`, `redis-2`.
    fn name(&self) -> &str;

    /// The program, as it is found on PATH.
    fn program(&self) -> &'static str;

    /// The distribution's package that brings it.
    fn package(&self) -> &'static str;

    /// The arguments that serve on this port of 127.0.0.1 with this data directory.
    fn arguments(&self, port: u16, data: &Path) -> Vec<String>;

    /// The endpoint that clients are given.
    fn endpoint(&self, port: u16) -> String;

    /// Does it answer?
    async fn is_ready(&self, port: u16) -> bool;

    /// The argument that prints its version.
    fn version_argument(&self) -> &'static str {
        "--version"
    }
}

/// Why a server is not there. The texts are fragments that fit after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The program is not installed.
    #[error("{program} is not installed, and {name} needs it; install it: apt-get install {package}")]
    Missing {
        /// The server.
        name: String,
        /// The program.
        program: &'static str,
        /// The package.
        package: &'static str,
    },
    /// It could not be started or ended at once.
    #[error("{name} {what}; the last lines of {}:\n{tail}", log.display())]
    Died {
        /// The server.
        name: String,
        /// What happened.
        what: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The operating system said no.
    #[error("cannot {what} for {name}: {source}")]
    Io {
        /// The server.
        name: String,
        /// What was tried.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

/// A server of this run.
pub struct Server {
    spec: Arc<dyn ServerSpec>,
    program: PathBuf,
    port: u16,
    data: PathBuf,
    log: PathBuf,
    sandbox: Arc<Sandbox>,
    running: tokio::sync::Mutex<Option<Child>>,
    group: Mutex<Option<Group>>,
}

impl Server {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn start(
        spec: Arc<dyn ServerSpec>,
        program: Option<PathBuf>,
        port: u16,
        sandbox: Arc<Sandbox>,
        places: &Places,
    ) -> Result<Self, ServerError> {
        let name = spec.name().to_owned();
        let failed = |what| {
            let name = name.clone();
            move |source| ServerError::Io { name, what, source }
        };
        let program = match program {
            Some(program) => program,
            None => find(spec.as_ref())?,
        };
        let data = places.scratch.join(&name);
        fs::create_dir_all(&data).map_err(failed("make a data directory"))?;
        let log = places.logs.join(format!("{name}.log"));
        let server = Self {
            spec,
            program,
            port,
            data,
            log,
            sandbox,
            running: tokio::sync::Mutex::new(None),
            group: Mutex::new(None),
        };
        server.launch().await?;
        Ok(server)
    }

    /// Its name in the run.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec.name()
    }

    /// Where it answers.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.spec.endpoint(self.port)
    }

    /// What it says of its version: the first line.
    #[must_use]
    pub fn version(&self) -> String {
        let output = Command::new(&self.program).arg(self.spec.version_argument()).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().next().unwrap_or("unknown").to_owned()
    }

    /// Starts it, again with the same port and data, and waits until it answers.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn launch(&self) -> Result<(), ServerError> {
        let failed = |what| move |source| ServerError::Io { name: self.name().to_owned(), what, source };
        let log =
            fs::OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed("open a log"))?;
        let mut command = Command::new(&self.program);
        command.args(self.spec.arguments(self.port, &self.data)).current_dir(&self.data).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed("open a log"))?).stderr(log);
        harden(&mut command);
        let mut running = self.running.lock().await;
        let mut command = AsyncCommand::from(command);
        let child = command.kill_on_drop(true).spawn().map_err(failed("start the program"))?;
        let group = child.id().and_then(Group::of_child);
        if let Some(group) = group {
            self.sandbox.adopt(group);
        }
        *self.group() = group;
        let child = running.insert(child);
        let begin = Instant::now();
        while !self.spec.is_ready(self.port).await {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(self.died(format!("ended at its start ({status})")));
            }
            if begin.elapsed() > START_LIMIT {
                return Err(self.died(format!("did not answer within {} s", START_LIMIT.as_secs())));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Has it ended without having been told to?
    pub async fn unexpected_end(&self) -> Option<ServerError> {
        // A restart under way holds the lock: then it is being looked after.
        let mut running = self.running.try_lock().ok()?;
        let status = running.as_mut()?.try_wait().ok()??;
        Some(self.died(format!("ended in the middle of the run ({status})")))
    }

    fn died(&self, what: String) -> ServerError {
        const LAST_LINES: usize = 10;
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        ServerError::Died { name: self.name().to_owned(), what, log: self.log.clone(), tail }
    }

    fn group(&self) -> std::sync::MutexGuard<'_, Option<Group>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up(&self) -> io::Result<Group> {
        self.group().ok_or_else(|| io::Error::other(format!("{} is not up", self.name())))
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// If it is not up.
    pub fn stop(&self) -> io::Result<()> {
        self.up()?.stop()
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// If it is not up.
    pub fn resume(&self) -> io::Result<()> {
        self.up()?.resume()
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Errors
    /// If it is not up.
    pub async fn kill(&self) -> io::Result<()> {
        let mut running = self.running.lock().await;
        let group = self.up()?;
        group.kill()?;
        if let Some(mut child) = running.take() {
            child.wait().await?;
        }
        self.sandbox.release(group);
        *self.group() = None;
        Ok(())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.name()).field("port", &self.port).finish_non_exhaustive()
    }
}

/// Where the server's program is.
///
/// # Errors
/// [`ServerError::Missing`] with the package that brings it.
pub fn find(spec: &dyn ServerSpec) -> Result<PathBuf, ServerError> {
    fencepost_nemesis::capability::find_program(spec.program()).map_err(|_| ServerError::Missing {
        name: spec.name().to_owned(),
        program: spec.program(),
        package: spec.package(),
    })
}

/// A port of 127.0.0.1 that nobody uses at this moment.
///
/// # Errors
/// If there is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
