//! What may a lock or register do? One small file a model; each says what an operation does to a state, and the
//! search looks for an order in which all of them are allowed.
//!
//! A model of one's own is a [`Spec`](crate::search::Spec), see there for an example.

mod cas_register;
mod chain;
mod fenced_mutex;
mod fenced_register;
mod kv;
mod lease_mutex;
pub(crate) mod lock;
mod multi_register;
mod mutex;
mod read_write_lock;
mod reentrant_fenced_mutex;
mod reentrant_mutex;
pub(crate) mod register;
mod semaphore;
mod unowned_mutex;
mod zones;

use std::fmt;

use crate::{
    case::Case,
    registry::{ChoiceError, Item, Options},
    search::{Answer, Budget, Interval, Spec, Stuck, search},
    verdict::{Anomaly, Severity},
};

/// A model, as listed by `fencepost list models`.
#[derive(Clone, Copy, Debug)]
pub struct ModelKind {
    /// Its name, summary, documentation and options.
    pub item: Item,
    /// Refuses option values that make no sense.
    pub(crate) check: fn(&Options) -> Result<(), ChoiceError>,
    pub(crate) judge: fn(&Case<'_>, &Options, &mut Limits<'_>) -> Judgement,
}

/// Every model.
pub const MODELS: &[ModelKind] = &[
    mutex::KIND,
    unowned_mutex::KIND,
    lease_mutex::KIND,
    fenced_mutex::KIND,
    reentrant_mutex::KIND,
    reentrant_fenced_mutex::KIND,
    semaphore::KIND,
    read_write_lock::KIND,
    register::KIND,
    cas_register::KIND,
    fenced_register::KIND,
    multi_register::KIND,
    kv::KIND,
];

/// What a judgement may cost.
pub(crate) struct Limits<'a> {
    pub(crate) budget: Budget,
    pub(crate) stop: &'a mut dyn FnMut() -> bool,
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// What a model says of a history.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) anomalies: Vec<Anomaly>,
    pub(crate) unknown: Vec<String>,
}

/// An operation as the search sees it, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Told<O> {
    pub(crate) interval: Interval<O>,
    /// In words: `c1's acquire (token 3)`.
    pub(crate) words: String,
    pub(crate) events: Vec<u64>,
    /// Operations with one number stand and fall together: leaving all of them out cannot make a valid history
    /// invalid.
    pub(crate) unit: u64,
}

/// Searches and tells.
pub(crate) fn judge<M: Spec>(
    model: &str,
    about: &About,
    spec: &M,
    operations: Vec<Told<M::Operation>>,
    limits: &mut Limits<'_>,
) -> Judgement
where
    M::Operation: Clone,
{
    let all: Vec<Interval<M::Operation>> = operations.iter().map(|told| told.interval.clone()).collect();
    let mut judgement = Judgement::default();
    match search(spec, &all, &limits.budget, limits.stop) {
        Answer::Found { .. } => {}
        Answer::Unknown { operation, open, spent } => judgement.unknown.push(format!(
            "the search under model '{model}' for {about} gave up at {} with {open} operations open, after {} configurations and {} MiB",
            operations[operation].words,
            spent.configurations,
            spent.bytes >> 20
        )),
        Answer::Stuck(stuck) => {
            let small = smallest(spec, operations, stuck, limits);
            judgement.anomalies.push(anomaly(spec, model, about, &small));
        }
    }
    judgement
}

/// What was searched.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) lock: Option<String>,
    pub(crate) key: Option<String>,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.lock, &self.key) {
            (Some(lock), _) => write!(f, "lock \"{lock}\""),
            (None, Some(key)) => write!(f, "key \"{key}\""),
            (None, None) => f.write_str("all keys"),
        }
    }
}

/// Operations without an order, and where the search for one got stuck.
type Unexplained<M> = (Vec<Told<<M as Spec>::Operation>>, Stuck<<M as Spec>::State>);

