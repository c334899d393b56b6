//! `belief-overlap`: an expired holder went on while another held the lock.

use std::num::NonZeroU64;

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    contract::{Renews, Term},
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
            if !before || rival.end <= span.start {
                continue;
            }
            if case.tenure(rival.tenure).clashes(case.tenure(span.tenure)) {
                continue;
            }
            let [first, second] = expired_first(case, rival.tenure, span.tenure);
            let severity = match excuse(case, first, span.start) {
                Excuse::Nothing => Severity::Violation,
                Excuse::NoPromise | Excuse::Disturbed(_) => KIND.severity,
            };
            // While more is to come, a fault or stall may still be learned of that excuses the library.
            findings.push(Finding::new(severity, case, span.start, [first, second]).if_firm(false));
        }
    }
    findings
}

/// The expired holder comes first: the one that was granted first, unless the other's grant was dead when it
/// returned.
fn expired_first(case: &Case<'_>, first: u32, second: u32) -> [u32; 2] {
    let dead = |place: u32| case.tenure(place).granted.is_some_and(|granted| granted.start >= granted.end);
    if dead(second) && !dead(first) { [second, first] } else { [first, second] }
}

/// Workers tell of gaps in their heartbeat from this length on.
const STALL_TOLD_NS: u64 = 25 * MS;

/// Why an expired holder is not its library's fault.
enum Excuse {
    /// The library did not promise to renew, or nobody watched whether its process stood still.
    NoPromise,
    /// These events kept it from renewing.
    Disturbed(Vec<u64>),
    /// None.
    Nothing,
}

/// Did the library promise to renew, and did anything keep it from doing so from its last proof on?
fn excuse(case: &Case<'_>, holder: u32, overlap: u64) -> Excuse {
    let (ledger, attempt) = (case.ledger, case.attempt(holder));
    let renews = matches!(case.contract().renews, Renews::Recorded | Renews::Hidden);
    if !renews || !ledger.header.heartbeat || !case.clock_is_sound() {
        return Excuse::NoPromise;
    }
    let stall_max = attempt.ttl_ms_min.map_or(0, NonZeroU64::get).saturating_mul(MS) / 10;
    if stall_max < STALL_TOLD_NS {
        // A stall that would excuse the library may be too short to have been told of.
        return Excuse::NoPromise;
    }
    let proofs =
        attempt.renewals.iter().filter(|renewal| renewal.outcome == Outcome::Ok && renewal.by <= overlap);
    // The service counts from some instant between request and reply: what disturbed the reply counts, too.
    let proof = proofs.map(|renewal| renewal.after).fold(attempt.granted_after, u64::max);
    let meets = |from: u64, to: u64| from <= overlap && to >= proof;
    let process = ledger.process_name(attempt.process);
    let fault = ledger.faults.iter().find(|fault| {
        (fault.strikes(process) || fault.strikes_server()) && meets(fault.begin, fault.end.unwrap_or(FOREVER))
    });
    if let Some(fault) = fault {
        return Excuse::Disturbed(fault.events.clone());
    }
    let mut troubles = ledger.troubles.iter().filter(|trouble| trouble.lock == attempt.lock);
    if let Some(trouble) = troubles.find(|trouble| meets(trouble.call.start, trouble.call.end)) {
        return Excuse::Disturbed(trouble.call.events().collect());
    }
    let client = ledger.process[attempt.process as usize].client;
    let stall = ledger.stalls.iter().find(|stall| {
        let long = stall.until.saturating_sub(stall.from) > stall_max;
        stall.client == client && long && meets(stall.from, stall.until)
    });
    stall.map_or(Excuse::Nothing, |stall| Excuse::Disturbed(vec![stall.event]))
}

/// What is known of the end of the holder's term at the overlap. When it had ended at the latest may lie behind the
/// overlap and says nothing of it then; when it may have ended at the earliest cannot.
fn lease_of(case: &Case<'_>, holder: u32, overlap: u64) -> String {
    let tenure = case.tenure(holder);
    if let Some(end) = tenure.certain_end.filter(|end| *end <= overlap) {
        return format!("whose lease had ended by {}", ms(end));
    }
    let guaranteed = tenure.segments().map(|segment| segment.end).filter(|end| *end <= overlap).max();
    match (case.contract().term, guaranteed) {
        (Term::Lease, Some(end)) => format!("whose lease may have ended from {} on", ms(end)),
        (Term::Lease, None) => "whose lease may have ended".to_owned(),
        (Term::Session | Term::None, _) => "whose session may have ended".to_owned(),
    }
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [first, second] = finding.tenures;
    let attempt = case.attempt(first);
    let lease = lease_of(case, first, finding.at);
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
    let excused = match excuse(case, first, finding.at) {
        Excuse::Disturbed(events) => events,
        Excuse::NoPromise | Excuse::Nothing => Vec::new(),
    };
    Told::new(text)
        .tenure(case, first)
        .tenure(case, second)
        .events(excused)
        .interval(case, first, "believed", belief(first).start, end)
        .interval(case, second, "believed", belief(second).start, belief(second).end)
}
