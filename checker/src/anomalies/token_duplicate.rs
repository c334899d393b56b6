//! `token-duplicate`: two tenures got the same fencing token.

use std::collections::hash_map::Entry;

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, LockCase, Told, ms},
    contract::TokenSource,
    names::FastMap,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "token-duplicate",
        summary: "two tenures got the same fencing token",
        documentation: "A fence cannot tell two holders with one token apart. The source of the tokens was set \
                        back, typically by a restart without its data or a failover to a replica that lagged \
                        behind.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Tokens,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for lock in &case.locks {
        // Most histories draw in order: then there is nothing to look up.
        if tokens(case, lock).map(|(_, token)| token).is_sorted_by(|earlier, later| earlier < later) {
            continue;
        }
        let mut first: FastMap<u64, u32> = FastMap::default();
        for (place, token) in tokens(case, lock) {
            match first.entry(token) {
                Entry::Vacant(entry) => {
                    entry.insert(place);
                }
                // Of a reentrant lock its owner may still have held it.
                Entry::Occupied(entry) if may_be_one_hold(case, *entry.get(), place) => {}
                Entry::Occupied(entry) => {
                    let at = case.attempt(place).acquire.end;
                    findings.push(Finding::new(KIND.severity, case, at, [*entry.get(), place]));
                }
            }
        }
    }
    findings
}

/// May the service take these two for one hold? Of a reentrant lock, when an owner's release did not arrive, its
/// next acquire is a re-entry and rightly gets the same token.
pub(super) fn may_be_one_hold(case: &Case<'_>, first: u32, second: u32) -> bool {
    case.contract().reentrant && case.attempt(first).owner == case.attempt(second).owner
}

/// The tenures that hold alone and have a token, in the order of their grants.
pub(super) fn tokens<'a>(case: &'a Case<'_>, lock: &'a LockCase) -> impl Iterator<Item = (u32, u64)> + 'a {
    let drawn =
        case.ledger.header.contract.as_ref().is_none_or(|contract| contract.token != TokenSource::None);
    let tenures = lock.tenures.iter().copied().filter(move |place| drawn && case.exclusive(*place));
    tenures.filter_map(|place| Some((place, case.attempt(place).token?)))
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [first, second] = finding.tenures;
    let text = format!(
        "{}, granted at {}, got the same token of lock \"{}\" as {}, granted at {}",
        case.who(second),
        ms(case.attempt(second).acquire.end),
        case.lock_name(second),
        case.who(first),
        ms(case.attempt(first).acquire.end),
    );
    let mut told = Told::new(text);
    for place in [first, second] {
        let acquire = case.attempt(place).acquire;
        told = told.tenure(case, place).interval(case, place, "operation", acquire.start, acquire.end);
    }
    told
}