/// Leaves out units as long as what is left has no order either: first all that is far from where the search got
/// stuck, then one at a time.
fn smallest<M: Spec>(
    spec: &M,
    operations: Vec<Told<M::Operation>>,
    stuck: Stuck<M::State>,
    limits: &mut Limits<'_>,
) -> Unexplained<M>
where
    M::Operation: Clone,
{
    const TRIES_MAX: usize = 2_000;
    let mut best = (operations, stuck);
    let mut tries = 0;
    let at = best.0[best.1.operation].interval.end.unwrap_or(u64::MAX);
    // What was called after that had returned has no part in it: the search had not seen it yet.
    if let Some(seen) = kept(spec, &best.0, |told| told.interval.start <= at, limits) {
        best = seen;
    }
    let mut distance = 1u64 << 20;
    while distance < at {
        let near = |told: &Told<M::Operation>| {
            told.interval.start <= at && told.interval.end.unwrap_or(told.interval.start) >= at - distance
        };
        let units: std::collections::HashSet<u64> =
            best.0.iter().filter(|told| near(told)).map(|told| told.unit).collect();
        if let Some(smaller) = without(spec, &best.0, |unit| !units.contains(&unit), limits) {
            best = smaller;
            break;
        }
        distance *= 8;
    }
    let mut units: Vec<u64> = best.0.iter().map(|told| told.unit).collect();
    units.sort_unstable();
    units.dedup();
    let mut share = units.len().div_ceil(2);
    while share > 0 && tries < TRIES_MAX {
        let mut rest = units.clone();
        while !rest.is_empty() && tries < TRIES_MAX {
            tries += 1;
            let some: Vec<u64> = rest.split_off(rest.len().saturating_sub(share));
            if let Some(smaller) = without(spec, &best.0, |unit| some.contains(&unit), limits) {
                best = smaller;
                units.retain(|unit| !some.contains(unit));
            }
        }
        share /= 2;
    }
    best
}

/// What is left without some units, if it still has no order.
fn without<M: Spec>(
    spec: &M,
    operations: &[Told<M::Operation>],
    leave_out: impl Fn(u64) -> bool,
    limits: &mut Limits<'_>,
) -> Option<Unexplained<M>>
where
    M::Operation: Clone,
{
    kept(spec, operations, |told| !leave_out(told.unit), limits)
}

/// Some of the operations, if they still have no order.
fn kept<M: Spec>(
    spec: &M,
    operations: &[Told<M::Operation>],
    keep: impl Fn(&Told<M::Operation>) -> bool,
    limits: &mut Limits<'_>,
) -> Option<Unexplained<M>>
where
    M::Operation: Clone,
{
    let kept: Vec<Told<M::Operation>> = operations.iter().filter(|told| keep(told)).cloned().collect();
    let intervals: Vec<Interval<M::Operation>> = kept.iter().map(|told| told.interval.clone()).collect();
    match search(spec, &intervals, &limits.budget, limits.stop) {
        Answer::Stuck(stuck) => Some((kept, stuck)),
        Answer::Found { .. } | Answer::Unknown { .. } => None,
    }
}

fn anomaly<M: Spec>(spec: &M, model: &str, about: &About, unexplained: &Unexplained<M>) -> Anomaly {
    let (operations, stuck) = unexplained;
    let culprit = &operations[stuck.operation];
    let mut states: Vec<String> = stuck.states.iter().map(|state| spec.describe(state)).collect();
    states.sort();
    let words: Vec<&str> = operations.iter().map(|told| told.words.as_str()).collect();
    let text = format!(
        "Of {about}, these operations have no order that model '{model}' allows: {}; {} cannot have come about in any state that was possible before it: {}.",
        words.join(", "),
        culprit.words,
        states.join("; or ")
    );
    let witness = operations.iter().flat_map(|told| told.events.iter().copied());
    found(about, text, witness.collect(), culprit.interval.end.unwrap_or(culprit.interval.start))
}

/// The finding that a history does not fit a model.
pub(crate) fn found(about: &About, text: String, mut witness: Vec<u64>, at: u64) -> Anomaly {
    witness.sort_unstable();
    witness.dedup();
    Anomaly {
        id: "non-linearizable".to_owned(),
        severity: Severity::Violation,
        lock: about.lock.clone(),
        count: 1,
        possible: 0,
        text,
        witness,
        intervals: Vec::new(),
        at_ns: at,
        during: Vec::new(),
        assumes: Vec::new(),
    }
}
