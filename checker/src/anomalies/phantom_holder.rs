//! `phantom-holder`: the lock was busy though nobody can have held it.

use super::{Analysis, AnomalyKind};
use crate::{
    availability::phantoms,
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "phantom-holder",
        summary: "the lock was busy though nobody can have held it",
        documentation: "An acquire was told that somebody holds the lock, and at no instant of it can anybody \
                        have: every earlier hold had certainly ended and no acquire of unknown outcome was \
                        open. Leftovers of attempts that failed half-way look like this.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let phantoms = phantoms(case).into_iter();
    phantoms
        .map(|phantom| {
            let at = case.ledger.refused[phantom.asker as usize].call.end;
            Finding::new(KIND.severity, case, at, [phantom.last, phantom.last])
                .if_certain(case.clock_is_sound())
                .if_firm(false)
                .about(phantom.asker)
        })
        .collect()
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let last = finding.tenures[0];
    let refused = &case.ledger.refused[finding.subject as usize];
    let text = format!(
        "{} was told between {} and {} that lock \"{}\" was busy, although the last hold, that of {}, had certainly ended by {}",
        case.ledger.process_name(refused.process),
        ms(refused.call.start),
        ms(refused.call.end),
        case.lock_name(last),
        case.who(last),
        ms(case.tenure(last).certain_end.unwrap_or(0)),
    );
    Told::new(text).tenure(case, last).events(refused.call.events()).interval(
        case,
        last,
        "operation",
        refused.call.start,
        refused.call.end,
    )
}
