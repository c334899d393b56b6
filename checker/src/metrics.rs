//! How fast, how fair, how available was the lock?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    anomalies::late_notice,
    availability::leaks,
    case::Case,
    history::Released,
    ledger::{MS, Outcome},
};

/// All metrics, by name. Units are the last word of each name.
pub(crate) fn measure(case: &Case<'_>) -> BTreeMap<String, Value> {
    let ledger = case.ledger;
    let counts = &ledger.counts;
    let asked = counts.acquires_ok + counts.acquires_busy + counts.acquires_failed + counts.acquires_info;
    let answered = counts.acquires_ok + counts.acquires_busy;
    let length = ledger.time_last.saturating_sub(ledger.time_first.unwrap_or(0));
    let leaked: u64 = leaks(case).iter().map(|leak| leak.until - leak.from).sum();
    let mut metrics = BTreeMap::new();
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    if length > 0 {
        put("acquires_per_s", json!(rounded(counts.acquires_ok as f64 * 1e9 / length as f64)));
    }
    put("acquire_ms", spread(acquire_times(case)));
    put("handover_ms", spread(handovers(case)));
    put("notice_ms", spread(notices(case)));
    put("recovery_ms", spread(recoveries(case)));
    put("leaked_ms", json!(rounded(leaked as f64 / MS as f64)));
    put("bypass_max", json!(bypass_max(case)));
    if asked > 0 {
        put("available", json!(rounded(answered as f64 / asked as f64)));
    }
    metrics
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Median, 99th percentile and maximum of nanoseconds, in milliseconds.
fn spread(mut times: Vec<u64>) -> Value {
    let Some(last) = times.len().checked_sub(1) else { return json!({}) };
    let mut at = |share: usize| {
        let (_, time, _) = times.select_nth_unstable(last * share / 100);
        rounded(*time as f64 / MS as f64)
    };
    json!({ "p50": at(50), "p99": at(99), "max": at(100) })
}

fn acquire_times(case: &Case<'_>) -> Vec<u64> {
    let ok = case.ledger.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok);
    ok.map(|attempt| attempt.acquire.end - attempt.acquire.start).collect()
}

/// From the call of a release to the grant of one who was waiting by then.
fn handovers(case: &Case<'_>) -> Vec<u64> {
    let mut times = Vec::new();
    for lock in case.locks.iter().filter(|_| case.is_mutex()) {
        for pair in lock.tenures.windows(2) {
            let (holder, next) = (case.attempt(pair[0]), case.attempt(pair[1]));
            let Some(release) = holder.release.filter(|release| release.released == Some(Released::Yes))
            else {
                continue;
            };
            let waiting = next.waited && next.acquire.start < release.call.start;
            if waiting && next.outcome == Outcome::Ok && next.acquire.end >= release.call.start {
                times.push(next.acquire.end - release.call.start);
            }
        }
    }
    times
}

fn notices(case: &Case<'_>) -> Vec<u64> {
    let places = 0..case.tenures.len() as u32;
    let notices = places.filter_map(|place| late_notice::notice(case, place));
    notices.map(|notice| notice.told_at - notice.lost_by).collect()
}

/// From the end of a fault of a lock server to the next grant.
fn recoveries(case: &Case<'_>) -> Vec<u64> {
    let faults = case.ledger.faults.iter().filter(|fault| fault.strikes_server());
    let ends: Vec<u64> = faults.filter_map(|fault| fault.end).collect();
    if ends.is_empty() {
        return Vec::new();
    }
    let ok = case.ledger.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Ok);
    let mut grants: Vec<u64> = ok.map(|attempt| attempt.acquire.end).collect();
    grants.sort_unstable();
    let next = |end: u64| grants.get(grants.partition_point(|grant| *grant < end)).map(|grant| grant - end);
    ends.into_iter().filter_map(next).collect()
}

/// The most often that one waiter was overtaken by acquires called after its own and granted before it.
pub(crate) fn bypass_max(case: &Case<'_>) -> u64 {
    let locks = case.locks.iter();
    locks
        .map(|lock| bypasses(case, &lock.tenures).into_iter().map(|(_, count)| count).max().unwrap_or(0))
        .max()
        .unwrap_or(0)
}

/// How often each waiter of a lock was overtaken. Counted with a Fenwick tree, O(n log n).
pub(crate) fn bypasses(case: &Case<'_>, tenures: &[u32]) -> Vec<(u32, u64)> {
    let granted = tenures.iter().copied().filter(|place| case.attempt(*place).outcome == Outcome::Ok);
    // In the order of their grants.
    let granted: Vec<u32> = granted.collect();
    if !granted.iter().any(|place| case.attempt(*place).waited) {
        return Vec::new();
    }
    let mut asked: Vec<u64> = granted.iter().map(|place| case.attempt(*place).acquire.start).collect();
    asked.sort_unstable();
    let mut earlier = vec![0u64; asked.len() + 1];
    let mut counts = Vec::new();
    for (before, place) in granted.into_iter().enumerate() {
        let attempt = case.attempt(place);
        let rank = asked.partition_point(|asked| *asked <= attempt.acquire.start);
        if attempt.waited {
            counts.push((place, before as u64 - prefix(&earlier, rank)));
        }
        add(&mut earlier, rank);
    }
    counts
}

fn prefix(tree: &[u64], mut rank: usize) -> u64 {
    let mut sum = 0;
    while rank > 0 {
        sum += tree[rank];
        rank &= rank - 1;
    }
    sum
}

fn add(tree: &mut [u64], mut rank: usize) {
    while rank < tree.len() {
        tree[rank] += 1;
        rank += rank & rank.wrapping_neg();
    }
}
