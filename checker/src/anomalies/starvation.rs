//! `starvation`: a waiter was overtaken again and again.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    metrics::bypasses,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "starvation",
        summary: "a waiter was overtaken again and again",
        documentation: "An acquire waited while others, called after it, were granted before it: more often than \
                        once for each process if the lock promises first come, first served, else more often \
                        than twenty times for each. The metric bypass_max is the largest count.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
    find,
    tell,
};

/// How often one process may overtake a waiter of a lock that promises no order.
const OVERTAKINGS_MAX: u64 = 20;

fn find(case: &Case<'_>) -> Vec<Finding> {
    let each = if case.contract().fifo { 1 } else { OVERTAKINGS_MAX };
    let bound = each * case.ledger.processes.len() as u64;
    let mut findings = Vec::new();
    for lock in &case.locks {
        for (place, count) in bypasses(case, &lock.tenures) {
            if count > bound {
                let at = case.attempt(place).acquire.end;
                let finding = Finding::new(KIND.severity, case, at, [place, place]).if_firm(false);
                findings.push(finding.about(count.min(u64::from(u32::MAX - 1)) as u32));
            }
        }
    }
    findings
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let acquire = case.attempt(place).acquire;
    let text = format!(
        "{} waited for lock \"{}\" from {} to {} and was overtaken {} times",
        case.who(place),
        case.lock_name(place),
        ms(acquire.start),
        ms(acquire.end),
        finding.subject,
    );
    let mut told = Told::new(text).interval(case, place, "operation", acquire.start, acquire.end);
    told = told.tenure(case, place);
    for other in &case.lock_of(place).tenures {
        let overtaking = case.attempt(*other).acquire;
        if overtaking.start > acquire.start && overtaking.end < acquire.end {
            told = told.tenure(case, *other);
        }
    }
    told
}
