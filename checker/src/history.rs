//! What is a history? A header, then one event a line.
//!
//! The format is described for other tools in `docs/formats.md`. All instants are nanoseconds of one
//! monotonic clock, counted from the start of the run; `start` and `end` were stamped by the process that
//! acted, `time` by the recorder when it learned of the event.
//!
//! Events borrow from the line they were parsed from, so that a reader can look at a million of them
//! without a million allocations. [`Event::into_owned`] cuts the tie.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::contract::Contract;

/// The version of the format that this crate writes, the value of the header's `fencepost` field.
pub const FORMAT_VERSION: u32 = 1;

/// The first line of a history: what the checker must know to judge a lone file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version, see [`FORMAT_VERSION`].
    pub fencepost: u32,
    /// The test's name, `lock/workload/nemesis`.
    #[serde(default)]
    pub test: String,
    /// The seed of every random choice of the run.
    #[serde(default)]
    pub seed: u64,
    /// What the lock promises; without it the checker assumes a plain lock and says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// The name of the fence in force at the resource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fence: String,
    /// The name of the protected resource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Bound on the relative rate of two clocks of the machine (ρ), dimensionless.
    #[serde(default = "default_rho")]
    pub rho: f64,
    /// Bound on the error of a stamp (ε), nanoseconds.
    #[serde(default = "default_epsilon_ns")]
    pub epsilon_ns: u64,
    /// Workers stamp a heartbeat each 10 ms and report gaps as `stall` events, so that their absence means
    /// that no worker stalled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heartbeat: bool,
    /// The recorder writes an event `end` last: a history without it is torn, and a hold in it counts only until
    /// its process was last heard of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// How long after a release, a crash or a loss a lock may stay unavailable before it counts as stuck,
    /// milliseconds.
    #[serde(default = "default_grace_ms")]
    pub grace_ms: u64,
}

fn default_rho() -> f64 {
    0.001
}
fn default_epsilon_ns() -> u64 {
    1_000
}
fn default_grace_ms() -> u64 {
    500
}

impl Default for Header {
    fn default() -> Self {
        Self {
            fencepost: FORMAT_VERSION,
            test: String::new(),
            seed: 0,
            contract: None,
            fence: String::new(),
            resource: String::new(),
            rho: default_rho(),
            epsilon_ns: default_epsilon_ns(),
            heartbeat: false,
            ends: false,
            grace_ms: default_grace_ms(),
        }
    }
}

impl From<&str> for Function {
    fn from(name: &str) -> Self {
        match name {
            "acquire" => Self::Acquire,
            "renew" => Self::Renew,
            "release" => Self::Release,
            "held" => Self::Held,
            "lost" => Self::Lost,
            "renewed" => Self::Renewed,
            "read" => Self::Read,
            "write" => Self::Write,
            "effect" => Self::Effect,
            "probe" => Self::Probe,
            "dump" => Self::Dump,
            "spawn" => Self::Spawn,
            "exit" => Self::Exit,
            "kill" => Self::Kill,
            "clock" => Self::Clock,
            "stall" => Self::Stall,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Serialize for Function {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

// By hand: the derived form would copy every name before it looks at it.
impl<'de> Deserialize<'de> for Function {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl serde::de::Visitor<'_> for Name {
            type Value = Function;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a function")
            }

            fn visit_str<E>(self, name: &str) -> Result<Function, E> {
                Ok(Function::from(name))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl Function {
    /// The word of the format.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::Renewed => "renewed",
            Self::Read => "read",
            Self::Write => "write",
            Self::Effect => "effect",
            Self::Probe => "probe",
            Self::Dump => "dump",
            Self::Spawn => "spawn",
            Self::Exit => "exit",
            Self::Kill => "kill",
            Self::Clock => "clock",
            Self::Stall => "stall",
            Self::Other(name) => name,
        }
    }

    /// Is it an operation, with an invoke and a completion? Everything else is a single event.
    #[must_use]
    pub fn is_operation(&self) -> bool {
        matches!(
            self,
            Self::Acquire
                | Self::Renew
                | Self::Release
                | Self::Held
                | Self::Read
                | Self::Write
                | Self::Effect
                | Self::Probe
                | Self::Dump
        )
    }
}

impl Kind {
    /// The word of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invoke => "invoke",
            Self::Ok => "ok",
            Self::Fail => "fail",
            Self::Info => "info",
        }
    }
}

impl Event<'_> {
    /// May this completion stand without an invoke? A library's background renewal was invoked by nobody in
    /// the history, nor was an observer's probe or the resource's final dump.
    #[must_use]
    pub fn may_lack_invoke(&self) -> bool {
        match self.f {
            Function::Renew => matches!(self.kind, Kind::Fail | Kind::Info),
            Function::Probe | Function::Dump => true,
            _ => false,
        }
    }

    /// When the operation was called, nanoseconds; the recorder's time where there is no stamp.
    #[must_use]
    pub fn called_at(&self) -> u64 {
        self.start.unwrap_or(self.time)
    }

    /// When the operation returned, nanoseconds; the recorder's time where there is no stamp.
    #[must_use]
    pub fn returned_at(&self) -> u64 {
        self.end.unwrap_or(self.time)
    }
}

