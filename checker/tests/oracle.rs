//! The rules that are marked exact, against a search that tries every order of a small history.
//!
//! `FENCEPOST_CASES=200000 cargo test --release -p fencepost-checker --test oracle -- --ignored` is the long run.

use std::collections::HashSet;

use fencepost_checker::{
    check::Checker,
    contract::{Contract, Mode, Term, TokenSource},
    history::{Event, Function, Kind, Released},
    registry::Choice,
    search::Budget,
    verdict::Verdict,
};
use support::{Random, cases, event, header, judge, seed, text};

mod support;

/// What an operation does to the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Acquire {
        shared: bool,
        permits: u64,
        token: Option<u64>,
    },
    /// It frees the attempt's hold and says so.
    Freed,
    /// It says that there was nothing to free.
    NothingToFree,
    /// It may free the hold, if there is one.
    MayFree,
}

/// An operation of a small history. Stamps are all different.
#[derive(Clone, Copy, Debug)]
struct Op {
    attempt: usize,
    act: Act,
    start: u64,
    /// `None`: nobody knows whether and when it took effect.
    end: Option<u64>,
    returned: u64,
}

/// The lock's state in the search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    done: u64,
    held: u64,
    token: u64,
}

/// Is there an order of the operations that respects their stamps and the lock's rules?
fn explainable(ops: &[Op], contract: &Contract) -> bool {
    let all = ops.iter().enumerate().filter(|(_, op)| op.end.is_some());
    let all: u64 = all.map(|(place, _)| 1 << place).sum();
    let mut seen = HashSet::new();
    let mut open = vec![State { done: 0, held: 0, token: 0 }];
    while let Some(state) = open.pop() {
        if state.done & all == all {
            return true;
        }
        if !seen.insert(state.clone()) {
            continue;
        }
        let pending = |place: usize| state.done & (1 << place) == 0;
        let deadline = ops.iter().enumerate().filter(|(place, _)| pending(*place));
        let deadline = deadline.filter_map(|(_, op)| op.end).min().unwrap_or(u64::MAX);
        for (place, op) in ops.iter().enumerate() {
            if pending(place) && op.start < deadline {
                open.extend(step(ops, contract, &state, place));
            }
        }
    }
    false
}

fn step(ops: &[Op], contract: &Contract, state: &State, place: usize) -> Option<State> {
    let op = &ops[place];
    let bit = 1 << op.attempt;
    let mut next = state.clone();
    next.done |= 1 << place;
    match op.act {
        Act::Acquire { shared, permits, token } => {
            let mut holders = ops.iter().filter(|other| state.held & (1 << other.attempt) != 0);
            let room = match contract.mode {
                Mode::Exclusive => state.held == 0,
                Mode::Shared => holders.all(|other| match other.act {
                    Act::Acquire { shared: theirs, .. } => shared && theirs,
                    _ => true,
                }),
                Mode::Counting => {
                    let taken: u64 = holders
                        .map(|other| match other.act {
                            Act::Acquire { permits, .. } => permits,
                            _ => 0,
                        })
                        .sum();
                    taken + permits <= contract.permits
                }
            };
            if !room || token.is_some_and(|token| token <= state.token) {
                return None;
            }
            next.token = token.unwrap_or(next.token);
            next.held |= bit;
        }
        Act::Freed if state.held & bit == 0 => return None,
        Act::NothingToFree if state.held & bit != 0 => return None,
        Act::Freed | Act::MayFree => next.held &= !bit,
        Act::NothingToFree => {}
    }
    Some(next)
}

/// A random history, biased towards ones that a correct lock could have produced.
fn generate(random: &mut Random, contract: &Contract) -> Vec<Op> {
    let tokens = contract.token != TokenSource::None;
    let attempts = random.between(2, 5) as usize;
    // All stamps different: a permutation of their numbers.
    let mut stamps: Vec<u64> = (1..=attempts as u64 * 8).map(|stamp| stamp * 1_000_000).collect();
    for place in (1..stamps.len()).rev() {
        stamps.swap(place, random.below(place as u64 + 1) as usize);
    }
    let width = random.between(4, 24);
    let mut ops = Vec::new();
    for attempt in 0..attempts {
        let from = random.below(attempts as u64 * 8) * 1_000_000;
        let mut mine: Vec<u64> = stamps.drain(..6).collect();
        mine.sort_by_key(|stamp| stamp.abs_diff(from) > width * 1_000_000);
        mine.truncate(4);
        mine.sort_unstable();
        let [a0, a1, r0, r1] = mine[..] else { continue };
        let unknown = !tokens && random.once_in(4);
        let act = Act::Acquire {
            shared: contract.mode == Mode::Shared && random.once_in(2),
            permits: if contract.mode == Mode::Counting { random.between(1, 3) } else { 1 },
            token: tokens.then(|| random.between(1, 6)),
        };
        ops.push(Op { attempt, act, start: a0, end: (!unknown).then_some(a1), returned: a1 });
        let (act, end) = match (unknown, random.below(6)) {
            (_, 0) => (Act::MayFree, None),
            (_, 1) => continue,
            (true, 2) => (Act::NothingToFree, Some(r1)),
            _ => (Act::Freed, Some(r1)),
        };
        ops.push(Op { attempt, act, start: r0, end, returned: r1 });
    }
    ops
}

