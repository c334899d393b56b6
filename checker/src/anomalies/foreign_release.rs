//! `foreign-release`: a release succeeded after the hold had certainly ended.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    contract::ReleaseCheck,
    history::Released,
    ledger::Outcome,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "foreign-release",
        summary: "a release succeeded after the hold had certainly ended",
        documentation: "A release that checks the owner answered that it freed the lock, although its tenure had \
                        certainly ended before it was called. It freed somebody else's lock, or it lies.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    if case.contract().release != ReleaseCheck::OwnerChecked {
        return Vec::new();
    }
    late_releases(case, KIND.severity)
}

/// Releases that freed the lock, as they said, after their own hold had certainly ended.
pub(super) fn late_releases(case: &Case<'_>, severity: Severity) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in 0..case.tenures.len() as u32 {
        for (number, release) in case.attempt(place).releases().enumerate() {
            let freed = release.outcome == Outcome::Ok && release.released == Some(Released::Yes);
            let over = over_before(case, place, release.call.start, true);
            if freed && over.is_some_and(|over| release.call.start > over) {
                findings.push(
                    Finding::new(severity, case, release.call.end, [place, place])
                        .if_certain(case.clock_is_sound())
                        .about(number as u32),
                );
            }
        }
    }
    findings
}

/// By when the hold was over for certain, as far as can be said of an instant `at`; `abandoned`: the library
/// may have left a renewal behind by then.
pub(super) fn over_before(case: &Case<'_>, place: u32, at: u64, abandoned: bool) -> Option<u64> {
    let attempt = case.attempt(place);
    let lease = case.bounds.lease_over(attempt, at, abandoned);
    if case.contract().reentrant {
        return lease;
    }
    let freed = attempt.releases().filter(|release| {
        release.outcome == Outcome::Ok && release.released == Some(Released::Yes) && release.call.end < at
    });
    // Only a renewal can have taken it anew since.
    let renewed = attempt.renewals.iter().map(|renewal| renewal.call.end).max().unwrap_or(0);
    let freed = freed.map(|release| release.call.end).filter(|end| *end > renewed).min();
    [lease, freed].into_iter().flatten().min()
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let Some(release) = case.attempt(place).releases().nth(finding.subject as usize) else {
        return Told::default();
    };
    let (start, end) = (release.call.start, release.call.end);
    let owner = case.attempt(place).owner;
    let victim = case.lock_of(place).granted.enclosing(start, end, owner).map(|span| span.tenure);
    let whose = match victim {
        Some(victim) => format!("it freed the lock of {}", case.who(victim)),
        None => "whose lock it freed cannot be said".to_owned(),
    };
    let text = format!(
        "{} called the release of lock \"{}\" at {} and was told that it freed it, although its own hold had certainly ended by {}: {whose}",
        case.who(place),
        case.lock_name(place),
        ms(start),
        ms(over_before(case, place, start, true).unwrap_or(0)),
    );
    let mut told = Told::new(text).tenure(case, place).interval(case, place, "operation", start, end);
    if let Some(victim) = victim {
        told = told.tenure(case, victim);
        for segment in case.tenure(victim).segments() {
            told = told.interval(case, victim, "granted", segment.start, segment.end);
        }
    }
    told
}

/// The same words for releases that promise less.
pub(super) const TELL: fn(&Case<'_>, &Finding) -> Told = tell;
