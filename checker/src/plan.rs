//! What was to happen? Every setting of a run, as written to `test.json` before it begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::registry::Choice;

/// A half-open stretch of milliseconds from which a pause of the workload is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The least, milliseconds.
    pub min_ms: f64,
    /// The most, milliseconds.
    pub max_ms: f64,
}

/// What a client does when its library tells it that the lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// It stops before its next access.
    #[default]
    Stop,
    /// It goes on.
    Ignore,
}

/// Who decides on the next step of a tenure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drive {
    /// The worker, at full speed, waiting only where the nemesis asked.
    #[default]
    Free,
    /// The runner, one verb at a time.
    Stepwise,
}

/// Whether a run that met nothing is `unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vacuity {
    /// Fewer than 5 ok acquires, or no attempt that met another owner's tenure, is `unknown`.
    #[default]
    Judged,
    /// A script says what must have happened; it is not judged.
    Scripted,
}

/// What a run must, may and must not find, by anomaly id; `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expectation {
    /// Must not be found. Violations are forbidden unless allowed.
    pub forbid: Vec<String>,
    /// May be found.
    pub allow: Vec<String>,
    /// Must be found; this allows it, too.
    pub require: Vec<String>,
}

/// A run's settings, `test.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The format's version.
    pub fencepost: u32,
    /// The test's name, `lock/workload/nemesis`.
    pub name: String,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The command line that runs it again.
    pub command: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The lock.
    pub lock: Choice,
    /// The workload.
    pub workload: Choice,
    /// The faults, in force at once; none: an empty list.
    pub nemeses: Vec<Choice>,
    /// The fence.
    pub fence: String,
    /// The protected resource.
    pub resource: Choice,
    /// Client processes.
    pub clients: u32,
    /// Actors (tasks that share a client object) in each process.
    pub actors: u32,
    /// Locks, and as many keys.
    pub keys: u32,
    /// The lease's length, milliseconds.
    pub ttl_ms: u64,
    /// How long the workload runs, milliseconds.
    pub time_ms: u64,
    /// Between acquire and write.
    pub hold: Span,
    /// Between two tenures.
    pub think: Span,
    /// How long an acquire waits for a busy lock, milliseconds.
    pub wait_ms: u64,
    /// After a busy lock, before the next try, milliseconds.
    pub retry_ms: u64,
    /// On a notice of loss.
    pub on_lost: OnLost,
    /// Who decides on the next step.
    pub drive: Drive,
    /// End the run at the first violation.
    pub stop_on_violation: bool,
    /// How long after a release, a crash or a loss a lock may stay unavailable, milliseconds.
    pub grace_ms: u64,
    /// Whether a run that met nothing is `unknown`.
    pub vacuity: Vacuity,
    /// What it must, may and must not find.
    pub expectation: Expectation,
    /// Versions of servers and libraries, by name.
    pub versions: BTreeMap<String, String>,
    /// What this machine allows, by name.
    pub capabilities: BTreeMap<String, String>,
    /// The machine: kernel, cores, memory.
    pub machine: BTreeMap<String, String>,
}
