//! Is there an order of the operations that a model allows? A search for any model, with budgets.
//!
//! An order must keep the operations' own: what returned before another was called comes before it. The search
//! goes through calls and returns in time (just-in-time linearization: Wing & Gong 1993, Lowe 2017) and keeps
//! the *configurations* that are possible: the model's state, and which of the **open** operations have taken
//! effect. So its memory grows with what is open at one instant, not with the history.
//!
//! Operations of unknown outcome may take effect at any instant after their call, or never. Of two
//! configurations that differ only in that, the one in which fewer of them have taken effect *dominates*: it
//! allows all that the other allows. Operations that do the same ([`Spec::kin`]) stand in for each other: the one
//! that was called first goes first, so that only their count matters.

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

    /// Operations with the same number do the same to every state, so that of those of unknown outcome any may stand
    /// in for any other; `None`: nothing else does what this one does.
    fn kin(&self, _operation: &Self::Operation) -> Option<u64> {
        None
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
    /// Configurations looked at, counting those that the model refuses.
    pub configurations: u64,
    /// Memory for configurations, bytes, as the search itself counts it.
    pub bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { configurations: 200_000_000, bytes: 1 << 30 }
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
        /// When the first of those that were open then had been called, nanoseconds.
        since: u64,
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
    /// At this instant nothing that would return was open and the state was the first one again, in every order:
    /// what had returned by then has no part in it. 0: at no instant.
    pub since: u64,
    /// Operations of unknown outcome that had taken effect by then, in every order.
    pub gone: Vec<usize>,
    /// The cost.
    pub spent: Spent,
}

impl<S> Stuck<S> {
    /// How many possible states are told.
    pub const STATES_MAX: usize = 8;
}

/// One possible present: a state, and the open operations that have taken effect, in order.
#[derive(Clone, Debug)]
struct Configuration<S> {
    state: S,
    /// Of those that will return, by place.
    done: Vec<u32>,
    /// Of those of unknown outcome: how many of each family.
    applied: Vec<(u32, u32)>,
}

/// How many of each family of operations of unknown outcome have taken effect.
type Applied = Vec<(u32, u32)>;

/// Configurations, without those that another one dominates.
struct Frontier<S> {
    kept: FastMap<(S, Vec<u32>), Vec<Applied>>,
    bytes: u64,
    /// How many configurations were compared with others.
    compared: u64,
}

impl<S: Clone + Eq + Hash> Frontier<S> {
    fn new() -> Self {
        Self { kept: FastMap::default(), bytes: 0, compared: 0 }
    }

