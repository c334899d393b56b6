//! `act-after-loss`: a client wrote after it had been told that the lock was lost.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "act-after-loss",
        summary: "a client wrote after it had been told that the lock was lost",
        documentation: "The notice of loss had been delivered to the worker, and it called a write of the same \
                        tenure afterwards. The client ignores what its library tells it.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let epsilon = case.ledger.header.epsilon_ns;
    let mut findings = Vec::new();
    for (number, access) in case.accesses() {
        let Some(place) = case.place_of_access(access).filter(|_| access.write) else { continue };
        let Some((told_at, _)) = case.attempt(place).lost else { continue };
        if access.call.start > told_at.saturating_add(epsilon) {
            findings.push(Finding::new(KIND.severity, case, access.call.start, [place, place]).about(number));
        }
    }
    findings
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let access = &case.ledger.accesses[finding.subject as usize];
    let told_at = case.attempt(place).lost.map_or(0, |(at, _)| at);
    let text = format!(
        "{} was told at {} that lock \"{}\" was lost, and called a write of \"{}\" at {} all the same",
        case.who(place),
        ms(told_at),
        case.lock_name(place),
        case.ledger.keys.name(access.key),
        ms(access.call.start),
    );
    Told::new(text).tenure(case, place).access(access).interval(
        case,
        place,
        "operation",
        access.call.start,
        access.call.end,
    )
}
