//! What can be said while a run goes on? Only what no later event can take back, from what is not yet settled.

use std::collections::{HashSet, VecDeque};

use crate::{
    anomalies::ANOMALIES,
    case::{Case, Finding},
    ledger::{FOREVER, Ledger, MS, Outcome},
    verdict::Severity,
};

/// Workers tell of an event within this time, unless they stand still: then what they do is not settled.
const LAG_NS: u64 = 200 * MS;
/// Settled tenures are kept for this time, so that one that settles later can be compared with them.
const KEPT_NS: u64 = 1_000 * MS;
/// A tenure that never settles, such as that of a client stopped for good, is not waited for any longer.
const KEPT_NS_MAX: u64 = 30_000 * MS;

/// The memory between two looks.
#[derive(Debug, Default)]
pub(crate) struct Live {
    attempts: Vec<u32>,
    attempts_seen: usize,
    accesses: Vec<u32>,
    accesses_seen: usize,
    marks: VecDeque<Mark>,
    /// The last mark that is too old to matter: what came before it is not looked at.
    old: Mark,
    told: HashSet<(usize, u32, u32)>,
    counts: Vec<u64>,
}

/// How far the ledger had grown at an earlier look.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    time: u64,
    helds: usize,
    evidence: usize,
}

impl Live {
    /// Looks again; all findings so far, by anomaly.
    pub(crate) fn look(&mut self, ledger: &Ledger) -> Vec<(&'static str, u64)> {
        self.counts.resize(ANOMALIES.len(), 0);
        self.admit(ledger);
        let until = watermark(ledger);
        let mut case = Case::part(ledger, &self.attempts, self.accesses.clone());
        case.helds_from = self.old.helds;
        case.evidence_from = self.old.evidence;
        let told_of = ANOMALIES.iter().enumerate().filter(|(_, kind)| kind.severity != Severity::Liveness);
        for (number, kind) in told_of {
            for finding in (kind.find)(&case) {
                if is_settled(&case, &finding, until) && self.told.insert(key(&case, number, &finding)) {
                    self.counts[number] += 1;
                }
            }
        }
        self.attempts = kept(&case, until);
        self.retire_accesses(ledger);
        let counted = ANOMALIES.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        counted.map(|(kind, count)| (kind.id(), *count)).collect()
    }

    fn admit(&mut self, ledger: &Ledger) {
        self.attempts.extend(self.attempts_seen as u32..ledger.attempts.len() as u32);
        self.attempts_seen = ledger.attempts.len();
        self.accesses.extend(self.accesses_seen as u32..ledger.accesses.len() as u32);
        self.accesses_seen = ledger.accesses.len();
        let now = ledger.time_last;
        self.marks.push_back(Mark { time: now, helds: ledger.helds.len(), evidence: ledger.evidence.len() });
        while self.marks.front().is_some_and(|mark| mark.time.saturating_add(KEPT_NS_MAX) < now) {
            self.old = self.marks.pop_front().unwrap_or_default();
        }
    }

    fn retire_accesses(&mut self, ledger: &Ledger) {
        let kept: HashSet<u32> = self.attempts.iter().copied().collect();
        let attempt = |access: &u32| ledger.accesses[*access as usize].attempt;
        self.accesses.retain(|access| attempt(access).is_some_and(|attempt| kept.contains(&attempt)));
    }
}

/// Of everything before this instant all is known, but for clients that stand still.
fn watermark(ledger: &Ledger) -> u64 {
    let told = ledger.time_last.saturating_sub(LAG_NS);
    // A step of the host's clock shows at the next sample only.
    ledger.clock_sample.map_or(told, |(at, _)| told.min(at))
}

fn is_settled(case: &Case<'_>, finding: &Finding, until: u64) -> bool {
    finding.certain
        && finding.firm
        && finding.at < until
        && finding.tenures.iter().all(|place| case.settled(*place, until))
}

/// What makes a finding the same in the next look, though it may meet another rival then.
fn key(case: &Case<'_>, kind: usize, finding: &Finding) -> (usize, u32, u32) {
    let [first, second] = finding.tenures.map(|place| case.tenure(place).attempt);
    match finding.subject {
        Finding::NO_SUBJECT => (kind, second, Finding::NO_SUBJECT),
        subject => (kind, first, subject),
    }
}

/// The attempts that something still to come can be compared with.
fn kept(case: &Case<'_>, until: u64) -> Vec<u32> {
    let places = 0..case.tenures.len() as u32;
    let recent = until.saturating_sub(KEPT_NS);
    let oldest = until.saturating_sub(KEPT_NS_MAX);
    let unsettled = places.clone().filter(|place| !case.settled(*place, until));
    let unsettled = unsettled.map(|place| case.attempt(place).acquire.start);
    let needed_from = unsettled.min().unwrap_or(FOREVER).min(recent).max(oldest);
    let end = |place: u32| {
        let segments = case.tenure(place).segments().map(|segment| segment.end.max(segment.start));
        segments.max().unwrap_or(0).max(case.attempt(place).acquire.end)
    };
    // Of a reentrant lock, what may hit any later hold of the same owner.
    let adrift = |place: u32| {
        let attempt = case.attempt(place);
        let release = attempt.releases().any(|release| release.outcome == Outcome::Info);
        case.contract().reentrant && (release || attempt.outcome == Outcome::Info)
    };
    let needed = |place: &u32| {
        adrift(*place)
            || end(*place) >= needed_from
            || (!case.settled(*place, until) && case.attempt(*place).acquire.start >= oldest)
    };
    let mut kept: Vec<u32> = places.filter(needed).flat_map(|place| case.members(place)).collect();
    kept.sort_unstable();
    kept
}
