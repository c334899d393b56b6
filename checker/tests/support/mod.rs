//! What the proofs share: random numbers, and events built by hand.
#![allow(dead_code, reason = "each proof uses a part")]

use std::borrow::Cow;

use fencepost_checker::{
    check::Checker,
    contract::Contract,
    history::{Event, Function, Header, Kind, Value},
    verdict::{Severity, Verdict},
};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from).max(1))
    }

    /// True once in `of`.
    pub(crate) fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// How many cases: a small count for every change, the rest at night. `FENCEPOST_CASES` sets it.
pub(crate) fn cases(usual: u64) -> u64 {
    std::env::var("FENCEPOST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// Where to begin: `FENCEPOST_SEED`, else always the same. Printed when something fails.
pub(crate) fn seed() -> u64 {
    std::env::var("FENCEPOST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

pub(crate) fn header(contract: Contract, fence: &str) -> Header {
    Header { contract: Some(contract), fence: fence.to_owned(), ..Header::default() }
}

pub(crate) fn event(time: u64, process: &str, kind: Kind, f: Function) -> Event<'static> {
    Event {
        index: 0,
        time,
        process: Cow::Owned(process.to_owned()),
        kind,
        f,
        lock: None,
        attempt: None,
        attempts: Vec::new(),
        key: None,
        fault: None,
        start: None,
        end: None,
        value: Value::default(),
    }
}

/// Numbers the events in the order of their times and judges them.
pub(crate) fn judge(header: &Header, events: &mut [Event<'static>]) -> Verdict {
    number(events);
    let mut checker = Checker::new(header.clone());
    for event in events.iter() {
        checker.push(event);
    }
    checker.finish(None)
}

pub(crate) fn number(events: &mut [Event<'static>]) {
    events.sort_by_key(|event| event.time);
    for (index, event) in events.iter_mut().enumerate() {
        event.index = index as u64;
    }
}

/// The history as a file, for whoever wants to look at a failure.
pub(crate) fn text(header: &Header, events: &[Event<'static>]) -> String {
    let mut text = serde_json::to_string(header).unwrap_or_default();
    for event in events {
        text.push('\n');
        text.push_str(&serde_json::to_string(event).unwrap_or_default());
    }
    text
}

/// The ids of the certain violations.
pub(crate) fn violations(verdict: &Verdict) -> Vec<String> {
    let certain = verdict.anomalies.iter();
    let certain = certain.filter(|anomaly| anomaly.severity == Severity::Violation && anomaly.count > 0);
    certain.map(|anomaly| anomaly.id.clone()).collect()
}
