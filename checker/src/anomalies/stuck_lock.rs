//! `stuck-lock`: nobody held the lock and nobody could get it.

use super::{Analysis, AnomalyKind};
use crate::{
    availability::leaks,
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "stuck-lock",
        summary: "nobody held the lock and nobody could get it",
        documentation: "While no client believed to hold the lock and at least one wanted it, it stayed \
                        unavailable for longer than grace after a proven release, or for longer than ttl and \
                        grace after a crash, a loss or an operation of unknown outcome. The metric leaked_ms \
                        sums such time up. Time in which the server or a link is faulted or answers errors does \
                        not count.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let leaks = leaks(case).into_iter();
    leaks
        .map(|leak| {
            Finding::new(KIND.severity, case, leak.until, [leak.last, leak.last])
                .if_firm(false)
                .about(leak.asker)
        })
        .collect()
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let last = finding.tenures[0];
    let Some(leak) = leaks(case).into_iter().find(|leak| (leak.last, leak.until) == (last, finding.at))
    else {
        return Told::default();
    };
    let asker = match leak.refused {
        true => case.ledger.refused[leak.asker as usize].process,
        false => case.attempt(leak.asker).process,
    };
    let ended = match leak.proven {
        true => "released it",
        false => "can last have held it",
    };
    let text = format!(
        "lock \"{}\" could not be had for {} after {} {ended} at {}: {} still could not get it at {}, with nobody holding",
        case.lock_name(last),
        ms(leak.until - leak.from),
        case.who(last),
        ms(leak.from),
        case.ledger.process_name(asker),
        ms(leak.until),
    );
    let events = match leak.refused {
        true => case.ledger.refused[leak.asker as usize].call,
        false => case.attempt(leak.asker).acquire,
    };
    Told::new(text)
        .tenure(case, last)
        .events(events.events())
        .interval(case, last, "free", leak.from, leak.until)
}
