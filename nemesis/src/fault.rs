//! What is a fault? A registry item that plans itself for a run, a trigger, and a strike that registers its
//! undo before it acts.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{ChoiceError, Item, Options};

use crate::schedule::{Stage, Trigger};

/// What a fault must know of the run to plan itself.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The lease's length.
    pub ttl: Duration,
    /// The lock's name.
    pub lock: String,
    /// The names of the workload's steps, in order.
    pub steps: Vec<&'static str>,
    /// The points at which a worker can be held: the workload's steps and the gates inside operations.
    pub points: Vec<String>,
    /// The lock's server processes that can be struck.
    pub servers: usize,
}

impl Setting {
    /// The default point for faults that strike holders: right before the write, or before the release where
    /// the workload writes nothing.
    #[must_use]
    pub fn before_the_write(&self) -> &'static str {
        if self.steps.contains(&"write") { "write" } else { "release" }
    }
}

/// Where a holder can be struck, in the history's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The client's place: `c1`.
    pub client: String,
    /// The process that the history knows: `c1.2/t1`.
    pub process: String,
    /// A step about to be taken, or a gate inside an operation: `write`, `acquire.between`.
    pub name: String,
    /// The lock concerned.
    pub lock: String,
    /// The attempt.
    pub attempt: u64,
}

/// What a worker held at a point may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Go,
    /// It was killed.
    Gone,
}

/// A kind of fault.
pub trait Fault: Sync {
    /// Its name, summary, documentation and options.
    fn item(&self) -> Item;

    /// Does it strike a lock server?
    fn needs_server(&self) -> bool {
        false
    }

    /// Fits it to a run; nothing, if it is no fault at all (`none`).
    ///
    /// # Errors
    /// If an option's value is off, or the lock cannot have this fault: the text names what it can.
    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError>;
}

/// Why a fault cannot be planned. The texts are fragments that fit after "error: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The choice itself is off.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The run has nothing that this fault could strike.
    #[error("nemesis '{fault}' cannot strike lock '{lock}': {why}; this lock can have: {possible}")]
    Impossible {
        /// The fault.
        fault: &'static str,
        /// The lock.
        lock: String,
        /// Why not.
        why: String,
        /// The faults that it can have.
        possible: String,
    },
}

/// A fault fitted to a run.
pub struct PlannedFault {
    /// Its name in the history.
    pub name: &'static str,
    /// When it strikes.
    pub trigger: Trigger,
    /// What it does then, in words, for `--dry-run`.
    pub what: String,
    /// What it does then.
    pub strike: Box<dyn Strike>,
}

impl PlannedFault {
    /// One line for `--dry-run`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}: {}, {}", self.name, self.what, self.trigger.describe())
    }
}

/// What a fault does.
#[async_trait]
pub trait Strike: Send + Sync {
    /// Strikes and heals; returns when the victim held at `point` may go on.
    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next;
}

impl Setting {
    /// Checks that a worker of this run can be held at a point.
    ///
    /// # Errors
    /// [`PlanError::Impossible`] with the points that there are.
    pub fn check_point(&self, fault: &'static str, at: &str) -> Result<(), PlanError> {
        if self.points.iter().any(|point| point == at) {
            return Ok(());
        }
        Err(PlanError::Impossible {
            fault,
            lock: self.lock.clone(),
            why: format!("no client of this run passes a point '{at}'"),
            possible: self
                .points
                .iter()
                .map(|point| format!("{fault}?at={point}"))
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// Checks that the lock has a server to strike.
    ///
    /// # Errors
    /// [`PlanError::Impossible`] with the faults that it can have.
    pub fn check_server(&self, fault: &'static str) -> Result<(), PlanError> {
        if self.servers > 0 {
            return Ok(());
        }
        let possible =
            crate::NEMESES.iter().filter(|fault| !fault.needs_server()).map(|fault| fault.item().name);
        Err(PlanError::Impossible {
            fault,
            lock: self.lock.clone(),
            why: "it has no server process".to_owned(),
            possible: possible.collect::<Vec<_>>().join(", "),
        })
    }
}

/// Reads an option as a length of time.
///
/// # Errors
/// [`ChoiceError::Value`].
pub fn length(options: &Options, name: &str, ttl: Duration) -> Result<Duration, ChoiceError> {
    options.parse(name, "a length of time such as 300ms or 1.5ttl", |text| {
        crate::quantity::duration(text, Some(ttl)).ok()
    })
}

/// Reads an option as a share from 0 to 1.
///
/// # Errors
/// [`ChoiceError::Value`].
pub fn share(options: &Options, name: &str) -> Result<f64, ChoiceError> {
    options.parse(name, "a share from 0 to 1", |text| {
        text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
    })
}

/// Reads the point at which a fault strikes; `default` means right before the write.
///
/// # Errors
/// [`PlanError::Impossible`] if no client passes that point.
pub fn point(fault: &'static str, options: &Options, setting: &Setting) -> Result<String, PlanError> {
    let at = if options.is_given("at") { options.get("at") } else { setting.before_the_write() };
    setting.check_point(fault, at)?;
    Ok(at.to_owned())
}

/// The option that [`point`] reads.
pub const AT: fencepost_checker::registry::OptionSpec = fencepost_checker::registry::OptionSpec {
    name: "at",
    summary: "the step (read, held, write, release, …) or gate (acquire.between, …) at which it strikes",
    default: "write",
    values: &[],
};
