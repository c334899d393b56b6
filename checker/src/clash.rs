//! Where was a lock granted to more than it may be? A sweep over what the service guaranteed, O(n log n).
//!
//! For plain mutexes, counting and read-write locks this is exact: a history without a clash has an order of
//! its operations that keeps the lock's rules. For leases it is sound and not complete: deciding whether
//! unknown instants of expiry can be chosen so that all fits is scheduling with release times.

use std::collections::HashSet;

use crate::{
    case::{Case, Clash},
    contract::Mode,
    sweep::{Span, Spans},
    tenure::Segment,
};

/// The clashes among the tenures of one lock, by their second.
pub(crate) fn find(case: &Case<'_>, tenures: &[u32], granted: &Spans) -> Vec<Clash> {
    let writes = |span: &&Span| !case.attempt(span.tenure).shared;
    let mut clashes = match case.contract().mode {
        Mode::Exclusive => alone(case, tenures, granted, granted),
        Mode::Shared => {
            let writers = granted.all().iter().filter(writes).copied().collect();
            alone(case, tenures, granted, &Spans::new(writers))
        }
        Mode::Counting => {
            let mut clashes = crowds(case, granted);
            clashes.extend(squeezed_out(case, tenures, granted));
            clashes
        }
    };
    let mut told = HashSet::new();
    clashes.retain(|clash| told.insert(clash.second));
    clashes
}

/// Who holds alone against all others, who shares against `writers`.
fn alone(case: &Case<'_>, tenures: &[u32], granted: &Spans, writers: &Spans) -> Vec<Clash> {
    let mut clashes = pairs(case, granted, writers);
    clashes.extend(squeezed(case, tenures, granted, writers));
    clashes
}

/// Each span against the rival that was granted before it and lasts longest: any rival for who holds alone,
/// one who holds alone for who shares.
fn pairs(case: &Case<'_>, granted: &Spans, writers: &Spans) -> Vec<Clash> {
    let mut clashes: Vec<Clash> = Vec::new();
    let mut last = None;
    for span in granted.all() {
        let rivals = if case.attempt(span.tenure).shared { writers } else { granted };
        // Of a grant slower than its lease only what lies before the lease's end can be said.
        let count = rivals.count_before(span.end.min(span.start.saturating_add(1)));
        let Some(rival) = rivals.latest_of_others(count, span.owner) else { continue };
        let before = (rival.start, rival.tenure) < (span.start, span.tenure);
        if before && rival.end > span.start && last != Some(span.tenure) {
            last = Some(span.tenure);
            clashes.push(clash(case, rival, span));
        }
    }
    clashes
}

fn clash(case: &Case<'_>, first: &Span, second: &Span) -> Clash {
    let from = first.start.max(second.start);
    let proven = |span: &Span| case.tenure(span.tenure).proven_until;
    Clash {
        first: first.tenure,
        second: second.tenure,
        from,
        session_stays: proven(first).min(proven(second)) <= from,
    }
}

/// More weight than there are permits.
fn crowds(case: &Case<'_>, granted: &Spans) -> Vec<Clash> {
    let permits = case.contract().permits;
    let mut ends: std::collections::BTreeMap<(u64, u32), u64> = std::collections::BTreeMap::new();
    let mut taken = 0u64;
    let mut clashes = Vec::new();
    for span in granted.all().iter().filter(|span| span.start < span.end) {
        while let Some(entry) = ends.first_entry()
            && entry.key().0 <= span.start
        {
            taken -= entry.remove();
        }
        let weight = u64::from(case.attempt(span.tenure).permits);
        taken += weight;
        *ends.entry((span.end, span.tenure)).or_insert(0) += weight;
        if taken > permits {
            let first = ends.last_key_value().map_or(span.tenure, |((_, tenure), _)| *tenure);
            let first = if first == span.tenure {
                *ends.keys().map(|(_, t)| t).next().unwrap_or(&first)
            } else {
                first
            };
            clashes.push(Clash {
                first,
                second: span.tenure,
                from: span.start,
                session_stays: case.tenure(span.tenure).proven_until <= span.start,
            });
        }
    }
    clashes
}

/// Acquires of unknown outcome whose own release proved them, but that find no instant free of others.
fn squeezed(case: &Case<'_>, tenures: &[u32], granted: &Spans, writers: &Spans) -> Vec<Clash> {
    let mut clashes = Vec::new();
    for place in tenures {
        let Some(within) = case.tenure(*place).held_within.as_deref().copied() else { continue };
        let attempt = case.attempt(*place);
        let rivals = if attempt.shared { writers } else { granted };
        if let Some(rival) = covering(rivals, within, attempt.owner).first() {
            clashes.push(Clash {
                first: rival.tenure,
                second: *place,
                from: within.start,
                session_stays: case.tenure(rival.tenure).proven_until <= within.end,
            });
        }
    }
    clashes
}

/// The spans of others that leave no instant of `within` free; none if an instant is free.
pub(crate) fn covering(granted: &Spans, within: Segment, owner: u64) -> Vec<Span> {
    let mut covered = Vec::new();
    let mut at = within.start;
    loop {
        let count = granted.count_before(at);
        match granted.latest_of_others(count, owner) {
            Some(span) if span.end > at => {
                covered.push(*span);
                at = span.end;
                if at > within.end {
                    return covered;
                }
            }
            _ => return Vec::new(),
        }
    }
}

/// The same for counting locks: at no instant is there room for its permits.
fn squeezed_out(case: &Case<'_>, tenures: &[u32], granted: &Spans) -> Vec<Clash> {
    let mut clashes = Vec::new();
    for place in tenures {
        let Some(within) = case.tenure(*place).held_within.as_deref().copied() else { continue };
        let weight = u64::from(case.attempt(*place).permits);
        let room = case.contract().permits.saturating_sub(weight);
        let others = || granted.all().iter().filter(|span| span.start < span.end && span.tenure != *place);
        // Room can only appear at the begin, or where somebody's hold ends.
        let ends = others().map(|span| span.end);
        let mut instants = ends.chain([within.start]).filter(|at| (within.start..=within.end).contains(at));
        let load = |at: u64| -> u64 {
            let holding = others().filter(|span| span.start < at && at < span.end);
            holding.map(|span| u64::from(case.attempt(span.tenure).permits)).sum()
        };
        let fits = weight <= case.contract().permits && instants.any(|at| load(at) <= room);
        let rival = others().find(|span| span.start < within.end && within.start < span.end);
        if let (false, Some(rival)) = (fits, rival) {
            clashes.push(Clash {
                first: rival.tenure,
                second: *place,
                from: within.start,
                session_stays: false,
            });
        }
    }
    clashes
}
