//! What is a lock to Fencepost? A registry item that declares its contract, starts its servers, and opens
//! clients whose every operation ends in one of three ways.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use fencepost_checker::{
    contract::Contract,
    history::{Cause, OperationError, Released, Source},
    registry::{ChoiceError, Item, Options},
};
use fencepost_nemesis::clock::raw::RunClock;

use crate::{resource::ResourceClient, server::ServerSpec, worker::Notices};

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It returned and said so.
    Ok(T),
    /// It certainly had no effect.
    Fail(OpError),
    /// Nobody knows.
    Info(OpError),
}

/// Why an operation did not succeed, in the history's words.
pub type OpError = OperationError<'static>;

/// An error of the given cause and source.
#[must_use]
pub fn error(cause: Cause, source: Source, text: impl Into<Cow<'static, str>>) -> OpError {
    OpError { cause, text: text.into(), source: Some(source) }
}

impl<T> Outcome<T> {
    /// Somebody else holds the lock, says the server.
    #[must_use]
    pub fn busy() -> Self {
        Self::Fail(error(Cause::Busy, Source::Server, ""))
    }

    /// Maps what an ok outcome carries.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Ok(value) => Outcome::Ok(f(value)),
            Self::Fail(error) => Outcome::Fail(error),
            Self::Info(error) => Outcome::Info(error),
        }
    }
}

/// A granted lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fencing token, if the lock gives one.
    pub token: Option<u64>,
    /// How long the library says that the grant is good for, from its return, milliseconds.
    pub validity_ms: Option<i64>,
    /// The lease's length as granted, milliseconds; none: no lease.
    pub ttl_ms: Option<u64>,
    /// The identity under which it was taken.
    pub owner: String,
    /// Stamp just before the request from which the term counts.
    pub granted_after: u64,
    /// Stamp just after that request's reply.
    pub granted_by: u64,
}

/// A prolonged lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The lease's length from now on, milliseconds.
    pub ttl_ms: u64,
    /// Stamp just before the request.
    pub granted_after: u64,
    /// Stamp just after its reply.
    pub granted_by: u64,
}

/// Who calls, about what.
#[derive(Clone, Debug)]
pub struct Call {
    /// The lock's name.
    pub lock: String,
    /// The calling actor, as the history knows it: `c1/t1`.
    pub process: String,
    /// The attempt.
    pub attempt: u64,
    /// The lease's length asked for.
    pub ttl: Duration,
    /// How long to wait for a busy lock.
    pub wait: Duration,
    /// Where the call can be held.
    pub gates: crate::worker::Gates,
}

impl Call {
    /// Waits here if the nemesis asked for it.
    pub async fn gate(&self, name: &'static str) {
        self.gates.pass(name, self).await;
    }
}

/// One client of a lock, shared by the actors of its process.
#[async_trait]
pub trait LockClient: Send + Sync {
    /// Takes the lock.
    async fn acquire(&self, call: &Call) -> Outcome<Grant>;

    /// Prolongs the lease of the actor's hold.
    async fn renew(&self, call: &Call) -> Outcome<Renewal>;

    /// Gives the lock back.
    async fn release(&self, call: &Call) -> Outcome<Released>;

    /// Is it still mine?
    async fn held(&self, call: &Call) -> Outcome<bool>;
}

/// What a lock needs to open a client.
#[derive(Clone)]
pub struct Opening {
    /// Where its servers are; empty where there is none.
    pub endpoints: Vec<String>,
    /// A directory shared by all clients of the run, for embedded locks.
    pub scratch: PathBuf,
    /// The run's clock, for stamps.
    pub clock: RunClock,
    /// Where unasked news go: `lost`, `renewed`.
    pub notices: Arc<Notices>,
    /// The lease's length that calls will ask for, milliseconds.
    pub ttl_ms: u64,
    /// The protected resource, for tokens that it gives out.
    pub resource: Arc<dyn ResourceClient>,
}

/// Why a client could not be opened, a fragment that fits after "error: ".
#[derive(Debug, thiserror::Error)]
#[error("cannot open lock '{lock}': {why}")]
pub struct OpenError {
    /// The lock.
    pub lock: &'static str,
    /// What went wrong.
    pub why: String,
}

/// A kind of lock.
#[async_trait]
pub trait Lock: Sync {
    /// Its name, summary, documentation and options.
    fn item(&self) -> Item;

    /// What it promises under these options.
    fn contract(&self, options: &Options) -> Contract;

    /// Where an operation can be held, besides the workload's steps.
    fn gates(&self, options: &Options) -> &'static [&'static str];

    /// The servers that it needs.
    fn servers(&self, options: &Options) -> Vec<Arc<dyn ServerSpec>>;

    /// Checks options that depend on each other or on the lease's length.
    ///
    /// # Errors
    /// If they do not go together.
    fn check(&self, options: &Options, ttl: Duration) -> Result<(), ChoiceError> {
        let _ = (options, ttl);
        Ok(())
    }

    /// Opens a client.
    ///
    /// # Errors
    /// If its server cannot be reached or refuses.
    async fn open(&self, options: &Options, opening: Opening) -> Result<Arc<dyn LockClient>, OpenError>;
}

/// How long a grant is still good for, milliseconds: the ttl less what passed since its term began.
#[must_use]
pub fn validity_ms(ttl: Duration, granted_after_ns: u64, now_ns: u64) -> i64 {
    let elapsed_ms = now_ns.saturating_sub(granted_after_ns).div_ceil(1_000_000);
    ttl.as_millis() as i64 - elapsed_ms as i64
}

/// What a careful library says of a grant that came too late to be worth anything. The lock was held for a while, if
/// to nobody's use: the outcome is not "no effect" but unknown.
#[must_use]
pub fn too_late() -> OpError {
    error(Cause::Timeout, Source::Library, "granted, but its lease had run out before the answer came")
}

/// Takes a polling lock: tries until it is granted or the wait is over.
pub async fn poll<T, F>(wait: Duration, mut attempt: impl FnMut() -> F) -> Outcome<T>
where
    F: Future<Output = Outcome<T>>,
{
    const BETWEEN_TRIES: Duration = Duration::from_millis(10);
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let outcome = attempt().await;
        let busy = matches!(&outcome, Outcome::Fail(error) if error.cause == Cause::Busy);
        if !busy || tokio::time::Instant::now() + BETWEEN_TRIES > deadline {
            return outcome;
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}
