//! What may a lock or register do? One small file a model; each says what an operation does to a state, and the
//! search looks for an order in which all of them are allowed.
//!
//! A model of one's own is a [`Spec`](crate::search::Spec), see there for an example.

mod cas_register;
mod chain;
mod fenced_mutex;
mod fenced_register;
mod fifo_lock;
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

use std::{collections::HashSet, fmt};

use rayon::prelude::*;

use crate::{
    case::{Case, ms},
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
    pub(crate) judge: fn(&Case<'_>, &Options, &Limits<'_>) -> Judgement,
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
    fifo_lock::KIND,
    register::KIND,
    cas_register::KIND,
    fenced_register::KIND,
    multi_register::KIND,
    kv::KIND,
];

/// What a judgement may cost.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) budget: Budget,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
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
    /// Configurations looked at.
    pub(crate) spent: u64,
}

impl Judgement {
    fn join(mut self, other: Self) -> Self {
        self.anomalies.extend(other.anomalies);
        self.unknown.extend(other.unknown);
        self.spent += other.spent;
        self
    }
}

/// So many locks or keys are judged at a time. A constant, so that the same history gets the same verdict on every
/// machine: each of them has its share of the memory.
const LANES: usize = 4;

/// Judges locks or keys, each by itself and several at a time. All of them together keep to the budget: each has an
/// equal share of it, and what is left over goes to those for which that was too little.
pub(crate) fn in_parts<T: Sync>(
    parts: &[T],
    limits: &Limits<'_>,
    judge: impl Fn(&T, &Limits<'_>) -> Judgement + Sync,
) -> Judgement {
    let share = |configurations: u64, count: usize| Limits {
        budget: Budget {
            configurations: configurations / count.max(1) as u64,
            bytes: limits.budget.bytes / count.clamp(1, LANES) as u64,
        },
        stop: limits.stop,
    };
    let first = share(limits.budget.configurations, parts.len());
    let mut judgements = at_once(parts, |part| judge(part, &first));
    let again: Vec<usize> =
        (0..parts.len()).filter(|number| !judgements[*number].unknown.is_empty()).collect();
    let spent: u64 = judgements.iter().map(|judgement| judgement.spent).sum();
    let rest = share(limits.budget.configurations.saturating_sub(spent), again.len());
    let more =
        rest.budget.configurations > first.budget.configurations || rest.budget.bytes > first.budget.bytes;
    if !again.is_empty() && more && !(limits.stop)() {
        let better = at_once(&again, |number| judge(&parts[*number], &rest));
        for (number, mut judgement) in again.into_iter().zip(better) {
            judgement.spent += judgements[number].spent;
            judgements[number] = judgement;
        }
    }
    judgements.into_iter().fold(Judgement::default(), Judgement::join)
}

/// The same on each, in order, on as many threads as there are lanes and processors.
fn at_once<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(LANES);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) if items.len() > 1 && threads > 1 => pool.install(|| items.par_iter().map(&of).collect()),
        _ => items.iter().map(of).collect(),
    }
}

/// An operation as the search sees it, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Told<O> {
    pub(crate) interval: Interval<O>,
    /// In words: `c1's acquire (token 3)`.
    pub(crate) words: String,
    pub(crate) events: Vec<u64>,
    /// Operations with one number stand and fall together: leaving all of them out cannot make a valid history
    /// invalid. [`PINNED`]: it cannot be left out.
    pub(crate) unit: u64,
}

/// The unit of what others rest on.
pub(crate) const PINNED: u64 = u64::MAX;

/// Says anew which operations stand and fall together, when some have been left out.
pub(crate) type Regroup<O> = fn(&mut [Told<O>]);

