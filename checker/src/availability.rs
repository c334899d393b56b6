//! Could the lock be had while nobody held it?

use std::num::NonZeroU64;

use crate::{
    case::{Case, LockCase},
    history::Released,
    ledger::{Attempt, FOREVER, Ledger, MS, Outcome},
};

/// A stretch in which nobody held and somebody could not get the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leak {
    /// The tenure that may have held last.
    pub(crate) last: u32,
    /// By then it was over, nanoseconds.
    pub(crate) from: u64,
    /// Its end is proven by a release.
    pub(crate) proven: bool,
    /// At some instant after this the lock was still not to be had, nanoseconds.
    pub(crate) until: u64,
    /// Who wanted it: the number of a refused acquire, or else the place of a tenure that came late.
    pub(crate) asker: u32,
    pub(crate) refused: bool,
}

/// The latest that an attempt can explain a busy lock.
#[derive(Clone, Copy, Debug)]
struct Excuse {
    asked: u64,
    place: u32,
    /// When its hold was over.
    over: u64,
    /// Until when the service may take to notice.
    until: u64,
    proven: bool,
}

/// The two excuses that last longest: one of them is not the asker's own.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    best: Option<Excuse>,
    second: Option<Excuse>,
}

impl Latest {
    fn and(self, excuse: Excuse) -> Self {
        match self.best {
            Some(best) if best.until >= excuse.until => {
                let second = self.second.filter(|second| second.until >= excuse.until).unwrap_or(excuse);
                Self { second: Some(second), ..self }
            }
            best => Self { best: Some(excuse), second: best },
        }
    }

    fn not_of(self, place: Option<u32>) -> Option<Excuse> {
        self.best.filter(|best| Some(best.place) != place).or(self.second)
    }
}

/// All leaks, one for each tenure that they follow: the longest.
pub(crate) fn leaks(case: &Case<'_>) -> Vec<Leak> {
    if !case.is_mutex() {
        return Vec::new();
    }
    let mut leaks = Vec::new();
    for (number, lock) in case.locks.iter().enumerate() {
        leaks.extend(leaks_of(case, number as u32, lock));
    }
    leaks
}

fn leaks_of(case: &Case<'_>, number: u32, lock: &LockCase) -> Vec<Leak> {
    let wants = wants(case, lock);
    if wants.is_empty() {
        return Vec::new();
    }
    let mut excuses: Vec<Excuse> = lock.tenures.iter().map(|place| excuse(case, *place)).collect();
    excuses.sort_by_key(|excuse| excuse.asked);
    let mut latest: Vec<Latest> = Vec::with_capacity(excuses.len());
    for excuse in &excuses {
        let before = latest.last().copied().unwrap_or_default();
        latest.push(before.and(*excuse));
    }
    let outages = Outages::new(case.ledger, number);
    let mut leaks: Vec<Leak> = Vec::new();
    for want in wants {
        let count = excuses.partition_point(|excuse| excuse.asked < want.asked_before);
        let latest = count.checked_sub(1).map(|last| latest[last]).unwrap_or_default();
        let Some(excuse) = latest.not_of((!want.refused).then_some(want.asker)) else { continue };
        let excused = excuse.until.saturating_add(outages.between(excuse.over, want.at));
        if want.at <= excused {
            continue;
        }
        let leak = Leak {
            last: excuse.place,
            from: excuse.over,
            proven: excuse.proven,
            until: want.at,
            asker: want.asker,
            refused: want.refused,
        };
        match leaks.last_mut() {
            Some(last) if last.last == leak.last => *last = leak,
            _ => leaks.push(leak),
        }
    }
    leaks
}

/// Somebody wanted the lock and did not have it at some instant after `at`.
struct Want {
    at: u64,
    /// Acquires called later cannot be what stood in his way.
    asked_before: u64,
    asker: u32,
    refused: bool,
}

fn wants(case: &Case<'_>, lock: &LockCase) -> Vec<Want> {
    let refused = lock.refused.iter().map(|asker| (*asker, case.ledger.refused[*asker as usize].call));
    let refused =
        refused.map(|(asker, call)| Want { at: call.start, asked_before: call.end, asker, refused: true });
    // Who was granted in the end did not have it before he sent the request that was granted.
    let late = lock.tenures.iter().map(|place| (*place, case.attempt(*place)));
    let late = late.filter(|(_, attempt)| attempt.waited && attempt.outcome == Outcome::Ok);
    let late = late.map(|(place, attempt)| Want {
        at: attempt.granted_after,
        // Where clients poll, one that asked later may be served before.
        asked_before: attempt.granted_after,
        asker: place,
        refused: false,
    });
    let mut wants: Vec<Want> = refused.chain(late).collect();
    wants.sort_by_key(|want| want.at);
    wants
}