fn events(ops: &[Op]) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    for op in ops {
        let process = format!("c{}", op.attempt);
        let acquire = matches!(op.act, Act::Acquire { .. });
        let f = if acquire { Function::Acquire } else { Function::Release };
        let kind = if op.end.is_some() { Kind::Ok } else { Kind::Info };
        let mut invoke = event(op.start, &process, Kind::Invoke, f.clone());
        let mut done = event(op.returned, &process, kind, f);
        done.end = Some(op.returned);
        match op.act {
            Act::Acquire { shared, permits, token } => {
                invoke.value.shared = Some(shared);
                invoke.value.permits = Some(permits);
                done.value.token = token;
            }
            Act::Freed => done.value.released = Some(Released::Yes),
            Act::NothingToFree => done.value.released = Some(Released::No),
            Act::MayFree => {}
        }
        for mut event in [invoke, done] {
            event.lock = Some("l".into());
            event.attempt = Some(op.attempt as u64);
            event.start = Some(op.start);
            events.push(event);
        }
    }
    events
}

fn push_all(mut checker: Checker, events: &[Event<'static>]) -> Verdict {
    for event in events {
        checker.push(event);
    }
    checker.finish(None)
}

/// Compares checker and search on many histories; `exact` says of a verdict whether the checker objects.
fn compare(name: &str, model: &str, contract: &Contract, count: u64, objects: impl Fn(&Verdict) -> bool) {
    let header = header(contract.clone(), "");
    let (mut valid, mut invalid) = (0, 0);
    for case in 0..count {
        let number = seed().wrapping_mul(1_000_003).wrapping_add(case);
        let ops = generate(&mut Random(number), contract);
        let mut events = events(&ops);
        let verdict = judge(&header, &mut events);
        let truth = explainable(&ops, contract);
        assert_eq!(
            !objects(&verdict),
            truth,
            "{name}: seed {} case {case}, the search says {truth}:\n{}\n{}",
            seed(),
            text(&header, &events),
            verdict.summary
        );
        let choice: Choice = model.parse().expect("a choice");
        let checker = Checker::new(header.clone()).with_model(&choice, Budget::default()).expect("a model");
        let searched = push_all(checker, &events);
        assert_eq!(
            !found(&searched, "non-linearizable"),
            truth,
            "{name}: seed {} case {case}, model {model}, the search over all orders says {truth}:\n{}",
            seed(),
            text(&header, &events)
        );
        *if truth { &mut valid } else { &mut invalid } += 1;
    }
    println!("{name}: {valid} valid and {invalid} invalid histories, no mismatch");
    assert!(valid * 20 > count && invalid * 20 > count, "{name}: {valid} valid, {invalid} invalid");
}

fn found(verdict: &Verdict, id: &str) -> bool {
    verdict.anomalies.iter().any(|anomaly| anomaly.id == id && anomaly.count + anomaly.possible > 0)
}

fn mutex(count: u64) {
    compare("mutex", "mutex", &Contract::default(), count, |verdict| found(verdict, "double-grant"));
}

fn counting(count: u64) {
    let contract = Contract { mode: Mode::Counting, permits: 3, ..Contract::default() };
    compare("semaphore", "semaphore", &contract, count, |verdict| found(verdict, "double-grant"));
}

fn shared(count: u64) {
    let contract = Contract { mode: Mode::Shared, ..Contract::default() };
    compare("read-write lock", "read-write-lock", &contract, count, |verdict| found(verdict, "double-grant"));
}

fn fenced(count: u64) {
    let contract = Contract { token: TokenSource::Atomic, ..Contract::default() };
    compare("fenced mutex", "fenced-mutex", &contract, count, |verdict| {
        ["double-grant", "token-regression", "token-duplicate"].iter().any(|id| found(verdict, id))
    });
}

/// The lease rule is sound and not complete; the model is both.
fn leases(count: u64) {
    let contract = Contract { term: Term::Lease, ..Contract::default() };
    let header = header(contract.clone(), "");
    let (mut valid, mut invalid, mut missed) = (0, 0, 0);
    for case in 0..count {
        let number = seed().wrapping_mul(13_000_027).wrapping_add(case);
        let mut random = Random(number);
        let mut ops = generate(&mut random, &contract);
        let ttl_ms = random.between(2, 14);
        let mut events = events(&ops);
        for event in events.iter_mut().filter(|event| event.f == Function::Acquire) {
            event.value.ttl_ms = Some(ttl_ms);
        }
        let acquires: Vec<Op> =
            ops.iter().filter(|op| matches!(op.act, Act::Acquire { .. })).copied().collect();
        for op in acquires {
            // From then on it may end by itself: the rate of clocks and the error of stamps are the header's.
            let least = (ttl_ms * 1_000_000) as f64 * (1.0 - header.rho);
            let from = (op.start + least.floor() as u64).saturating_sub(header.epsilon_ns);
            let from = if op.end.is_some() { from } else { op.start };
            ops.push(Op { act: Act::MayFree, start: from, end: None, ..op });
        }
        let truth = explainable(&ops, &contract);
        let verdict = judge(&header, &mut events);
        let objects = found(&verdict, "double-grant");
        let say = || text(&header, &events);
        assert!(!(objects && truth), "lease: seed {} case {case}: a false alarm\n{}", seed(), say());
        let model: Choice = "lease-mutex".parse().expect("a choice");
        let checker = Checker::new(header.clone()).with_model(&model, Budget::default()).expect("a model");
        let searched = push_all(checker, &events);
        let agrees = found(&searched, "non-linearizable") != truth;
        assert!(agrees, "lease-mutex: seed {} case {case}, truth {truth}\n{}", seed(), say());
        missed += u64::from(!truth && !objects);
        *if truth { &mut valid } else { &mut invalid } += 1;
    }
    println!(
        "lease: {valid} valid and {invalid} invalid histories, no false alarm; the rule misses {missed}, the model none"
    );
    assert!(valid * 20 > count && invalid * 20 > count, "lease: {valid} valid, {invalid} invalid");
}

/// A mutex that serves its waiters in the order of their calls, against a search that counts who overtakes whom.
fn fifo(count: u64) {
    let contract = Contract::default();
    let header = header(contract.clone(), "");
    let (mut valid, mut invalid) = (0, 0);
    for case in 0..count {
        let number = seed().wrapping_mul(17_000_023).wrapping_add(case);
        let mut random = Random(number);
        let ops = generate(&mut random, &contract);
        let bypass = random.below(2);
        let mut events = events(&ops);
        for event in &mut events {
            let asks = event.f == Function::Acquire && event.kind == Kind::Invoke;
            event.value.wait_ms = asks.then_some(100);
        }
        let truth = served_in_order(&ops, &contract, bypass);
        support::number(&mut events);
        let choice: Choice = format!("fifo-lock?bypass={bypass}").parse().expect("a choice");
        let checker = Checker::new(header.clone()).with_model(&choice, Budget::default()).expect("a model");
        let verdict = push_all(checker, &events);
        assert_eq!(
            !found(&verdict, "non-linearizable"),
            truth,
            "fifo-lock: seed {} case {case}, bypass {bypass}, the search says {truth}\n{}",
            seed(),
            text(&header, &events)
        );
        *if truth { &mut valid } else { &mut invalid } += 1;
    }
    println!("fifo lock: {valid} valid and {invalid} invalid histories, no mismatch");
    assert!(valid * 20 > count && invalid * 20 > count, "fifo lock: {valid} valid, {invalid} invalid");
}

/// As [`explainable`], with a count for each waiter of those that were called later and granted before.
fn served_in_order(ops: &[Op], contract: &Contract, bypass: u64) -> bool {
    let known = |op: &Op| matches!(op.act, Act::Acquire { .. }) && op.end.is_some();
    let all = ops.iter().enumerate().filter(|(_, op)| op.end.is_some());
    let all: u64 = all.map(|(place, _)| 1 << place).sum();
    let mut seen = HashSet::new();
    let mut open = vec![(State { done: 0, held: 0, token: 0 }, [0u64; 8])];
    while let Some((state, overtaken)) = open.pop() {
        if state.done & all == all {
            return true;
        }
        if !seen.insert((state.clone(), overtaken)) {
            continue;
        }
        let pending = |place: usize| state.done & (1 << place) == 0;
        let deadline = ops.iter().enumerate().filter(|(place, _)| pending(*place));
        let deadline = deadline.filter_map(|(_, op)| op.end).min().unwrap_or(u64::MAX);
        for (place, op) in ops.iter().enumerate() {
            if !pending(place) || op.start >= deadline {
                continue;
            }
            let Some(next) = step(ops, contract, &state, place) else { continue };
            let mut counts = overtaken;
            if known(op) {
                let waits = |(number, other): &(usize, &Op)| {
                    pending(*number) && known(other) && other.start < op.start
                };
                for (_, waiter) in ops.iter().enumerate().filter(waits) {
                    counts[waiter.attempt] += 1;
                }
            }
            if counts.iter().all(|count| *count <= bypass) {
                open.push((next, counts));
            }
        }
    }
    false
}

#[test]
fn leases_and_queues_agree_with_a_search_over_all_orders() {
    leases(cases(3_000));
    fifo(cases(3_000));
}

#[test]
#[ignore = "the long run"]
fn leases_and_queues_agree_with_a_search_over_all_orders_at_night() {
    leases(cases(200_000));
    fifo(cases(200_000));
}

#[test]
fn the_exact_rules_agree_with_a_search_over_all_orders() {
    let count = cases(3_000);
    mutex(count);
    counting(count);
    shared(count);
    fenced(count);
}

#[test]
#[ignore = "the long run"]
fn the_exact_rules_agree_with_a_search_over_all_orders_at_night() {
    let count = cases(200_000);
    mutex(count);
    counting(count);
    shared(count);
    fenced(count);
}
