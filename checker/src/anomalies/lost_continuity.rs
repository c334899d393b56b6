//! `lost-continuity`: a renewal succeeded although another owner had held the lock in between.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{Outcome, Renewal},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "lost-continuity",
        summary: "a renewal succeeded although another owner had held the lock in between",
        documentation: "A renewal answered ok, so its caller believes that the lock was its own throughout; but \
                        another owner held it since the last proof. The renewal took the lock anew instead of \
                        prolonging it, and whatever the caller had read under the lock is stale.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in 0..case.tenures.len() as u32 {
        if case.attempt(place).renewals.is_empty() || !case.exclusive(place) {
            continue;
        }
        for (number, _) in renewals(case, place) {
            if let Some(rival) = rival_before(case, place, number) {
                let at = case.attempt(place).renewals[number].by;
                findings.push(
                    Finding::new(KIND.severity, case, at, [place, rival])
                        .if_certain(case.clock_is_sound())
                        .about(number as u32),
                );
            }
        }
    }
    findings
}

/// The renewals that answered ok and can only have been of this hold, with their numbers.
pub(super) fn renewals<'a>(case: &'a Case<'_>, place: u32) -> impl Iterator<Item = (usize, &'a Renewal)> {
    let attempt = case.attempt(place);
    let ok = |renewal: &Renewal| renewal.outcome == Outcome::Ok && !renewal.reentry;
    // Of a reentrant lock it may have found what another acquire of the same owner had just got.
    let reentered = move |renewal: &Renewal| {
        let mut entries = attempt.renewals.iter().filter(|other| other.reentry);
        case.doubtful(place)
            || entries.any(|entry| entry.call.start < renewal.by && entry.by > renewal.call.start)
    };
    let renewals = attempt.renewals.iter().enumerate();
    renewals.filter(move |(_, renewal)| ok(renewal) && !reentered(renewal))
}

/// The tenure that held between the last proof of this one and the call of this renewal.
pub(super) fn rival_before(case: &Case<'_>, place: u32, number: usize) -> Option<u32> {
    let attempt = case.attempt(place);
    let called = attempt.renewals[number].call.start;
    let earlier = attempt.renewals.iter().enumerate().filter(|(other, renewal)| {
        *other != number && renewal.outcome == Outcome::Ok && renewal.by <= called
    });
    let proof = earlier.map(|(_, renewal)| renewal.by).fold(attempt.acquire.end, u64::max);
    let granted = &case.lock_of(place).granted;
    let rival = granted.latest_of_others(granted.count_before(called), attempt.owner)?;
    let between = rival.start < rival.end && rival.end > proof;
    (between && !case.tenure(place).clashes(case.tenure(rival.tenure))).then_some(rival.tenure)
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [place, rival] = finding.tenures;
    let renewal = &case.attempt(place).renewals[finding.subject as usize];
    let text = format!(
        "the renewal of lock \"{}\" by {}, called at {}, answered ok as if it had held throughout, although {} was granted the lock at {} in between and {}",
        case.lock_name(place),
        case.who(place),
        ms(renewal.call.start),
        case.who(rival),
        ms(case.attempt(rival).acquire.end),
        case.until(rival),
    );
    let mut told = Told::new(text)
        .tenure(case, place)
        .tenure(case, rival)
        .events(renewal.call.events())
        .interval(case, place, "operation", renewal.call.start, renewal.call.end);
    for segment in case.tenure(rival).segments() {
        told = told.interval(case, rival, "granted", segment.start, segment.end);
    }
    told
}