    /// Adds one, unless it is dominated; says whether it is new.
    fn add(&mut self, configuration: &Configuration<S>) -> bool {
        let key = (configuration.state.clone(), configuration.done.clone());
        let applied = &configuration.applied;
        let size = size_of::<S>() + 4 * configuration.done.len() + 8 * applied.len() + 96;
        match self.kept.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(vec![applied.clone()]);
            }
            Entry::Occupied(mut entry) => {
                self.compared += entry.get().len() as u64;
                if entry.get().iter().any(|fewer| is_within(fewer, applied)) {
                    return false;
                }
                entry.get_mut().retain(|more| !is_within(applied, more));
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

/// Has no family taken effect more often in `small`? Both in order.
fn is_within(small: &[(u32, u32)], large: &[(u32, u32)]) -> bool {
    let mut rest = large.iter();
    small.len() <= large.len()
        && small.iter().all(|(family, count)| {
            rest.find(|(other, _)| other >= family).is_some_and(|more| more.0 == *family && *count <= more.1)
        })
}

fn with(set: &[u32], item: u32) -> Vec<u32> {
    let place = set.partition_point(|other| *other < item);
    let mut larger = Vec::with_capacity(set.len() + 1);
    larger.extend_from_slice(&set[..place]);
    larger.push(item);
    larger.extend_from_slice(&set[place..]);
    larger
}

fn with_one_more(applied: &[(u32, u32)], family: u32) -> Applied {
    let mut more = Vec::with_capacity(applied.len() + 1);
    more.extend_from_slice(applied);
    match more.binary_search_by_key(&family, |(other, _)| *other) {
        Ok(place) => more[place].1 += 1,
        Err(place) => more.insert(place, (family, 1)),
    }
    more
}

fn count_of(applied: &[(u32, u32)], family: u32) -> usize {
    let place = applied.binary_search_by_key(&family, |(other, _)| *other);
    place.map_or(0, |place| applied[place].1 as usize)
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
        families: Vec::new(),
        family_of: FastMap::default(),
        open: Vec::new(),
        open_kept: 0,
        since: 0,
        gone: Vec::new(),
        ask_after: ASK_EVERY,
        spent: Spent::default(),
    };
    for moment in moments(operations) {
        match moment {
            Moment::Call(place) if operations[place as usize].end.is_some() => run.returning.push(place),
            Moment::Call(place) => run.joins(place),
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
    /// Operations of unknown outcome that do the same, each family in the order of the calls.
    families: Vec<Vec<u32>>,
    family_of: FastMap<u64, u32>,
    /// The families that may still change something.
    open: Vec<u32>,
    open_kept: usize,
    /// See [`Stuck::since`].
    since: u64,
    /// See [`Stuck::gone`]: how many of each family.
    gone: Applied,
    /// After so many more configurations the caller is asked whether to stop.
    ask_after: u64,
    spent: Spent,
}

/// The caller is asked whether to stop after so many configurations.
const ASK_EVERY: u64 = 1024;

impl<M: Spec> Run<'_, M> {
    /// One of unknown outcome is called.
    fn joins(&mut self, place: u32) {
        let new = self.families.len() as u32;
        let kin = self.spec.kin(&self.operations[place as usize].operation);
        let family = kin.map_or(new, |kin| *self.family_of.entry(kin).or_insert(new));
        if family == new {
            self.families.push(vec![place]);
            self.open.push(family);
            return;
        }
        self.families[family as usize].push(place);
        if let Err(at) = self.open.binary_search(&family) {
            self.open.insert(at, family);
        }
    }

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
            if self.spend(1, visited.bytes + after.bytes, stop) {
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
            if self.branch(&configuration, place, after.bytes, &mut visited, &mut waiting, stop) {
                return Some(self.unknown_at(place));
            }
            let compared = std::mem::take(&mut visited.compared) + std::mem::take(&mut after.compared);
            self.spent.configurations += compared;
            self.ask_after = self.ask_after.saturating_sub(compared);
        }
        self.present = after.into_configurations();
        if self.present.is_empty() {
            return Some(self.stuck_at(place, before));
        }
        self.returning.retain(|other| *other != place);
        if self.returning.is_empty() {
            self.begins_anew(place);
        }
        self.forget_inert();
        None
    }

    /// Nothing that will return is open: is the state the first one again?
    fn begins_anew(&mut self, place: u32) {
        let first = self.spec.initial();
        let Some((some, others)) = self.present.split_first() else { return };
        if some.state != first || others.iter().any(|other| other.state != first) {
            return;
        }
        self.since = self.operations[place as usize].end.unwrap_or(self.since);
        self.gone.clone_from(&some.applied);
        for other in others {
            for (family, count) in &mut self.gone {
                *count = (*count).min(count_of(&other.applied, *family) as u32);
            }
        }
    }

    /// Others of the open operations may have taken effect before; says whether the budget is spent.
    fn branch(
        &mut self,
        configuration: &Configuration<M::State>,
        place: u32,
        beside: u64,
        visited: &mut Frontier<M::State>,
        waiting: &mut Vec<Configuration<M::State>>,
        stop: &mut dyn FnMut() -> bool,
    ) -> bool {
        let (spec, operations) = (self.spec, self.operations);
        let step = |other: u32| spec.step(&configuration.state, &operations[other as usize].operation);
        for number in 0..self.returning.len() {
            let other = self.returning[number];
            if self.spend(1, visited.bytes + beside, stop) {
                return true;
            }
            if other == place || contains(&configuration.done, other) {
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
        for number in 0..self.open.len() {
            let family = self.open[number];
            if self.spend(1, visited.bytes + beside, stop) {
                return true;
            }
            let next = count_of(&configuration.applied, family);
            let Some(other) = self.families[family as usize].get(next).copied() else { continue };
            // One that changes nothing is better left for later.
            if let Some(state) = step(other).filter(|state| *state != configuration.state) {
                let applied = with_one_more(&configuration.applied, family);
                let next = Configuration { state, done: configuration.done.clone(), applied };
                if visited.add(&next) {
                    waiting.push(next);
                }
            }
        }
        false
    }

    /// Counts what was looked at; says whether the budget is spent, or the caller has had enough.
    fn spend(&mut self, configurations: u64, bytes: u64, stop: &mut dyn FnMut() -> bool) -> bool {
        self.spent.configurations += configurations;
        self.spent.bytes = self.spent.bytes.max(bytes);
        self.ask_after = self.ask_after.saturating_sub(configurations);
        let due = self.ask_after == 0;
        if due {
            self.ask_after = ASK_EVERY;
        }
        (due && stop())
            || self.spent.configurations > self.budget.configurations
            || self.spent.bytes > self.budget.bytes
    }

    fn unknown_at(&self, place: u32) -> Answer<M::State> {
        let called = self.returning.iter().map(|other| self.operations[*other as usize].start);
        let of = |family: &u32| self.families[*family as usize].len();
        Answer::Unknown {
            operation: place as usize,
            since: called.min().unwrap_or(0),
            open: self.returning.len() + self.open.iter().map(of).sum::<usize>(),
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
        let unknown = self.open.iter().flat_map(|family| &self.families[*family as usize]);
        let open = self.returning.iter().chain(unknown).filter(|other| **other != place);
        let gone = self.gone.iter().flat_map(|(family, count)| {
            self.families[*family as usize][..*count as usize].iter().map(|other| *other as usize)
        });
        Answer::Stuck(Stuck {
            operation: place as usize,
            open: open.map(|other| *other as usize).collect(),
            states,
            since: self.since,
            gone: gone.collect(),
            spent: self.spent,
        })
    }

    /// Drops operations of unknown outcome that can change nothing any more, when they have piled up.
    fn forget_inert(&mut self) {
        if self.open.len() < 2 * self.open_kept + 8 {
            return;
        }
        let (spec, operations, families, present) =
            (self.spec, self.operations, &self.families, &self.present);
        self.open.retain(|family| {
            let members = &families[*family as usize];
            let matters = |configuration: &Configuration<M::State>| {
                let next = members.get(count_of(&configuration.applied, *family));
                next.is_some_and(|place| {
                    !spec.inert(&configuration.state, &operations[*place as usize].operation)
                })
            };
            // A family may grow, and then its count tells which of it are left.
            spec.kin(&operations[members[0] as usize].operation).is_some() || present.iter().any(matters)
        });
        self.open_kept = self.open.len();
        let mut after = Frontier::new();
        for mut configuration in std::mem::take(&mut self.present) {
            configuration.applied.retain(|(family, _)| self.open.binary_search(family).is_ok());
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
        assert!((9_000..=11_000).contains(&spent.configurations), "{spent:?}");
        let budget = Budget { bytes: 100_000, ..Budget::default() };
        let Answer::Unknown { spent, .. } = answer(&operations, &budget) else { panic!("within the budget") };
        assert!((90_000..=110_000).contains(&spent.bytes), "{spent:?}");
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > 3
        };
        let stopped = search(&Register, &operations, &Budget::default(), &mut stop);
        assert!(matches!(stopped, Answer::Unknown { .. }));
    }
}
