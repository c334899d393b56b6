//! What can be acted on? The clients, lock servers and resource of a run, by name.

use std::{fmt, io};

use async_trait::async_trait;

/// One thing that a fault can strike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A client process, by its place: `c1` also after restarts.
    Client(String),
    /// A lock server, by its name.
    Server(String),
    /// The protected resource's process.
    Resource,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(name) => f.write_str(name),
            Self::Server(name) => write!(f, "lock/{name}"),
            Self::Resource => f.write_str("resource"),
        }
    }
}

/// The processes of a run, as faults see them. Whoever runs the test implements it.
#[async_trait]
pub trait Testbed: Send + Sync {
    /// Client processes that are up.
    fn clients(&self) -> Vec<Target>;

    /// Lock servers, up or down.
    fn servers(&self) -> Vec<Target>;

    /// The name that the history knows the target by: `c1.2` for a client that was restarted once.
    fn label(&self, target: &Target) -> String;

    /// Stops the target's processes (SIGSTOP).
    ///
    /// # Errors
    /// If it is not up.
    fn stop(&self, target: &Target) -> io::Result<()>;

    /// Lets them go on (SIGCONT).
    ///
    /// # Errors
    /// If it is not up.
    fn resume(&self, target: &Target) -> io::Result<()>;

    /// Kills them (SIGKILL) and waits until they are gone.
    ///
    /// # Errors
    /// If it is not up.
    async fn kill(&self, target: &Target) -> io::Result<()>;

    /// Starts a killed server or resource again, with the same data directory and address, and waits until it
    /// answers. Does nothing to clients: they restart by themselves.
    ///
    /// # Errors
    /// If it does not come up.
    async fn restart(&self, target: &Target) -> io::Result<()>;
}
