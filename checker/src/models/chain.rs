//! Registers whose writes say what they replaced, in O(n log n).
//!
//! The replaced writes form a chain, so the order of the writes is known: give each write an even rank along it
//! and each read the odd one after the write that it saw. An order exists iff no operation had returned before
//! another one with a lower rank was called.

use super::{
    About, Judgement, Told, found,
    register::{Operation, name, repeats},
};
use crate::{case::ms, names::FastMap};

/// Judges one key; `None` if a write of unknown outcome leaves the chain open, or one value was written twice: then it
/// takes a search.
pub(super) fn judge(model: &str, about: &About, operations: &[Told<Operation>]) -> Option<Judgement> {
    if repeats(operations) {
        return None;
    }
    let mut judgement = Judgement::default();
    let Err(conflict) = conflict(operations)? else { return Some(judgement) };
    let words: Vec<&str> = conflict.places.iter().map(|place| operations[*place].words.as_str()).collect();
    let text = format!(
        "Of {about}, these operations have no order that model '{model}' allows: {}; {}.",
        words.join(", "),
        conflict.why
    );
    let proof = conflict.places.iter().chain(&conflict.between);
    let events = proof.flat_map(|place| operations[*place].events.iter().copied());
    let ends = conflict.places.iter().filter_map(|place| operations[*place].interval.end);
    let at = ends.filter(|end| *end < u64::MAX).max().unwrap_or(0);
    judgement.anomalies.push(found(about, text, events.collect(), at));
    Some(judgement)
}

/// Operations that exclude each other.
#[derive(Debug)]
struct Conflict {
    places: Vec<usize>,
    /// The writes that lead from one to the other.
    between: Vec<usize>,
    why: String,
}

impl Conflict {
    fn of(places: Vec<usize>, why: String) -> Self {
        Self { places, between: Vec::new(), why }
    }
}

/// What somebody saw and nobody wrote, with the first who saw it: it was there at the begin, or the history does not
/// tell of the write. More than one such value excludes each other.
pub(super) fn origins(operations: &[Told<Operation>]) -> Vec<(u64, usize)> {
    let accepted = || operations.iter().enumerate().filter(|(_, told)| !told.interval.operation.rejected);
    let mut written: FastMap<u64, ()> = FastMap::default();
    let writes = accepted().map(|(_, told)| told.interval.operation).filter(|operation| operation.write);
    written.extend(writes.map(|operation| (operation.id, ())));
    let mut origins: Vec<(u64, usize)> = Vec::new();
    for (place, told) in accepted().filter(|(_, told)| told.interval.end.is_some()) {
        let operation = told.interval.operation;
        let saw = if operation.write { operation.replaced } else { Some(operation.id) };
        if let Some(saw) = saw.filter(|saw| !written.contains_key(saw))
            && origins.iter().all(|(origin, _)| *origin != saw)
            && origins.len() < 2
        {
            origins.push((saw, place));
        }
    }
    origins
}

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
        if let Some((earlier, above)) = highest.filter(|(_, highest)| *highest > rank) {
            let why = format!(
                "the first had returned by {}, before the second was called, and belongs after it: each write between them replaced the one before",
                ms(end(earlier))
            );
            let between = ranked().filter(|(place, between)| {
                operations[*place].interval.operation.write && *between > rank && *between < above
            });
            let between = between.map(|(place, _)| place).collect();
            return Some(Err(Conflict { places: vec![earlier, place], between, why }));
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
            let why = format!("both replaced {}", name(replaced));
            return Some(Err(Conflict::of(vec![other, place], why)));
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
    let origins = origins(operations);
    if let [(one, first), (other, second)] = origins[..] {
        let why = format!(
            "nobody wrote {} and nobody wrote {}, and only one of them can have been there at the begin",
            name(one),
            name(other)
        );
        return Some(Err(Conflict::of(vec![first, second], why)));
    }
    let mut ranks = FastMap::default();
    let origin = origins.first().map_or(0, |(origin, _)| *origin);
    let (mut last, mut rank) = (origin, 0);
    ranks.insert(origin, 0);
    while let Some((id, _)) = next.remove(&last) {
        rank += 2;
        ranks.insert(id, rank);
        last = id;
    }
    // Every other one replaced one that was written: they go round in a ring.
    let start = next.iter().map(|(replaced, (_, place))| (*place, *replaced)).min();
    if let Some((_, start)) = start {
        let (mut ring, mut at) = (Vec::new(), start);
        while let Some((id, place)) = next.remove(&at) {
            ring.push(place);
            at = id;
        }
        ring.sort_unstable();
        return Some(Err(Conflict::of(ring, "they replaced each other in a ring".to_owned())));
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
                    write, key: 0, id, replaced: known.then_some(replaced), token: None, rejected: false, unseen: false,
                };
                let end = known.then_some(start + length);
                let interval = Interval { operation, start, end };
                operations.push(Told { interval, words: String::new(), events: Vec::new(), unit: id });
            }
            let origin = origins(&operations).first().map_or(0, |(origin, _)| *origin);
            let intervals: Vec<_> = operations.iter().map(|told| told.interval.clone()).collect();
            let found = matches!(
                search(&CasRegister { origin }, &intervals, &Budget::default(), &mut || false),
                Answer::Found { .. }
            );
            if let Some(answer) = conflict(&operations) {
                prop_assert_eq!(answer.is_ok(), found);
                if let Err(conflict) = answer {
                    // What is told proves it by itself.
                    let mut places: Vec<usize> = conflict.places;
                    places.extend(conflict.between);
                    places.sort_unstable();
                    let proof: Vec<_> = places.into_iter().map(|place| operations[place].clone()).collect();
                    prop_assert!(matches!(super::conflict(&proof), Some(Err(_))), "{:#?}", proof);
                }
            }
        }
    }
}
