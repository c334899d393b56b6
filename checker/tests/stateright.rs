//! The search against another one that was written by others: stateright's tester of linearizability, on tiny
//! histories (it dies at a few hundred operations).

use fencepost_checker::search::{Answer, Budget, Interval, Spec, search};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use support::{Random, cases, seed};

mod support;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Acquire(u8),
    Release(u8),
    Write(u8),
    Read(u8),
}

/// A mutex and a register in one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    holder: Option<u8>,
    last: u8,
}

impl World {
    fn apply(&self, op: Op) -> Option<Self> {
        let mut next = self.clone();
        let allowed = match op {
            Op::Acquire(who) => next.holder.replace(who).is_none(),
            Op::Release(who) => next.holder.take() == Some(who),
            Op::Write(value) => {
                next.last = value;
                true
            }
            Op::Read(value) => self.last == value,
        };
        allowed.then_some(next)
    }
}

struct Ours;

impl Spec for Ours {
    type State = World;
    type Operation = Op;

    fn initial(&self) -> World {
        World::default()
    }

    fn step(&self, state: &World, op: &Op) -> Option<World> {
        state.apply(*op)
    }
}

impl SequentialSpec for World {
    type Op = Op;
    type Ret = bool;

    fn invoke(&mut self, op: &Op) -> bool {
        let next = self.apply(*op);
        let allowed = next.is_some();
        *self = next.unwrap_or_else(|| self.clone());
        allowed
    }
}

fn generate(random: &mut Random) -> Vec<Interval<Op>> {
    let count = random.between(3, 8);
    let operation = |random: &mut Random| {
        let who = random.below(3) as u8;
        match random.below(4) {
            0 => Op::Acquire(who),
            1 => Op::Release(who),
            2 => Op::Write(who + 1),
            _ => Op::Read(who),
        }
    };
    let mut now = 0;
    let mut intervals = Vec::new();
    for _ in 0..count {
        now += random.below(4);
        let start = now * 16 + intervals.len() as u64;
        let end = start + 8 + 16 * random.below(5);
        let operation = operation(random);
        let known = !random.once_in(5);
        intervals.push(Interval { operation, start, end: known.then_some(end) });
    }
    intervals
}

/// Each operation is a thread of its own: only real time orders them.
fn theirs(intervals: &[Interval<Op>]) -> bool {
    let mut moments: Vec<(u64, usize, bool)> = Vec::new();
    for (place, interval) in intervals.iter().enumerate() {
        moments.push((interval.start, place, true));
        moments.extend(interval.end.map(|end| (end, place, false)));
    }
    // At one instant calls come before returns.
    moments.sort_by_key(|(at, _, call)| (*at, !*call));
    let mut tester = LinearizabilityTester::new(World::default());
    for (_, place, call) in moments {
        let told = if call {
            tester.on_invoke(place, intervals[place].operation).map(|_| ())
        } else {
            tester.on_return(place, true).map(|_| ())
        };
        told.expect("one operation a thread");
    }
    tester.is_consistent()
}

#[test]
fn two_searches_agree() {
    let (mut valid, mut invalid) = (0, 0);
    for case in 0..cases(3_000) {
        let number = seed().wrapping_mul(3_000_017).wrapping_add(case);
        let intervals = generate(&mut Random(number));
        let ours =
            matches!(search(&Ours, &intervals, &Budget::default(), &mut || false), Answer::Found { .. });
        assert_eq!(ours, theirs(&intervals), "seed {} case {case}: {intervals:#?}", seed());
        *if ours { &mut valid } else { &mut invalid } += 1;
    }
    println!("{valid} valid and {invalid} invalid histories, no mismatch");
    assert!(valid > 100 && invalid > 100, "{valid} {invalid}");
}
