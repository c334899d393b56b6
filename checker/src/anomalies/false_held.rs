//! `false-held`: the library said 'still yours' while another owner held the lock.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "false-held",
        summary: "the library said 'still yours' while another owner held the lock",
        documentation: "The holder asked whether the lock was still its own and was told yes, although the whole \
                        question lies inside another owner's granted interval. An answer from local memory is \
                        worth nothing once the process has stood still.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, held) in case.ledger.helds.iter().enumerate().skip(case.helds_from) {
        let Some(place) = case.place_of(held.attempt).filter(|place| case.exclusive(*place)) else {
            continue;
        };
        let granted = &case.lock_of(place).granted;
        let owner = case.attempt(place).owner;
        let Some(rival) = granted.enclosing(held.call.start, held.call.end, owner) else { continue };
        if !case.tenure(place).clashes(case.tenure(rival.tenure)) {
            findings.push(
                Finding::new(KIND.severity, case, held.call.end, [place, rival.tenure])
                    .if_certain(case.clock_is_sound())
                    .about(number as u32),
            );
        }
    }
    findings
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [asker, rival] = finding.tenures;
    let held = &case.ledger.helds[finding.subject as usize];
    let text = format!(
        "{} asked between {} and {} whether lock \"{}\" was still its own and was told yes, although {} had it, granted at {}, and {}",
        case.who(asker),
        ms(held.call.start),
        ms(held.call.end),
        case.lock_name(asker),
        case.who(rival),
        ms(case.attempt(rival).acquire.end),
        case.until(rival),
    );
    let mut told = Told::new(text)
        .tenure(case, asker)
        .tenure(case, rival)
        .events(held.call.events())
        .interval(case, asker, "operation", held.call.start, held.call.end);
    for segment in case.tenure(rival).segments() {
        told = told.interval(case, rival, "granted", segment.start, segment.end);
    }
    told
}