fn excuse(case: &Case<'_>, place: u32) -> Excuse {
    let attempt = case.attempt(place);
    let grace = case.ledger.header.grace_ms.saturating_mul(MS);
    let freed = attempt
        .releases()
        .find(|release| release.outcome == Outcome::Ok && release.released != Some(Released::No));
    let asked = attempt.acquire.start;
    if let Some(freed) = freed.filter(|_| !case.contract().reentrant) {
        let over = freed.call.end;
        return Excuse { asked, place, over, until: over.saturating_add(grace), proven: true };
    }
    let over = over(case.ledger, attempt);
    let unknown = attempt.renewals.iter().filter(|renewal| renewal.outcome == Outcome::Info).count() as u64;
    let ttl = attempt.ttl_ms_max.map_or(0, NonZeroU64::get).saturating_mul(MS).saturating_mul(unknown + 1);
    let granularity = case.contract().granularity_ms.saturating_mul(MS);
    let until = over.saturating_add(ttl).saturating_add(granularity).saturating_add(grace);
    Excuse { asked, place, over, until, proven: false }
}

/// The last that is known of an attempt without a proven release.
fn over(ledger: &Ledger, attempt: &Attempt) -> u64 {
    let ends = [
        attempt.releases().map(|release| release.call.end).max(),
        attempt.lost.map(|(at, _)| at),
        ledger.death_of(attempt.process).map(|(at, _)| at),
        (attempt.outcome == Outcome::Info).then_some(attempt.acquire.end),
    ];
    let over = ends.into_iter().flatten().min().unwrap_or(FOREVER);
    let renewed = attempt.renewals.iter().map(|renewal| renewal.call.end).max().unwrap_or(0);
    over.max(renewed).max(attempt.acquire.end)
}

/// An acquire that was told that the lock is busy, and the tenure that can have held last before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phantom {
    pub(crate) last: u32,
    /// The number of the refused acquire.
    pub(crate) asker: u32,
}

/// Acquires that were told that the lock is busy though nobody can have held it at any instant of them.
pub(crate) fn phantoms(case: &Case<'_>) -> Vec<Phantom> {
    let mut phantoms = Vec::new();
    // A reentrant owner, or the members of a crowd, may hold by what the history does not count.
    if case.ledger.refused.is_empty() || !case.is_mutex() || case.contract().reentrant {
        return phantoms;
    }
    for lock in case.locks.iter().filter(|lock| !lock.refused.is_empty()) {
        // By the call of the acquire: who may hold the longest of all called so far.
        let mut holds: Vec<(u64, u64, u32)> =
            lock.tenures.iter().map(|place| may_hold(case, *place)).collect();
        holds.sort_by_key(|(asked, _, _)| *asked);
        let mut longest: Vec<(u64, u32)> = Vec::with_capacity(holds.len());
        for (_, over, place) in &holds {
            let before = longest.last().copied().filter(|(longest, _)| longest >= over);
            longest.push(before.unwrap_or((*over, *place)));
        }
        for asker in lock.refused.iter().copied() {
            let call = case.ledger.refused[asker as usize].call;
            let count = holds.partition_point(|(asked, _, _)| *asked <= call.end);
            let last = count.checked_sub(1).map(|last| longest[last]);
            if let Some((_, last)) = last.filter(|(over, _)| *over < call.start) {
                phantoms.push(Phantom { last, asker });
            }
        }
    }
    phantoms
}

/// From when on, until when and whose: an attempt may hold.
fn may_hold(case: &Case<'_>, place: u32) -> (u64, u64, u32) {
    let (attempt, tenure) = (case.attempt(place), case.tenure(place));
    // A renewal of unknown outcome may take it anew at any time.
    let adrift = attempt.renewals.iter().any(|renewal| renewal.outcome == Outcome::Info);
    let over = tenure.certain_end.filter(|_| !adrift).unwrap_or(FOREVER);
    let retaken = attempt.renewals.iter().map(|renewal| renewal.call.end).max().unwrap_or(0);
    let over = if retaken > over { FOREVER } else { over };
    (attempt.acquire.start, over, place)
}

/// Time in which a server or link is faulted, or answers errors: merged stretches with running sums.
struct Outages {
    stretches: Vec<(u64, u64)>,
    sums: Vec<u64>,
}

impl Outages {
    fn new(ledger: &Ledger, lock: u32) -> Self {
        let last = ledger.time_last;
        let faults = ledger.faults.iter().filter(|fault| fault.strikes_server());
        let faults = faults.map(|fault| (fault.begin, fault.end.unwrap_or(last)));
        let troubles = ledger.troubles.iter().filter(|trouble| trouble.lock == lock);
        let troubles = troubles.map(|trouble| (trouble.call.start, trouble.call.end.min(last)));
        let mut all: Vec<(u64, u64)> = faults.chain(troubles).collect();
        all.sort_unstable();
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match stretches.last_mut() {
                Some(stretch) if from <= stretch.1 => stretch.1 = stretch.1.max(to),
                _ => stretches.push((from, to.max(from))),
            }
        }
        let sums = stretches
            .iter()
            .scan(0, |sum, (from, to)| {
                *sum += to - from;
                Some(*sum)
            })
            .collect();
        Self { stretches, sums }
    }

    /// How much of `[from, to]` is outage, nanoseconds.
    fn between(&self, from: u64, to: u64) -> u64 {
        self.until(to).saturating_sub(self.until(from))
    }

    fn until(&self, at: u64) -> u64 {
        let count = self.stretches.partition_point(|(from, _)| *from < at);
        let Some(last) = count.checked_sub(1) else { return 0 };
        self.sums[last] - self.stretches[last].1.saturating_sub(at)
    }
}
