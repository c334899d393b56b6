//! `premature-expiry`: the service gave up a lease before its time.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{Evidence, Says},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "premature-expiry",
        summary: "the service gave up a lease before its time",
        documentation: "The server itself said that the holder does not hold (it refused a renewal, or an \
                        observer looked) at an instant at which it had promised that he does. A library's notice \
                        of loss is no such evidence. Where another owner already got the lock, the double-grant \
                        tells the story and this is not repeated.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, evidence) in case.ledger.evidence.iter().enumerate().skip(case.evidence_from) {
        let call = evidence.call;
        let holder = match evidence.says {
            Says::NotHeldBy(attempt) => case.place_of(attempt).filter(|place| {
                let mut segments = case.tenure(*place).segments();
                segments.any(|segment| segment.start <= call.start && call.end <= segment.end)
            }),
            Says::Free => enclosing(case, evidence, u64::MAX),
            Says::HeldBy(owner) => enclosing(case, evidence, owner),
        };
        let Some(holder) = holder else { continue };
        if !case.lock_of(holder).tainted.contains(&holder) {
            findings.push(
                Finding::new(KIND.severity, case, call.end, [holder, holder])
                    .if_certain(case.clock_is_sound())
                    .about(number as u32),
            );
        }
    }
    findings
}

fn enclosing(case: &Case<'_>, evidence: &Evidence, owner: u64) -> Option<u32> {
    let granted = &case.locks[evidence.lock as usize].granted;
    granted.enclosing(evidence.call.start, evidence.call.end, owner).map(|span| span.tenure)
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let holder = finding.tenures[0];
    let evidence = &case.ledger.evidence[finding.subject as usize];
    let said = match evidence.says {
        Says::NotHeldBy(_) => "refused to renew it because it was not held",
        Says::Free => "said that nobody held it",
        Says::HeldBy(_) => "said that somebody else held it",
    };
    let text = format!(
        "between {} and {} the server of lock \"{}\" {said}, although {}, granted at {}, {}",
        ms(evidence.call.start),
        ms(evidence.call.end),
        case.lock_name(holder),
        case.who(holder),
        ms(case.attempt(holder).acquire.end),
        case.until(holder),
    );
    let mut told = Told::new(text).tenure(case, holder).events(evidence.call.events());
    for segment in case.tenure(holder).segments() {
        told = told.interval(case, holder, "granted", segment.start, segment.end);
    }
    told.interval(case, holder, "operation", evidence.call.start, evidence.call.end)
}
