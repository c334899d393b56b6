//! Registers whose writes say what they replaced, in O(n log n).
//!
//! The replaced writes form a chain, so the order of the writes is known: give each write an even rank along it
//! and each read the odd one after the write that it saw. An order exists iff no operation had returned before
//! another one with a lower rank was called.

use super::{About, Judgement, Told, found, register::Operation};
use crate::{case::ms, names::FastMap};

/// Judges one key; `None` if a write of unknown outcome leaves the chain open: then it takes a search.
pub(super) fn judge(model: &str, about: &About, operations: &[Told<Operation>]) -> Option<Judgement> {
    let mut judgement = Judgement::default();
    let (places, why) = match conflict(operations)? {
        Ok(()) => return Some(judgement),
        Err(conflict) => conflict,
    };
    let words: Vec<&str> = places.iter().map(|place| operations[*place].words.as_str()).collect();
    let text = format!(
        "Of {about}, these operations have no order that model '{model}' allows: {}; {why}.",
        words.join(", ")
    );
    // What lies between two writes shows only by the whole chain.
    let events = operations.iter().flat_map(|told| told.events.iter().copied());
    let at = places.iter().filter_map(|place| operations[*place].interval.end).max().unwrap_or(0);
    judgement.anomalies.push(found(about, text, events.collect(), at));
    Some(judgement)
}

type Conflict = (Vec<usize>, String);

/// Operations that exclude each other, and why; `None` where the chain is open.
fn conflict(operations: &[Told<Operation>]) -> Option<Result<(), Conflict>> {
    let ranks = match ranks(operations)? {
        Ok(ranks) => ranks,
        Err(conflict) => return Some(Err(conflict)),
    };
    let ranked = || {
        operations.iter().enumerate().filter_map(|(place, told)| {
            let operation = told.interval.operation;
            let known = !operation.rejected && told.interval.end.is_some();
            let rank = ranks.get(&operation.id).filter(|_| known)?;
            Some((place, rank + u64::from(!operation.write)))
        })
    };
    let end = |place: usize| operations[place].interval.end.unwrap_or(u64::MAX);
    let mut calls: Vec<(usize, u64)> = ranked().collect();
    let mut returns = calls.clone();
    calls.sort_by_key(|(place, _)| operations[*place].interval.start);
    returns.sort_by_key(|(place, _)| end(*place));
    let mut returned = returns.into_iter().peekable();
    let mut highest: Option<(usize, u64)> = None;
    for (place, rank) in calls {
        let start = operations[place].interval.start;
        while let Some((earlier, other)) = returned.next_if(|(earlier, _)| end(*earlier) < start) {
            if highest.is_none_or(|(_, highest)| other > highest) {
                highest = Some((earlier, other));
            }
        }
        if let Some((earlier, _)) = highest.filter(|(_, highest)| *highest > rank) {
            let why = format!("the first had returned by {}, and belongs after the second", ms(end(earlier)));
            return Some(Err((vec![earlier, place], why)));
        }
    }
    Some(Ok(()))
}

/// The rank of each write along the chain, by its number.
fn ranks(operations: &[Told<Operation>]) -> Option<Result<FastMap<u64, u64>, Conflict>> {
    let mut next: FastMap<u64, (u64, usize)> = FastMap::default();
    let mut unknown: FastMap<u64, usize> = FastMap::default();
    let writes = || {
        operations
            .iter()
            .enumerate()
            .filter(|(_, told)| told.interval.operation.write && !told.interval.operation.rejected)
    };
    for (place, told) in writes() {
        let operation = told.interval.operation;
        let Some(replaced) = operation.replaced.filter(|_| told.interval.end.is_some()) else {
            unknown.insert(operation.id, place);
            continue;
        };
        if let Some((_, other)) = next.insert(replaced, (operation.id, place)) {
            return Some(Err((vec![other, place], format!("both replaced write {replaced}"))));
        }
    }
    // One that nobody saw need not have happened.
    let seen = |told: &Told<Operation>| {
        let operation = told.interval.operation;
        let saw = if operation.write { operation.replaced.unwrap_or(0) } else { operation.id };
        unknown.contains_key(&saw) && told.interval.end.is_some()
    };
    if operations.iter().any(seen)
        || writes().any(|(_, told)| told.interval.end.is_some() && told.interval.operation.replaced.is_none())
    {
        return None;
    }
    let mut ranks = FastMap::default();
    let (mut last, mut rank) = (0, 0);
    ranks.insert(0, 0);
    while let Some((id, _)) = next.remove(&last) {
        rank += 2;
        if ranks.insert(id, rank).is_some() {
            break;
        }
        last = id;
    }
    if let Some((replaced, (_, place))) = next.into_iter().min() {
        return Some(Err((
            vec![place],
            format!("what it replaced, {replaced}, was never there to be replaced"),
        )));
    }
    let strange = operations.iter().enumerate().find(|(_, told)| {
        let operation = told.interval.operation;
        !operation.write && !operation.rejected && !ranks.contains_key(&operation.id)
    });
    if let Some((place, told)) = strange {
        return Some(Err((vec![place], format!("nobody wrote {}", told.interval.operation.id))));
    }
    Some(Ok(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::cas_register::CasRegister,
        search::{Answer, Budget, Interval, search},
    };
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_chain_agrees_with_the_search(
            raw in prop::collection::vec((any::<bool>(), 0u64..5, 0u64..5, 0u64..14, 1u64..6, 0u8..6), 1..8),
        ) {
            let mut written = std::collections::HashSet::new();
            let mut operations = Vec::new();
            for (write, id, replaced, start, length, unknown) in raw {
                if write && (id == 0 || !written.insert(id)) {
                    continue;
                }
                // Mostly in a chain, or hardly any history would be valid.
                let replaced = if unknown == 5 { replaced } else { id.saturating_sub(1) };
                let known = !write || unknown > 0;
                let operation = Operation {
                    write, key: 0, id, replaced: known.then_some(replaced), token: None, rejected: false,
                };
                let end = known.then_some(start + length);
                let interval = Interval { operation, start, end };
                operations.push(Told { interval, words: String::new(), events: Vec::new(), unit: id });
            }
            let intervals: Vec<_> = operations.iter().map(|told| told.interval.clone()).collect();
            let found = matches!(
                search(&CasRegister, &intervals, &Budget::default(), &mut || false),
                Answer::Found { .. }
            );
            if let Some(answer) = conflict(&operations) {
                prop_assert_eq!(answer.is_ok(), found);
            }
        }
    }
}
