//! What do runner and worker say to each other? One JSON object a line: orders down, replies and events up.
//!
//! An event line is a line of the history without its place; the recorder adds index and time. It is written
//! before the step acts, so that a killed worker leaves a trace of what it was about to do.

use std::path::PathBuf;

use fencepost_checker::{
    plan::{OnLost, Span},
    registry::Choice,
};
use serde::{Deserialize, Serialize};

/// One step of a tenure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// Takes the lock.
    Acquire,
    /// Claims the key for the hold's owner, for the fence `owner`.
    Claim,
    /// Reads the key.
    Read,
    /// Works for a while.
    Hold {
        /// How long.
        span: Span,
    },
    /// Asks the library "is it still mine?".
    Held,
    /// Prolongs the lease.
    Renew,
    /// Writes the key.
    Write {
        /// What.
        content: Content,
        /// Announces the gate `write.between`, because a check came right before.
        after_check: bool,
    },
    /// Gives the lock back.
    Release,
}

impl Step {
    /// The step's name, at which a client can be held.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Claim => "claim",
            Self::Read => "read",
            Self::Hold { .. } => "hold",
            Self::Held => "held",
            Self::Renew => "renew",
            Self::Write { .. } => "write",
            Self::Release => "release",
        }
    }

    /// Does a careful client leave it out once it was told that the lock is lost?
    #[must_use]
    pub fn needs_the_lock(&self) -> bool {
        !matches!(self, Self::Acquire | Self::Hold { .. } | Self::Release)
    }
}

/// What a write writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A report computed from a snapshot that was taken at the acquire.
    Report,
    /// One more than what was read.
    Increment,
}

/// How a step ended, as far as the way through the script depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepEnd {
    /// As hoped.
    Ok,
    /// It did not happen, or the answer was no.
    Fail,
    /// Nobody knows.
    Info,
}

/// The place of the step after `place`, or the end of the tenure.
///
/// A tenure without a lock is over; one whose work failed, or whose lock is known to be lost, goes on to its
/// release.
#[must_use]
pub fn next_place(steps: &[Step], place: usize, end: StepEnd, lost: bool) -> Option<usize> {
    let next = place + 1;
    match steps.get(place)? {
        Step::Acquire if end != StepEnd::Ok => return None,
        _ if end != StepEnd::Ok => return release_after(steps, next),
        _ => {}
    }
    if lost && steps.get(next)?.needs_the_lock() {
        release_after(steps, next)
    } else {
        steps.get(next).map(|_| next)
    }
}

fn release_after(steps: &[Step], from: usize) -> Option<usize> {
    (from..steps.len()).find(|place| steps[*place] == Step::Release)
}

/// A lock and the key that it protects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// The lock's name.
    pub lock: String,
    /// The resource's key.
    pub key: String,
}

/// What a worker must know before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The process's name in the history: `c1`, `c1.2`.
    pub process: String,
    /// Its actors; one is known by the process's name alone.
    pub actors: u32,
    /// The run's origin, nanoseconds of CLOCK_MONOTONIC.
    pub origin_ns: u64,
    /// The lock.
    pub lock: Choice,
    /// Where the lock's servers are.
    pub endpoints: Vec<String>,
    /// The run's temporary directory.
    pub scratch: PathBuf,
    /// The protected resource.
    pub resource: Choice,
    /// Where it is.
    pub resource_endpoint: String,
    /// The fence.
    pub fence: Choice,
    /// The lease's length, milliseconds.
    pub ttl_ms: u64,
    /// How long an acquire waits, milliseconds.
    pub wait_ms: u64,
    /// On a notice of loss.
    pub on_lost: OnLost,
    /// Where clients must wait for a `go`.
    pub stop_at: Vec<String>,
    /// Events are written; off only to measure what writing them costs.
    pub record: bool,
}

/// Many tenures of one actor, at full speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenures {
    /// The actor's place in its process, from 0.
    pub actor: u32,
    /// The steps of each.
    pub steps: Vec<Step>,
    /// What they take and change; each draws one.
    pub protected: Vec<Protected>,
    /// The first attempt's number.
    pub first_attempt: u64,
    /// From one attempt to the next: the number of all actors of the run.
    pub stride: u64,
    /// No tenure begins after this instant of the run, nanoseconds.
    pub until_ns: u64,
    /// Between two tenures.
    pub think: Span,
    /// After a busy lock, milliseconds.
    pub retry_ms: u64,
    /// The seed of the actor's random choices.
    pub seed: u64,
}

/// One step of one actor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneStep {
    /// The actor's place in its process, from 0.
    pub actor: u32,
    /// The step.
    pub step: Step,
    /// The attempt that it belongs to.
    pub attempt: u64,
    /// What it takes or changes.
    pub protected: Protected,
}

/// From the runner to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Order {
    /// Opens the lock and the resource. The first order.
    Open(Box<Open>),
    /// One step: the runner drives.
    Step(Box<OneStep>),
    /// Many tenures: the worker drives.
    Tenures(Box<Tenures>),
    /// The actor may pass the point where it waits.
    Go {
        /// The actor's place in its process.
        actor: u32,
    },
    /// No further tenure begins.
    Finish,
}

/// From a worker to its runner, besides event lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The lock and the resource are open.
    Opened,
    /// An actor waits at a point.
    At {
        /// The actor's place in its process.
        actor: u32,
        /// The step or gate.
        point: String,
        /// The lock.
        lock: String,
        /// The attempt.
        attempt: u64,
    },
    /// A step, or an actor's tenures, are over.
    Done {
        /// The actor's place in its process.
        actor: u32,
        /// How the last step ended.
        end: StepEnd,
        /// Tenures begun.
        tenures: u64,
    },
    /// The worker cannot go on.
    Broken {
        /// Why.
        why: String,
    },
}

/// How an actor is known in the history.
#[must_use]
pub fn actor_name(process: &str, actors: u32, actor: u32) -> String {
    if actors == 1 { process.to_owned() } else { format!("{process}/t{}", actor + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        let span = Span { min_ms: 1.0, max_ms: 1.0 };
        let write = Step::Write { content: Content::Increment, after_check: false };
        vec![Step::Acquire, Step::Read, Step::Hold { span }, write, Step::Release]
    }

    #[test]
    fn a_tenure_goes_its_way() {
        let steps = steps();
        assert_eq!(next_place(&steps, 0, StepEnd::Ok, false), Some(1));
        assert_eq!(next_place(&steps, 0, StepEnd::Fail, false), None, "busy: no tenure");
        assert_eq!(next_place(&steps, 0, StepEnd::Info, false), None, "nobody knows: no tenure");
        assert_eq!(
            next_place(&steps, 1, StepEnd::Fail, false),
            Some(4),
            "a rejected read leads to the release"
        );
        assert_eq!(next_place(&steps, 2, StepEnd::Ok, true), Some(4), "lost: the write is left out");
        assert_eq!(next_place(&steps, 3, StepEnd::Info, false), Some(4));
        assert_eq!(next_place(&steps, 4, StepEnd::Ok, false), None);
    }

    #[test]
    fn orders_and_replies_survive_their_line() {
        let order = Order::Go { actor: 3 };
        assert_eq!(serde_json::to_string(&order).unwrap(), r#"{"op":"go","actor":3}"#);
        let reply = Reply::Done { actor: 0, end: StepEnd::Ok, tenures: 2 };
        let line = serde_json::to_string(&reply).unwrap();
        assert!(line.starts_with(r#"{"reply":"done""#), "{line}");
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
    }
}
