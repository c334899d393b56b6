//! Is there an order of the operations that a model allows? A search for any model, with budgets.
//!
//! An order must keep the operations' own: what returned before another was called comes before it. The search
//! goes through calls and returns in time (just-in-time linearization: Wing & Gong 1993, Lowe 2017) and keeps
//! the *configurations* that are possible: the model's state, and which of the **open** operations have taken
//! effect. So its memory grows with what is open at one instant, not with the history.
//!
//! Operations of unknown outcome may take effect at any instant after their call, or never. Of two
//! configurations that differ only in that, the one in which fewer of them have taken effect *dominates*: it
//! allows all that the other allows.

use std::{collections::hash_map::Entry, fmt::Debug, hash::Hash};

use crate::names::FastMap;

/// A model: what each operation does to a state.
///
/// ```
/// use fencepost_checker::search::{search, Answer, Budget, Interval, Spec};
///
/// /// A counter that returns its new value.
/// struct Counter;
///
/// impl Spec for Counter {
///     type State = u64;
///     type Operation = u64; // what an increment returned
///
///     fn initial(&self) -> u64 {
///         0
///     }
///
///     fn step(&self, state: &u64, returned: &u64) -> Option<u64> {
///         (state + 1 == *returned).then_some(state + 1)
///     }
/// }
///
/// // Two increments at once may return 1 and 2 in either order ...
/// let concurrent = [Interval::known(2, 0, 10), Interval::known(1, 5, 15)];
/// assert!(matches!(search(&Counter, &concurrent, &Budget::default(), &mut || false), Answer::Found { .. }));
/// // ... but not if one had returned before the other was called.
/// let after = [Interval::known(2, 0, 10), Interval::known(1, 11, 15)];
/// assert!(matches!(search(&Counter, &after, &Budget::default(), &mut || false), Answer::Stuck(_)));
/// ```
pub trait Spec {
    /// What the modelled thing remembers.
    type State: Clone + Eq + Hash + Debug;
    /// What is done to it, with what it returned.
    type Operation;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after an operation; `None` if it cannot have returned what it did in this state.
    fn step(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;

    /// A state in words.
    fn describe(&self, state: &Self::State) -> String {
        format!("{state:?}")
    }

    /// Can this operation change nothing any more, from this state on, whatever comes? Those of unknown
    /// outcome for which this holds are forgotten, so that they do not pile up.
    fn inert(&self, _state: &Self::State, _operation: &Self::Operation) -> bool {
        false
    }
}

/// An operation and when it was open.
#[derive(Clone, Debug)]
pub struct Interval<O> {
    /// The operation.
    pub operation: O,
    /// When it was called, nanoseconds.
    pub start: u64,
    /// When it had returned, nanoseconds; `None`: it may take effect at any instant after its call, or never.
    pub end: Option<u64>,
}

impl<O> Interval<O> {
    /// An operation that returned.
    pub fn known(operation: O, start: u64, end: u64) -> Self {
        Self { operation, start, end: Some(end) }
    }

    /// An operation of unknown outcome.
    pub fn unknown(operation: O, start: u64) -> Self {
        Self { operation, start, end: None }
    }
}

/// What a search may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Configurations looked at.
    pub configurations: u64,
    /// Memory for configurations, bytes, as the search itself counts it.
    pub bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { configurations: 20_000_000, bytes: 1 << 30 }
    }
}

/// What a search spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Configurations looked at.
    pub configurations: u64,
    /// The most memory that configurations took at a time, bytes.
    pub bytes: u64,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub enum Answer<S> {
    /// There is an order.
    Found {
        /// The cost.
        spent: Spent,
    },
    /// There is none.
    Stuck(Stuck<S>),
    /// The budget is spent, or the caller said stop.
    Unknown {
        /// The operation, by its place, at whose return the search was.
        operation: usize,
        /// How many operations were open then.
        open: usize,
        /// The cost.
        spent: Spent,
    },
}

