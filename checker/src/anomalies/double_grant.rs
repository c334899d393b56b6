//! `double-grant`: two owners were granted the lock at the same time.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    clash,
    registry::Item,
    tenure::Segment,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "double-grant",
        summary: "two owners were granted the lock at the same time",
        documentation: "The lock service promised the lock to one owner until a certain instant and granted it \
                        to another before. A promise ends at the call of the release, at a notice of loss, at \
                        the holder's death, or when the lease that was granted last may have run out, counted \
                        from the stamp just before its request: so what is left is broken in every \
                        interpretation of the history. Look at what the service forgot or let slip: data lost at \
                        a restart or failover, a clock that jumped, an acquire in two steps, a release that \
                        frees whoever holds. For counting locks: more holders than permits; for read-write \
                        locks: a writer beside anyone.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let clashes = case.locks.iter().flat_map(|lock| &lock.clashes);
    clashes
        .map(|clash| {
            Finding::new(KIND.severity, case, clash.from, [clash.first, clash.second])
                .if_certain(case.clock_is_sound())
        })
        .collect()
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [first, second] = finding.tenures;
    let lock = case.lock_of(second);
    let session_stays = lock.clashes.iter().any(|clash| clash.second == second && clash.session_stays);
    let within = case.tenure(second).held_within.as_deref().copied();
    let mut told = match within {
        None => told_of_grants(case, finding),
        Some(within) => told_of_squeezed(case, first, second, within),
    };
    if !case.is_mutex() {
        for span in lock.granted.all() {
            if span.start <= finding.at && finding.at < span.end {
                told = told.tenure(case, span.tenure);
            }
        }
    }
    told.assume(session_stays, "session-stays")
}

fn told_of_grants(case: &Case<'_>, finding: &Finding) -> Told {
    let [first, second] = finding.tenures;
    let granted = case.attempt(second).acquire.end;
    let text = format!(
        "lock \"{}\" was granted to {} at {} although {}, granted at {}, {}",
        case.lock_name(second),
        case.who(second),
        ms(granted),
        case.who(first),
        ms(case.attempt(first).acquire.end),
        case.until(first),
    );
    let mut told = Told::new(text).tenure(case, first).tenure(case, second);
    for place in [first, second] {
        for segment in case.tenure(place).segments() {
            told = told.interval(case, place, "granted", segment.start, segment.end);
        }
    }
    told
}

/// An acquire of unknown outcome, proven by its release, that found the lock taken throughout.
fn told_of_squeezed(case: &Case<'_>, first: u32, second: u32, within: Segment) -> Told {
    let text = format!(
        "the release of {} freed lock \"{}\" between {} and {}, so it held then, although {}, granted at {}, {}",
        case.who(second),
        case.lock_name(second),
        ms(within.start),
        ms(within.end),
        case.who(first),
        ms(case.attempt(first).acquire.end),
        case.until(first),
    );
    let owner = case.attempt(second).owner;
    let mut told = Told::new(text).tenure(case, second).tenure(case, first).interval(
        case,
        second,
        "granted",
        within.start,
        within.end,
    );
    for span in clash::covering(&case.lock_of(second).granted, within, owner) {
        told = told.tenure(case, span.tenure).interval(case, span.tenure, "granted", span.start, span.end);
    }
    told
}