/// Searches and tells.
pub(crate) fn judge<M: Spec>(
    model: &str,
    about: &About,
    spec: &M,
    operations: Vec<Told<M::Operation>>,
    regroup: Option<Regroup<M::Operation>>,
    limits: &Limits<'_>,
) -> Judgement
where
    M::Operation: Clone,
{
    let all: Vec<Interval<M::Operation>> = operations.iter().map(|told| told.interval.clone()).collect();
    let mut judgement = Judgement::default();
    match search(spec, &all, &limits.budget, &mut || (limits.stop)()) {
        Answer::Found { spent } => judgement.spent = spent.configurations,
        Answer::Unknown { operation, since, open, spent } => {
            let told = &operations[operation];
            judgement.spent = spent.configurations;
            judgement.unknown.push(format!(
                "the search under model '{model}' for {about} gave up between {} and {}, at {}, with {open} operations open, after {} configurations and {} KiB; give it more time, a larger budget, or a shorter history",
                ms(since),
                ms(told.interval.end.unwrap_or(told.interval.start)),
                told.words,
                spent.configurations,
                spent.bytes >> 10
            ));
        }
        Answer::Stuck(stuck) => {
            let spent = stuck.spent.configurations;
            let left = limits.budget.configurations.saturating_sub(spent);
            let mut smaller = Smaller { spec, limits, left, best: (operations, stuck) };
            smaller.narrow();
            smaller.leave_out();
            if let Some(regroup) = regroup {
                regroup(&mut smaller.best.0);
                smaller.leave_out();
            }
            judgement.spent = limits.budget.configurations.saturating_sub(smaller.left).max(spent);
            judgement.anomalies.push(anomaly(spec, model, about, &smaller.best));
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

/// Leaves out operations as long as what is left has no order either. It lives on what the search has left of its
/// budget: where that is spent, the explanation is longer than it need be, and as true.
struct Smaller<'a, M: Spec> {
    spec: &'a M,
    limits: &'a Limits<'a>,
    left: u64,
    best: Unexplained<M>,
}

impl<M: Spec> Smaller<'_, M>
where
    M::Operation: Clone,
{
    /// In time: the window that is still without an order.
    fn narrow(&mut self) {
        let at = self.best.0[self.best.1.operation].interval.end.unwrap_or(u64::MAX);
        // What was called after that had returned has no part in it: the search had not seen it yet.
        let gone: HashSet<usize> = self.best.1.gone.iter().copied().collect();
        let since = self.best.1.since;
        let early = |place, told: &Told<M::Operation>| match told.interval.end {
            Some(end) => end <= since,
            None => gone.contains(&place),
        };
        let window = |place, told: &Told<M::Operation>| told.interval.start <= at && !early(place, told);
        if since == 0 || !self.keep_placed(window) {
            self.keep(|told| told.interval.start <= at);
        }
        let mut distance = 1u64 << 20;
        while distance < at {
            let near = |told: &Told<M::Operation>| {
                told.interval.start <= at && told.interval.end.unwrap_or(told.interval.start) >= at - distance
            };
            let units: HashSet<u64> =
                self.best.0.iter().filter(|told| near(told)).map(|told| told.unit).collect();
            if self.keep(|told| told.unit == PINNED || units.contains(&told.unit)) {
                break;
            }
            distance *= 8;
        }
    }

    /// By unit: many at a time, then one at a time. One pass will do: of a set of units without an order that has
    /// one if a unit is left out, each part has one without that unit, too.
    fn leave_out(&mut self) {
        let mut units: Vec<u64> = self.best.0.iter().map(|told| told.unit).collect();
        units.sort_unstable();
        units.dedup();
        units.retain(|unit| *unit != PINNED);
        let mut share = units.len().div_ceil(2);
        while share > 0 {
            let mut rest = units.clone();
            while !rest.is_empty() {
                if self.left == 0 || (self.limits.stop)() {
                    return;
                }
                let some: HashSet<u64> =
                    rest.split_off(rest.len().saturating_sub(share)).into_iter().collect();
                if self.keep(|told| !some.contains(&told.unit)) {
                    units.retain(|unit| !some.contains(unit));
                }
            }
            share /= 2;
        }
    }

    /// Keeps some of the operations, if they still have no order; says whether.
    fn keep(&mut self, keep: impl Fn(&Told<M::Operation>) -> bool) -> bool {
        self.keep_placed(|_, told| keep(told))
    }

    fn keep_placed(&mut self, keep: impl Fn(usize, &Told<M::Operation>) -> bool) -> bool {
        let placed = self.best.0.iter().enumerate();
        let kept: Vec<Told<M::Operation>> =
            placed.filter(|(place, told)| keep(*place, told)).map(|(_, told)| told.clone()).collect();
        let intervals: Vec<Interval<M::Operation>> = kept.iter().map(|told| told.interval.clone()).collect();
        let budget = Budget { configurations: self.left, ..self.limits.budget };
        let answer = search(self.spec, &intervals, &budget, &mut || (self.limits.stop)());
        let (spent, stuck) = match answer {
            Answer::Stuck(stuck) => (stuck.spent, Some(stuck)),
            Answer::Found { spent } | Answer::Unknown { spent, .. } => (spent, None),
        };
        // A search that looks at nothing costs something, too.
        self.left = self.left.saturating_sub(spent.configurations.max(1));
        let Some(stuck) = stuck else { return false };
        self.best = (kept, stuck);
        true
    }
}

fn anomaly<M: Spec>(spec: &M, model: &str, about: &About, unexplained: &Unexplained<M>) -> Anomaly {
    let (operations, stuck) = unexplained;
    let culprit = &operations[stuck.operation];
    let mut states: Vec<String> = stuck.states.iter().map(|state| spec.describe(state)).collect();
    states.sort();
    let words: Vec<&str> = operations.iter().map(|told| told.words.as_str()).collect();
    let text = format!(
        "Of {about}, these operations have no order that model '{model}' allows: {}; before {} took effect, {} possible: {}, and {} what it did.",
        words.join(", "),
        culprit.words,
        if states.len() == 1 { "only this was" } else { "only these were" },
        states.join("; or "),
        if states.len() == 1 {
            "there it cannot have returned"
        } else {
            "in none of them can it have returned"
        },
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