/// Where a search ended.
#[derive(Clone, Debug)]
pub struct Stuck<S> {
    /// The operation, by its place, that cannot have returned what it did.
    pub operation: usize,
    /// The operations that were open with it.
    pub open: Vec<usize>,
    /// The states that were possible before it, at most [`Stuck::STATES_MAX`].
    pub states: Vec<S>,
    /// The cost.
    pub spent: Spent,
}

impl<S> Stuck<S> {
    /// How many possible states are told.
    pub const STATES_MAX: usize = 8;
}

/// One possible present: a state, and the open operations that have taken effect, by place, in order.
#[derive(Clone, Debug)]
struct Configuration<S> {
    state: S,
    /// Of those that will return.
    done: Vec<u32>,
    /// Of those of unknown outcome.
    applied: Vec<u32>,
}

/// Configurations, without those that another one dominates.
struct Frontier<S> {
    kept: FastMap<(S, Vec<u32>), Vec<Vec<u32>>>,
    bytes: u64,
}

impl<S: Clone + Eq + Hash> Frontier<S> {
    fn new() -> Self {
        Self { kept: FastMap::default(), bytes: 0 }
    }

    /// Adds one, unless it is dominated; says whether it is new.
    fn add(&mut self, configuration: &Configuration<S>) -> bool {
        let key = (configuration.state.clone(), configuration.done.clone());
        let applied = &configuration.applied;
        let size = size_of::<S>() + 4 * (configuration.done.len() + applied.len()) + 96;
        match self.kept.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(vec![applied.clone()]);
            }
            Entry::Occupied(mut entry) => {
                if entry.get().iter().any(|fewer| is_subset(fewer, applied)) {
                    return false;
                }
                entry.get_mut().retain(|more| !is_subset(applied, more));
                entry.get_mut().push(applied.clone());
            }
        }
        self.bytes += size as u64;
        true
    }

    fn into_configurations(self) -> Vec<Configuration<S>> {
        let all = self.kept.into_iter().flat_map(|((state, done), sets)| {
            sets.into_iter().map(move |applied| Configuration {
                state: state.clone(),
                done: done.clone(),
                applied,
            })
        });
        all.collect()
    }
}

/// Both in order.
fn is_subset(small: &[u32], large: &[u32]) -> bool {
    let mut rest = large.iter();
    small.len() <= large.len() && small.iter().all(|item| rest.any(|other| other == item))
}

fn with(set: &[u32], item: u32) -> Vec<u32> {
    let place = set.partition_point(|other| *other < item);
    let mut larger = Vec::with_capacity(set.len() + 1);
    larger.extend_from_slice(&set[..place]);
    larger.push(item);
    larger.extend_from_slice(&set[place..]);
    larger
}

fn contains(set: &[u32], item: u32) -> bool {
    set.binary_search(&item).is_ok()
}

/// Looks for an order of the operations that the model allows. `stop` is asked now and then whether the caller
/// has had enough.
pub fn search<M: Spec>(
    spec: &M,
    operations: &[Interval<M::Operation>],
    budget: &Budget,
    stop: &mut dyn FnMut() -> bool,
) -> Answer<M::State> {
    let first = Configuration { state: spec.initial(), done: Vec::new(), applied: Vec::new() };
    let mut run = Run {
        spec,
        operations,
        budget,
        present: vec![first],
        returning: Vec::new(),
        unknown: Vec::new(),
        unknown_kept: 0,
        spent: Spent::default(),
    };
    for moment in moments(operations) {
        match moment {
            Moment::Call(place) if operations[place as usize].end.is_some() => run.returning.push(place),
            Moment::Call(place) => run.unknown.push(place),
            Moment::Return(place) => {
                if let Some(answer) = run.returns(place, stop) {
                    return answer;
                }
            }
        }
    }
    Answer::Found { spent: run.spent }
}

#[derive(Clone, Copy)]
enum Moment {
    Call(u32),
    Return(u32),
}

