//! `resurrection`: a renewal succeeded after the lease had certainly ended.

use super::{
    Analysis, AnomalyKind,
    foreign_release::over_before,
    lost_continuity::{renewals, rival_before},
};
use crate::{
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "resurrection",
        summary: "a renewal succeeded after the lease had certainly ended",
        documentation: "A renewal answered ok although the lease had certainly run out. Nobody else held the \
                        lock in between, so nothing broke this time; with a rival it is a lost-continuity.",
        options: &[],
    },
    severity: Severity::Hazard,
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
        for (number, renewal) in renewals(case, place) {
            let over = over_before(case, place, renewal.call.start, false);
            let late = over.is_some_and(|over| renewal.call.start > over);
            if late && rival_before(case, place, number).is_none() {
                findings.push(
                    Finding::new(KIND.severity, case, renewal.by, [place, place])
                        .if_certain(case.clock_is_sound())
                        .if_firm(false)
                        .about(number as u32),
                );
            }
        }
    }
    findings
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let renewal = &case.attempt(place).renewals[finding.subject as usize];
    let over = over_before(case, place, renewal.call.start, false).unwrap_or(0);
    let text = format!(
        "the renewal of lock \"{}\" by {}, called at {}, answered ok although the hold had certainly ended by {}; nobody else held it in between",
        case.lock_name(place),
        case.who(place),
        ms(renewal.call.start),
        ms(over),
    );
    Told::new(text).tenure(case, place).interval(
        case,
        place,
        "operation",
        renewal.call.start,
        renewal.call.end,
    )
}