/// How an event stands to its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The operation was called.
    Invoke,
    /// It returned and said so.
    Ok,
    /// It certainly had no effect.
    Fail,
    /// Nobody knows whether it had an effect; also the kind of events that are no operations.
    Info,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Taking the lock.
    Acquire,
    /// Prolonging the lease, asked by the client or its library.
    Renew,
    /// Giving the lock back.
    Release,
    /// Asking the library "is it still mine?".
    Held,
    /// The library told its holder that the lock is gone.
    Lost,
    /// The library told its holder that it renewed the lease in the background.
    Renewed,
    /// Reading a key of the protected resource.
    Read,
    /// Writing a key of the protected resource.
    Write,
    /// A side effect that must happen once.
    Effect,
    /// What an observer saw at the lock server.
    Probe,
    /// The resource's own log, read at the end of the run.
    Dump,
    /// A client process started.
    Spawn,
    /// A client process ended.
    Exit,
    /// A client process was killed.
    Kill,
    /// REALTIME − MONOTONIC of the recorder.
    Clock,
    /// A worker's own heartbeat stood still: `value.from` to `value.until`.
    Stall,
    /// A fault or anything else, by name.
    Other(String),
}

/// Whether a release freed the lock, as the service or library said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ReleasedRepr", into = "ReleasedRepr")]
pub enum Released {
    /// It was the caller's and is free now.
    Yes,
    /// It was not the caller's any more.
    No,
    /// The library cannot tell.
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ReleasedRepr {
    Known(bool),
    Word(String),
}

impl From<ReleasedRepr> for Released {
    fn from(repr: ReleasedRepr) -> Self {
        match repr {
            ReleasedRepr::Known(true) => Self::Yes,
            ReleasedRepr::Known(false) => Self::No,
            ReleasedRepr::Word(_) => Self::Unknown,
        }
    }
}

impl From<Released> for ReleasedRepr {
    fn from(released: Released) -> Self {
        match released {
            Released::Yes => Self::Known(true),
            Released::No => Self::Known(false),
            Released::Unknown => Self::Word("unknown".to_owned()),
        }
    }
}

/// Why an operation did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Somebody else holds the lock.
    Busy,
    /// The caller does not hold the lock.
    NotHeld,
    /// The server or resource said no.
    Refused,
    /// No answer in time.
    Timeout,
    /// No connection, or it broke.
    Unavailable,
    /// Anything else.
    #[serde(other)]
    Other,
}

/// Who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The lock's server or the resource: evidence.
    Server,
    /// The client library: a belief.
    #[serde(other)]
    Library,
}

/// An error as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationError<'a> {
    /// Why, in one of a few words.
    pub cause: Cause,
    /// The library's own words.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub text: Cow<'a, str>,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// A fault's or wait's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It is in force from here.
    Begin,
    /// It is healed.
    End,
    /// It was planned and did not strike; `reason` says why.
    Skipped,
}

/// One line of the resource's own record, in commit order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry<'a> {
    /// The key.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// The place that the write took among the accepted writes of its key, from 1.
    pub position: u64,
    /// The write.
    pub write_id: u64,
    /// The write that it replaced; 0 for the first.
    pub replaced: u64,
    /// The token that it carried, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The largest token of the key's earlier accesses; 0 for none.
    #[serde(default)]
    pub highest_token_before: u64,
}

/// All that an event may carry; what does not apply is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Value<'a> {
    /// The lease's length, asked or granted, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long the acquire may wait, milliseconds; 0: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Taken together with others, as a reader does? Of an acquire of a [`Mode::Shared`] lock.
    ///
    /// [`Mode::Shared`]: crate::contract::Mode::Shared
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// How many permits are taken. Of an acquire of a [`Mode::Counting`] lock; absent: one.
    ///
    /// [`Mode::Counting`]: crate::contract::Mode::Counting
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permits: Option<u64>,
    /// The fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// How long the library says that the grant is good for, milliseconds from the operation's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity_ms: Option<i64>,
    /// Stamp just before the request from which the term counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_after: Option<u64>,
    /// Stamp just after that request's reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<u64>,
    /// The identity that the caller takes himself for.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Cow<'a, str>>,
    /// What a release said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Released>,
    /// What the library answered to "is it still mine?".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What was written or read.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// The write; of a read: the last write of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_id: Option<u64>,
    /// The place among the accepted writes of the key, from 1; of a read: that of the last write, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The write that was replaced; 0 for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u64>,
    /// The largest token that the resource had seen for this key before this access; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_token_before: Option<u64>,
    /// The resource's life: random at creation, new after data loss.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Why it did not succeed.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError<'a>>,
    /// A fault's targets: a client by its process, a lock server as `lock/NAME`, `resource`.
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Cow<'a, str>>,
    /// A fault's phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What a fault may end: `leases`, `sessions`, `tokens`, `data`.
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Cow<'a, str>>,
    /// Why a fault was skipped, a lock lost, a process gone.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The resource's own record, of a `dump`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<LogEntry<'a>>>,
    /// REALTIME − MONOTONIC, nanoseconds, of a `clock` event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Begin of a stall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// End of a stall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// One line of a history after the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// The line's number among the events, from 0. Absent in foreign files: a reader counts itself.
    #[serde(default)]
    pub index: u64,
    /// When the recorder learned of it.
    pub time: u64,
    /// Who: `c1`, `c1/t1` with an actor, `c1.2` after a restart, `nemesis`, `resource`, `recorder`.
    #[serde(borrow)]
    pub process: Cow<'a, str>,
    /// How it stands to its operation.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What it is about.
    pub f: Function,
    /// The lock's name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Cow<'a, str>>,
    /// Which attempt to hold the lock this belongs to; unique in a history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// The attempts behind a write under several locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<u64>,
    /// The resource's key.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// Which fault this belongs to; unique in a history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<u64>,
    /// When the operation was called, or the fault began to act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// When it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// All else.
    #[serde(borrow, default)]
    pub value: Value<'a>,
}