/// Calls and returns in time; at one instant calls first, for an order is only forced by what ended *before*.
fn moments<O>(operations: &[Interval<O>]) -> Vec<Moment> {
    let mut moments = Vec::with_capacity(operations.len() * 2);
    for (place, operation) in operations.iter().enumerate() {
        moments.push((operation.start, 0, Moment::Call(place as u32)));
        if let Some(end) = operation.end {
            moments.push((end, 1, Moment::Return(place as u32)));
        }
    }
    moments.sort_by_key(|(at, order, _)| (*at, *order));
    moments.into_iter().map(|(_, _, moment)| moment).collect()
}

struct Run<'a, M: Spec> {
    spec: &'a M,
    operations: &'a [Interval<M::Operation>],
    budget: &'a Budget,
    present: Vec<Configuration<M::State>>,
    /// Open operations that will return.
    returning: Vec<u32>,
    /// Open operations of unknown outcome.
    unknown: Vec<u32>,
    unknown_kept: usize,
    spent: Spent,
}

impl<M: Spec> Run<'_, M> {
    /// By now this operation has taken effect: keeps the configurations in which it has.
    fn returns(&mut self, place: u32, stop: &mut dyn FnMut() -> bool) -> Option<Answer<M::State>> {
        let before = std::mem::take(&mut self.present);
        let mut after = Frontier::new();
        let mut visited = Frontier::new();
        let mut waiting = Vec::new();
        for configuration in &before {
            visited.add(configuration);
            waiting.push(configuration.clone());
        }
        while let Some(configuration) = waiting.pop() {
            self.spent.configurations += 1;
            self.spent.bytes = self.spent.bytes.max(visited.bytes + after.bytes);
            if self.is_exhausted(stop) {
                return Some(self.unknown_at(place));
            }
            if contains(&configuration.done, place) {
                let mut configuration = configuration;
                configuration.done.retain(|other| *other != place);
                after.add(&configuration);
                continue;
            }
            let operation = &self.operations[place as usize].operation;
            if let Some(state) = self.spec.step(&configuration.state, operation) {
                after.add(&Configuration { state, ..configuration.clone() });
            }
            self.branch(&configuration, place, &mut visited, &mut waiting);
        }
        self.present = after.into_configurations();
        if self.present.is_empty() {
            return Some(self.stuck_at(place, before));
        }
        self.returning.retain(|other| *other != place);
        self.forget_inert();
        None
    }

    /// Others of the open operations may have taken effect before.
    fn branch(
        &self,
        configuration: &Configuration<M::State>,
        place: u32,
        visited: &mut Frontier<M::State>,
        waiting: &mut Vec<Configuration<M::State>>,
    ) {
        let step =
            |other: u32| self.spec.step(&configuration.state, &self.operations[other as usize].operation);
        for other in self.returning.iter().copied().filter(|other| *other != place) {
            if contains(&configuration.done, other) {
                continue;
            }
            if let Some(state) = step(other) {
                let done = with(&configuration.done, other);
                let next = Configuration { state, done, applied: configuration.applied.clone() };
                if visited.add(&next) {
                    waiting.push(next);
                }
            }
        }
        for other in self.unknown.iter().copied() {
            if contains(&configuration.applied, other) {
                continue;
            }
            // One that changes nothing is better left for later.
            if let Some(state) = step(other).filter(|state| *state != configuration.state) {
                let applied = with(&configuration.applied, other);
                let next = Configuration { state, done: configuration.done.clone(), applied };
                if visited.add(&next) {
                    waiting.push(next);
                }
            }
        }
    }

    fn is_exhausted(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        let asked = self.spent.configurations.is_multiple_of(1024) && stop();
        asked
            || self.spent.configurations > self.budget.configurations
            || self.spent.bytes > self.budget.bytes
    }

    fn unknown_at(&self, place: u32) -> Answer<M::State> {
        Answer::Unknown {
            operation: place as usize,
            open: self.returning.len() + self.unknown.len(),
            spent: self.spent,
        }
    }

    fn stuck_at(&self, place: u32, before: Vec<Configuration<M::State>>) -> Answer<M::State> {
        let mut states: Vec<M::State> = Vec::new();
        for configuration in before {
            if states.len() < Stuck::<M::State>::STATES_MAX && !states.contains(&configuration.state) {
                states.push(configuration.state);
            }
        }
        let open = self.returning.iter().chain(&self.unknown).filter(|other| **other != place);
        Answer::Stuck(Stuck {
            operation: place as usize,
            open: open.map(|other| *other as usize).collect(),
            states,
            spent: self.spent,
        })
    }

    /// Drops operations of unknown outcome that can change nothing any more, when they have piled up.
    fn forget_inert(&mut self) {
        if self.unknown.len() < 2 * self.unknown_kept + 8 {
            return;
        }
        let (spec, operations, present) = (self.spec, self.operations, &self.present);
        self.unknown.retain(|place| {
            let operation = &operations[*place as usize].operation;
            let matters = |configuration: &Configuration<M::State>| {
                !contains(&configuration.applied, *place) && !spec.inert(&configuration.state, operation)
            };
            present.iter().any(matters)
        });
        self.unknown_kept = self.unknown.len();
        let mut after = Frontier::new();
        for mut configuration in std::mem::take(&mut self.present) {
            configuration.applied.retain(|place| self.unknown.contains(place));
            after.add(&configuration);
        }
        self.present = after.into_configurations();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: a write, or a read of what it returned.
    struct Register;

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Write(u64),
        Read(u64),
    }

    impl Spec for Register {
        type State = u64;
        type Operation = Act;

        fn initial(&self) -> u64 {
            0
        }

        fn step(&self, state: &u64, act: &Act) -> Option<u64> {
            match act {
                Act::Write(value) => Some(*value),
                Act::Read(value) => (state == value).then_some(*state),
            }
        }
    }

    fn answer(operations: &[Interval<Act>], budget: &Budget) -> Answer<u64> {
        search(&Register, operations, budget, &mut || false)
    }

    #[test]
    fn more_than_64_open_operations_are_no_limit() {
        let mut operations: Vec<_> = (1..=200).map(|value| Interval::unknown(Act::Write(value), 0)).collect();
        operations.push(Interval::known(Act::Read(150), 10, 20));
        operations.push(Interval::known(Act::Read(151), 30, 40));
        assert!(matches!(answer(&operations, &Budget::default()), Answer::Found { .. }));
        operations.push(Interval::known(Act::Read(150), 50, 60));
        // 150 was written once, and cannot be written again.
        assert!(matches!(answer(&operations, &Budget::default()), Answer::Stuck(_)));
    }

    #[test]
    fn a_stuck_search_says_where_and_from_which_states() {
        let operations = [
            Interval::known(Act::Write(1), 0, 10),
            Interval::known(Act::Write(2), 5, 15),
            Interval::known(Act::Read(3), 20, 30),
        ];
        let Answer::Stuck(stuck) = answer(&operations, &Budget::default()) else {
            panic!("an order of nonsense")
        };
        let mut states = stuck.states;
        states.sort_unstable();
        assert_eq!((stuck.operation, states), (2, vec![1, 2]));
    }

    #[test]
    fn budgets_are_obeyed() {
        let mut operations: Vec<_> =
            (1..=24).map(|value| Interval::known(Act::Write(value), 0, 100)).collect();
        operations.push(Interval::known(Act::Read(99), 200, 300));
        let budget = Budget { configurations: 10_000, ..Budget::default() };
        let Answer::Unknown { spent, .. } = answer(&operations, &budget) else { panic!("within the budget") };
        assert!(spent.configurations <= 11_000, "{spent:?}");
        let budget = Budget { bytes: 100_000, ..Budget::default() };
        let Answer::Unknown { spent, .. } = answer(&operations, &budget) else { panic!("within the budget") };
        assert!(spent.bytes <= 110_000, "{spent:?}");
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > 3
        };
        let stopped = search(&Register, &operations, &Budget::default(), &mut stop);
        assert!(matches!(stopped, Answer::Unknown { .. }));
    }
}
