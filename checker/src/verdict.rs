//! What was found? The verdict, as written to `verdict.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::history::FORMAT_VERSION;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A promise was broken.
    Violation,
    /// The design allows it; it harms who ignores it.
    Hazard,
    /// Something that should happen did not.
    Liveness,
}

/// A three-valued answer: an analysis that could not be finished is never a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum Valid {
    /// Nothing that breaks a promise.
    True,
    /// A certain violation.
    False,
    /// Nobody can say; the summary says why.
    Unknown,
}

impl TryFrom<serde_json::Value> for Valid {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        match value {
            serde_json::Value::Bool(true) => Ok(Self::True),
            serde_json::Value::Bool(false) => Ok(Self::False),
            serde_json::Value::String(word) if word == "unknown" => Ok(Self::Unknown),
            other => Err(format!("neither true, false nor \"unknown\": {other}")),
        }
    }
}

impl From<Valid> for serde_json::Value {
    fn from(valid: Valid) -> Self {
        match valid {
            Valid::True => Self::Bool(true),
            Valid::False => Self::Bool(false),
            Valid::Unknown => Self::String("unknown".to_owned()),
        }
    }
}

impl Valid {
    /// False over unknown over true.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            _ => Self::True,
        }
    }
}

/// A fault in force at a finding, or just before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultInForce {
    /// The fault's number in the history.
    pub fault: u64,
    /// Its name.
    pub f: String,
    /// What it struck.
    pub targets: Vec<String>,
    /// When it began, nanoseconds of the run.
    pub begin_ns: u64,
    /// When it was healed, nanoseconds of the run; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
}

/// An interval that takes part in a finding, for the picture and the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    /// Whose.
    pub process: String,
    /// Of which attempt.
    pub attempt: u64,
    /// `granted`, `believed` or `operation`.
    pub what: String,
    /// Its begin, nanoseconds of the run.
    pub begin_ns: u64,
    /// Its end, nanoseconds of the run.
    pub end_ns: u64,
}

/// All findings of one kind on one lock, the first of them in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anomaly {
    /// The anomaly's id, such as `stale-write`.
    pub id: String,
    /// How grave it is.
    pub severity: Severity,
    /// On which lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Certain findings.
    pub count: u64,
    /// Findings that only might be ones.
    pub possible: u64,
    /// The first finding in plain words.
    pub text: String,
    /// The fewest events that prove it, by index.
    pub witness: Vec<u64>,
    /// The intervals that meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Meeting>,
    /// The instant at which the promise is broken, nanoseconds of the run.
    #[serde(default)]
    pub at_ns: u64,
    /// Faults in force, or just before.
    pub during: Vec<FaultInForce>,
    /// What the finding assumes, such as `session-stays`.
    pub assumes: Vec<String>,
}

/// How much was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Events read.
    pub events: u64,
    /// Acquires granted.
    pub acquires_ok: u64,
    /// Acquires that met a busy lock.
    pub acquires_busy: u64,
    /// Acquires that failed otherwise.
    pub acquires_failed: u64,
    /// Acquires of unknown outcome.
    pub acquires_info: u64,
    /// Tenures.
    pub holds: u64,
    /// Attempts that met another owner's tenure: without them exclusion was never asked for.
    pub rivals_met: u64,
    /// Writes that the resource took.
    pub writes_accepted: u64,
    /// Writes that the fence turned away.
    pub writes_rejected: u64,
    /// Writes of unknown outcome.
    pub writes_info: u64,
    /// Reads answered.
    pub reads_ok: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Faults that were planned and could not strike.
    pub faults_skipped: u64,
    /// Occasions on which the anomaly that a fault is after could have happened: a holder stopped past its
    /// term while a rival got the lock.
    pub opportunities: u64,
}

/// The verdict on a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The format's version.
    pub fencepost: u32,
    /// Valid, not, or unknown.
    pub valid: Valid,
    /// One sentence.
    pub summary: String,
    /// Why it is unknown, one reason each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_because: Vec<String>,
    /// What was assumed, settled or left out, one sentence each: a reader can undo it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was found, gravest first.
    pub anomalies: Vec<Anomaly>,
    /// The answer of each analysis: `exclusion`, `tokens`, `resource`, `liveness`, …
    pub analyses: BTreeMap<String, Valid>,
    /// How much was seen.
    pub counts: Counts,
    /// Measured, by name; see `docs/formats.md` for units.
    pub metrics: BTreeMap<String, serde_json::Value>,
    /// What the workload itself adds.
    #[serde(default)]
    pub workload: BTreeMap<String, serde_json::Value>,
}

impl Verdict {
    /// An empty verdict, valid until something is found.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            fencepost: FORMAT_VERSION,
            valid: Valid::True,
            summary: String::new(),
            unknown_because: Vec::new(),
            notes: Vec::new(),
            anomalies: Vec::new(),
            analyses: BTreeMap::new(),
            counts: Counts::default(),
            metrics: BTreeMap::new(),
            workload: BTreeMap::new(),
        }
    }
}
