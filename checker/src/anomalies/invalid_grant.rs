//! `invalid-grant`: a grant that was worthless or promised too much when it was returned.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{FOREVER, MS, Outcome},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "invalid-grant",
        summary: "a grant that was worthless or promised too much when it was returned",
        documentation: "The library returned success with a validity of nothing or less, or with one that \
                        reaches beyond the lease's certain end, or after the lease had certainly ended (a dead \
                        grant: it died while the acquire was still on its way).",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

/// What is wrong with a grant.
#[derive(Clone, Copy)]
enum Flaw {
    Worthless = 0,
    TooLong = 1,
    Dead = 2,
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in 0..case.tenures.len() as u32 {
        if let Some(flaw) = flaw(case, place) {
            let dead = matches!(flaw, Flaw::Dead);
            let sound = matches!(flaw, Flaw::Worthless) || case.clock_is_sound();
            let certain = sound && !(dead && stood_still_at_the_end(case, place));
            let at = case.attempt(place).acquire.end;
            let finding = Finding::new(KIND.severity, case, at, [place, place]).if_certain(certain);
            // That it stood still may be learned later than that it returned.
            findings.push(finding.if_firm(!dead).about(flaw as u32));
        }
    }
    findings
}

fn flaw(case: &Case<'_>, place: u32) -> Option<Flaw> {
    let attempt = case.attempt(place);
    if attempt.outcome != Outcome::Ok {
        return None;
    }
    if attempt.validity_ms.is_some_and(|validity| validity <= 0) {
        return Some(Flaw::Worthless);
    }
    let over = case.bounds.lease_over(attempt, attempt.acquire.end, false)?;
    let validity = attempt.validity_ms.and_then(|validity| u64::try_from(validity).ok());
    let valid_until = validity.map(|ms| attempt.granted_by.saturating_add(ms.saturating_mul(MS)));
    if attempt.acquire.end > over {
        Some(Flaw::Dead)
    } else if valid_until.is_some_and(|until| until > over) {
        Some(Flaw::TooLong)
    } else {
        None
    }
}

/// Did the client stand still when the lease ended? Then its library may have returned in time, and the process was
/// stopped before it could stamp that.
fn stood_still_at_the_end(case: &Case<'_>, place: u32) -> bool {
    let (ledger, attempt) = (case.ledger, case.attempt(place));
    let Some(over) = case.bounds.lease_over(attempt, attempt.acquire.end, false) else { return false };
    let process = ledger.process_name(attempt.process);
    let client = ledger.process[attempt.process as usize].client;
    let covers = |from: u64, until: u64| from <= over && over <= until;
    ledger.faults.iter().any(|f| f.strikes(process) && covers(f.begin, f.end.unwrap_or(FOREVER)))
        || ledger.stalls.iter().any(|stall| stall.client == client && covers(stall.from, stall.until))
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let attempt = case.attempt(place);
    let validity = attempt.validity_ms.unwrap_or(0);
    let over = case.bounds.lease_over(attempt, attempt.acquire.end, false).unwrap_or(0);
    let flaw = match flaw(case, place) {
        Some(Flaw::Worthless) => format!("with a validity of {validity} ms: it is worth nothing"),
        Some(Flaw::TooLong) => format!(
            "with a validity of {validity} ms, counted from {} beyond the lease's certain end at {}",
            ms(attempt.granted_by),
            ms(over)
        ),
        Some(Flaw::Dead) | None => format!("although its lease had certainly ended by {}", ms(over)),
    };
    let text = format!(
        "{} was granted lock \"{}\" at {} {flaw}",
        case.who(place),
        case.lock_name(place),
        ms(attempt.acquire.end)
    );
    Told::new(text).events(attempt.acquire.events()).interval(
        case,
        place,
        "operation",
        attempt.acquire.start,
        attempt.acquire.end,
    )
}
