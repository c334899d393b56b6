//! Valid histories, changed in one place so that the truth is known: what must be found is found, what must not
//! matter does not.

use fencepost_checker::{
    history::{Event, Function, Header, Kind, Released},
    readers,
    verdict::{Valid, Verdict},
};
use support::{Random, cases, judge, seed, text};

#[path = "../benches/generator/mod.rs"]
mod generator;
mod support;

fn history(number: u64) -> (Header, Vec<Event<'static>>) {
    let settings = generator::Settings {
        operations: 60,
        clients: 4,
        keys: 2,
        indeterminate: 0.1,
        double_grant: false,
        seed: number,
    };
    let mut bytes = Vec::new();
    generator::generate(&settings, &mut bytes).expect("memory takes it");
    let mut events = Vec::new();
    let finished = readers::read(bytes.as_slice(), |_, event| events.push(event.clone().into_owned()));
    (finished.expect("a history").header, events)
}

/// The places of the grants of one lock, in time.
fn grants(events: &[Event<'static>], lock: &str) -> Vec<usize> {
    let granted = |event: &Event<'_>| {
        event.kind == Kind::Ok && event.f == Function::Acquire && event.lock.as_deref() == Some(lock)
    };
    (0..events.len()).filter(|place| granted(&events[*place])).collect()
}

fn found(verdict: &Verdict, id: &str) -> bool {
    verdict.anomalies.iter().any(|anomaly| anomaly.id == id && anomaly.count > 0)
}

fn each(
    count: u64,
    mut change: impl FnMut(&mut Random, &Header, &mut Vec<Event<'static>>) -> Option<&'static str>,
) {
    let mut changed = 0;
    for case in 0..count {
        let number = seed().wrapping_mul(5_000_011).wrapping_add(case);
        let (header, mut events) = history(number);
        assert_eq!(judge(&header, &mut events).valid, Valid::True, "seed {} case {case}", seed());
        let Some(expected) = change(&mut Random(number), &header, &mut events) else { continue };
        changed += 1;
        let verdict = judge(&header, &mut events);
        assert!(
            found(&verdict, expected) || expected.is_empty() && verdict.valid == Valid::True,
            "seed {} case {case}: '{expected}' expected\n{}\n{}",
            seed(),
            verdict.summary,
            text(&header, &events)
        );
    }
    assert!(changed * 2 > count, "{changed} of {count} histories could be changed");
}

/// Stamps of an attempt's events, moved by `by`.
fn shift(events: &mut [Event<'static>], attempt: Option<u64>, by: u64) {
    for event in events.iter_mut().filter(|event| event.attempt == attempt) {
        event.time -= by;
        event.start = event.start.map(|start| start - by);
        event.end = event.end.map(|end| end - by);
        let value = &mut event.value;
        value.granted_after = value.granted_after.map(|stamp| stamp - by);
        value.granted_by = value.granted_by.map(|stamp| stamp - by);
    }
}

#[test]
fn a_grant_moved_into_another_hold_is_a_double_grant() {
    each(cases(200), |random, _, events| {
        let places = grants(events, "l0");
        let number = random.between(1, places.len() as u64) as usize;
        let (before, after) = (places[number - 1], places[number]);
        let release = events.iter().find(|event| {
            event.f == Function::Release
                && event.kind == Kind::Invoke
                && event.attempt == events[before].attempt
        })?;
        // So that it returns a microsecond before the release of the other is called.
        let by = events[after].end? - (release.start? - 1_000);
        // Of the same process it would be no other owner.
        let apart = events[before].process != events[after].process;
        let attempt = events[after].attempt;
        shift(events, attempt, by);
        apart.then_some("double-grant")
    });
}

#[test]
fn tokens_that_change_places_are_a_regression() {
    each(cases(200), |random, _, events| {
        let places = grants(events, "l1");
        let number = random.between(1, places.len() as u64) as usize;
        let (before, after) = (places[number - 1], places[number]);
        let tokens = (events[before].value.token, events[after].value.token);
        (events[after].value.token, events[before].value.token) = tokens;
        Some("token-regression")
    });
}

#[test]
fn a_token_given_twice_is_a_duplicate() {
    each(cases(200), |random, _, events| {
        let places = grants(events, "l0");
        let (one, other) = (random.below(places.len() as u64), random.below(places.len() as u64));
        events[places[one as usize]].value.token = events[places[other as usize]].value.token;
        (one != other).then_some("token-duplicate")
    });
}

#[test]
fn an_answer_that_is_lost_changes_nothing() {
    each(cases(200), |random, _, events| {
        let answers: Vec<usize> = (0..events.len()).filter(|place| events[*place].kind == Kind::Ok).collect();
        let event = &mut events[answers[random.below(answers.len() as u64) as usize]];
        event.kind = Kind::Info;
        event.value.released = None;
        if event.f == Function::Acquire {
            event.value = Default::default();
        }
        Some("")
    });
}

#[test]
fn a_release_that_says_no_more_than_ok_changes_nothing() {
    each(cases(200), |_, _, events| {
        for event in events.iter_mut().filter(|event| event.f == Function::Release) {
            event.value.released = event.value.released.map(|_| Released::Unknown);
        }
        Some("")
    });
}

#[test]
fn the_order_in_which_the_recorder_learned_changes_nothing() {
    each(cases(200), |random, _, events| {
        // Of one process in order, of different ones as the pipes have it; all judging is by stamps.
        let mut late: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
        for event in events.iter_mut() {
            let last = late.entry(event.process.to_string()).or_insert(0);
            event.time = (event.time + random.below(40_000)).max(*last);
            *last = event.time;
        }
        Some("")
    });
}
