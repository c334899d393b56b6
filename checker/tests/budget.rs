//! A search ends within its budget, also where releases of unknown outcome pile up, and says what it was at.

use fencepost_checker::{
    check::Checker,
    contract::Contract,
    history::{Event, Function, Kind, Released},
    registry::Choice,
    search::Budget,
    verdict::{Valid, Verdict},
};
use support::{Random, event, header, number};

mod support;

/// Clients that take a reentrant lock in turn and get no answer to every other release.
fn reentrant(holds: u64, clients: u64, double_grant: bool) -> Vec<Event<'static>> {
    let mut random = Random(7);
    let mut events = Vec::new();
    let mut now = 1_000;
    let mut put = |client: u64, attempt: u64, f: Function, start: u64, end: u64, kind: Kind| {
        let process = format!("c{client}");
        let mut invoke = event(start, &process, Kind::Invoke, f.clone());
        let mut done = event(end, &process, kind, f.clone());
        if f == Function::Release && kind == Kind::Ok {
            done.value.released = Some(Released::Yes);
        }
        for event in [&mut invoke, &mut done] {
            event.lock = Some("l".into());
            event.attempt = Some(attempt);
            event.start = Some(start);
        }
        done.end = Some(end);
        events.extend([invoke, done]);
    };
    for attempt in 1..=holds {
        let client = random.below(clients);
        put(client, attempt, Function::Acquire, now, now + 100, Kind::Ok);
        if double_grant && attempt == holds / 2 {
            // Nobody had called a release since.
            put(clients, holds + 1, Function::Acquire, now + 110, now + 120, Kind::Ok);
            put(clients, holds + 1, Function::Release, now + 240, now + 250, Kind::Ok);
        }
        let kind = if random.once_in(2) { Kind::Info } else { Kind::Ok };
        put(client, attempt, Function::Release, now + 200, now + 230, kind);
        now += 300;
    }
    number(&mut events);
    events
}

fn judged(events: &[Event<'static>], model: &str, budget: Budget) -> Verdict {
    let contract = Contract { reentrant: true, ..Contract::default() };
    let choice: Choice = model.parse().expect("a choice");
    let mut checker = Checker::new(header(contract, "")).with_model(&choice, budget).expect("a model");
    for event in events {
        checker.push(event);
    }
    checker.finish(None)
}

#[test]
fn thousands_of_releases_of_unknown_outcome_are_no_obstacle() {
    for model in ["reentrant-mutex", "unowned-mutex", "mutex"] {
        let verdict = judged(&reentrant(10_000, 20, false), model, Budget::default());
        assert_eq!(verdict.analyses["linearizable"], Valid::True, "{model}: {}", verdict.summary);
    }
}

#[test]
fn a_budget_that_is_spent_is_unknown_with_lock_window_and_counts() {
    let budget = Budget { configurations: 20_000, ..Budget::default() };
    let verdict = judged(&reentrant(10_000, 20, false), "reentrant-mutex", budget);
    assert_eq!(verdict.analyses["linearizable"], Valid::Unknown);
    let reason = &verdict.unknown_because[0];
    for part in ["lock \"l\"", "gave up between", "operations open, after 20001 configurations"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn a_double_grant_among_them_is_found_and_told_in_short() {
    let verdict = judged(&reentrant(10_000, 20, true), "reentrant-mutex", Budget::default());
    let finding = verdict.anomalies.iter().find(|anomaly| anomaly.id == "non-linearizable");
    let finding = finding.expect("a double grant");
    assert!(finding.witness.len() <= 16, "{} events: {}", finding.witness.len(), finding.text);
}
