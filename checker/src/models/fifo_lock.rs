//! `fifo-lock`: a mutex that serves its waiters in the order in which they came.

use super::{
    Judgement, Limits, ModelKind, found,
    lock::{self},
    mutex::Mutex,
};
use crate::{
    case::{Case, ms},
    ledger::{Attempt, MS, Outcome},
    registry::{ChoiceError, Item, OptionSpec, Options},
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "fifo-lock",
        summary: "a mutex that serves its waiters in the order in which they came",
        documentation: "A mutex that never expires. An acquire is overtaken by each that was called after it and granted before it; at most `bypass` may do so. Two requests under way may pass each other before the lock has seen either: an acquire counts as waiting only when it was called `doorway_ms` ago. Acquires with a wait of 0 wait for nobody.",
        options: &[
            OptionSpec {
                name: "bypass",
                summary: "how many later acquires may be granted before one that waits",
                default: "0",
                values: &[],
            },
            OptionSpec {
                name: "doorway_ms",
                summary: "after how many milliseconds an acquire counts as waiting",
                default: "0",
                values: &[],
            },
        ],
    },
    check: |options| settings(options).map(|_| ()),
    judge,
};

/// Bypass and doorway, the latter in nanoseconds.
fn settings(options: &Options) -> Result<(u64, u64), ChoiceError> {
    let number = |name| options.parse(name, "a number from 0", |text| text.parse::<u64>().ok());
    Ok((number("bypass")?, number("doorway_ms")?.saturating_mul(MS)))
}

fn judge(case: &Case<'_>, options: &Options, limits: &Limits<'_>) -> Judgement {
    let mut judgement = lock::each(case, "fifo-lock", &Mutex, false, limits);
    if !judgement.anomalies.is_empty() || !judgement.unknown.is_empty() {
        // Only where it excludes is the order of the grants that of the answers.
        return judgement;
    }
    // Checked when the model was chosen.
    let (bypass, doorway) = settings(options).unwrap_or_default();
    let mut granted = vec![Vec::new(); case.locks.len()];
    for attempt in case.ledger.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok) {
        granted[attempt.lock as usize].push(attempt);
    }
    for (lock, mut granted) in (0..).zip(granted) {
        granted.sort_by_key(|attempt| attempt.acquire.end);
        if let Some((waiter, first)) = overtaken(&granted, bypass, doorway) {
            judgement.anomalies.push(tell(case, lock, waiter, &first, bypass));
        }
    }
    judgement
}

/// The first that was overtaken too often, and the first of those that did it: one more than may. O(n log n): a
/// waiter is looked at again only where enough later calls are among the grants before its own.
fn overtaken<'a>(
    granted: &[&'a Attempt],
    bypass: u64,
    doorway: u64,
) -> Option<(&'a Attempt, Vec<&'a Attempt>)> {
    let mut calls: Vec<u64> = granted.iter().map(|attempt| attempt.acquire.start).collect();
    calls.sort_unstable();
    let mut counts = Counts::new(calls.len());
    for (before, waiter) in granted.iter().enumerate() {
        let came = waiter.acquire.start.saturating_add(doorway);
        let earlier = counts.up_to(calls.partition_point(|call| *call <= came));
        if waiter.waited && before as u64 - earlier > bypass {
            let later = granted[..before].iter().filter(|other| other.acquire.start > came);
            return Some((waiter, later.take(bypass as usize + 1).copied().collect()));
        }
        counts.add(calls.partition_point(|call| *call < waiter.acquire.start) + 1);
    }
    None
}

/// How many of the first so many places are taken: a Fenwick tree.
struct Counts(Vec<u64>);

impl Counts {
    fn new(length: usize) -> Self {
        Self(vec![0; length + 1])
    }

    fn up_to(&self, mut place: usize) -> u64 {
        let mut sum = 0;
        while place > 0 {
            sum += self.0[place];
            place &= place - 1;
        }
        sum
    }

    fn add(&mut self, mut place: usize) {
        while place < self.0.len() {
            self.0[place] += 1;
            place += place & place.wrapping_neg();
        }
    }
}

fn tell(
    case: &Case<'_>,
    lock: u32,
    waiter: &Attempt,
    first: &[&Attempt],
    bypass: u64,
) -> crate::verdict::Anomaly {
    let about = lock::about(case, lock);
    let name = |attempt: &Attempt| case.ledger.process_name(attempt.process).to_owned();
    let overtakers: Vec<String> = first
        .iter()
        .map(|attempt| {
            let acquire = attempt.acquire;
            format!("{} (called at {}, granted by {})", name(attempt), ms(acquire.start), ms(acquire.end))
        })
        .collect();
    let text = format!(
        "Of {about}, {} waited from {} to {}, and was overtaken by {}; model 'fifo-lock' allows {bypass}.",
        name(waiter),
        ms(waiter.acquire.start),
        ms(waiter.acquire.end),
        overtakers.join(", "),
    );
    let all = first.iter().copied().chain([waiter]);
    // With their releases: without them they would all hold at once.
    let events = all.flat_map(|attempt| {
        attempt.acquire.events().chain(attempt.releases().flat_map(|release| release.call.events()))
    });
    found(&about, text, events.collect(), waiter.acquire.end)
}
