//! `false-loss`: the holder was told that the lock is lost, and it was not.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{FOREVER, Says},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "false-loss",
        summary: "the holder was told that the lock is lost, and it was not",
        documentation: "A notice of loss was delivered although, before and after it, an observer saw at the \
                        server that the lock was still the holder's. Nothing broke, but work was given up for \
                        nothing.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in 0..case.tenures.len() as u32 {
        let Some((told_at, _)) = case.attempt(place).lost else { continue };
        if let Some(number) = denial(case, place, told_at) {
            findings.push(
                Finding::new(KIND.severity, case, told_at, [place, place])
                    .if_firm(false)
                    .about(number as u32),
            );
        }
    }
    findings
}

/// A look at the server after the notice, and before the owner asks for the lock again, that finds him holding.
fn denial(case: &Case<'_>, place: u32, told_at: u64) -> Option<usize> {
    let attempt = case.attempt(place);
    let again = case.lock_of(place).tenures.iter().map(|other| case.attempt(*other));
    let again = again
        .filter(|other| other.owner == attempt.owner && other.acquire.end > attempt.acquire.end)
        .map(|other| other.acquire.start)
        .min()
        .unwrap_or(FOREVER);
    case.ledger.evidence.iter().position(|evidence| {
        evidence.lock == attempt.lock
            && evidence.says == Says::HeldBy(attempt.owner)
            && evidence.call.start > told_at
            && evidence.call.end < again
    })
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let evidence = &case.ledger.evidence[finding.subject as usize];
    let text = format!(
        "{} was told at {} that lock \"{}\" was lost, but the server still showed it as the holder between {} and {}",
        case.who(place),
        ms(finding.at),
        case.lock_name(place),
        ms(evidence.call.start),
        ms(evidence.call.end),
    );
    Told::new(text).tenure(case, place).events(evidence.call.events()).interval(
        case,
        place,
        "operation",
        evidence.call.start,
        evidence.call.end,
    )
}
