//! `belief-overlap`: an expired holder went on while another held the lock.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    contract::Renews,
    ledger::{FOREVER, MS, Outcome},
    registry::Item,
    tenure::Segment,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "belief-overlap",
        summary: "an expired holder went on while another held the lock",
        documentation: "Two clients acted on the lock at the same time, and the service broke no promise: the \
                        lease of the first had run out. That is what leases do to a client that stops for longer \
                        than its ttl; only a fence at the resource protects the data. It is a violation of the \
                        library, and reported as one, if that promised to renew, its process never stood still, \
                        and nothing disturbed client, link or server.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for lock in &case.locks {
        for span in lock.believed.all() {
            let count = lock.believed.count_before(span.start.saturating_add(1));
            let Some(rival) = lock.believed.latest_of_others(count, span.owner) else { continue };
            let before = (rival.start, rival.tenure) < (span.start, span.tenure);
            let (first, second) = (rival.tenure, span.tenure);
            if !before || rival.end <= span.start || case.tenure(first).clashes(case.tenure(second)) {
                continue;
            }
            let severity =
                if promise_broken(case, first, span.start) { Severity::Violation } else { KIND.severity };
            // While more is to come, a fault or stall may still be learned of that excuses the library.
            findings.push(Finding::new(severity, case, span.start, [first, second]).if_firm(false));
        }
    }
    findings
}

/// Did the library promise to renew, and nothing kept it from doing so?
fn promise_broken(case: &Case<'_>, holder: u32, overlap: u64) -> bool {
    let attempt = case.attempt(holder);
    let renews = matches!(case.contract().renews, Renews::Recorded | Renews::Hidden);
    if !renews || !case.ledger.header.heartbeat || !case.clock_is_sound() {
        return false;
    }
    let proofs = attempt.renewals.iter().filter(|renewal| renewal.outcome == Outcome::Ok);
    let proof = proofs.map(|renewal| renewal.by).filter(|by| *by <= overlap);
    let proof = proof.fold(attempt.acquire.end, u64::max);
    let ledger = case.ledger;
    let process = ledger.process_name(attempt.process);
    let client = ledger.process[attempt.process as usize].client;
    let meets = |from: u64, to: u64| from <= overlap && to >= proof;
    let faulted = ledger.faults.iter().any(|fault| {
        (fault.strikes(process) || fault.strikes_server()) && meets(fault.begin, fault.end.unwrap_or(FOREVER))
    });
    let troubled = ledger
        .troubles
        .iter()
        .any(|trouble| trouble.lock == attempt.lock && meets(trouble.start, trouble.end));
    let stall_max = attempt.ttl_ms_min.unwrap_or(0).saturating_mul(MS) / 10;
    let stalled = ledger.stalls.iter().any(|stall| {
        stall.client == client && stall.until - stall.from > stall_max && meets(stall.from, stall.until)
    });
    !faulted && !troubled && !stalled
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [first, second] = finding.tenures;
    let attempt = case.attempt(first);
    let lease = match case.tenure(first).certain_end {
        Some(end) => format!("whose lease had ended by {}", ms(end)),
        None => "whose lease may have ended".to_owned(),
    };
    let belief = |place: u32| case.tenure(place).believed.unwrap_or(Segment { start: 0, end: 0 });
    let end = belief(first).end;
    let stop = if end >= case.ledger.time_last {
        "never stopped".to_owned()
    } else {
        format!("went on until {}", ms(end))
    };
    let blame = if finding.severity == Severity::Violation {
        "; the library promised to renew, and nothing disturbed it"
    } else {
        ""
    };
    let text = format!(
        "{}, granted lock \"{}\" at {}, {lease}, {stop}, although {} had the lock from {} on{blame}",
        case.who(first),
        case.lock_name(first),
        ms(attempt.acquire.end),
        case.who(second),
        ms(case.attempt(second).acquire.end),
    );
    Told::new(text)
        .tenure(case, first)
        .tenure(case, second)
        .interval(case, first, "believed", belief(first).start, end)
        .interval(case, second, "believed", belief(second).start, belief(second).end)
}
