//! Registers whose writes all differ, in O(n log n).
//!
//! Each write and its reads form a cluster; its *zone* lies between the first return and the last call among them.
//! Where the first return comes first, the cluster's value is there for the whole zone (a *forward* zone);
//! otherwise there is one instant at which all of it can take effect (a *backward* zone). An order exists iff no
//! read returned before its write was called, no two forward zones overlap and no backward zone lies inside a
//! forward one (Gibbons & Korach, "Testing shared memories", 1997).

use super::{About, Judgement, Told, found, register::Operation};
use crate::names::FastMap;

/// A write and its reads.
#[derive(Clone, Debug)]
struct Cluster {
    id: u64,
    /// The place of its write; `None`: the value that was there at the begin.
    write: Option<usize>,
    /// The first return, and whose.
    first_end: (u64, Option<usize>),
    /// The last call, and whose.
    last_start: (u64, Option<usize>),
    reads: usize,
}

impl Cluster {
    fn is_forward(&self) -> bool {
        self.first_end.0 < self.last_start.0
    }

    /// The operations that define its zone.
    fn bounds(&self) -> impl Iterator<Item = usize> {
        self.write.into_iter().chain(self.first_end.1).chain(self.last_start.1)
    }
}

/// Judges one key.
pub(super) fn judge(model: &str, about: &About, operations: &[Told<Operation>]) -> Judgement {
    let mut judgement = Judgement::default();
    if let Some((places, why)) = conflict(operations) {
        let mut places = places;
        places.sort_by_key(|place| operations[*place].interval.start);
        places.dedup();
        let words: Vec<&str> = places.iter().map(|place| operations[*place].words.as_str()).collect();
        let text = format!(
            "Of {about}, these operations have no order that model '{model}' allows: {}; {why}.",
            words.join(", ")
        );
        let at =
            places.iter().filter_map(|place| operations[*place].interval.end).filter(|end| *end < u64::MAX);
        let events = places.iter().flat_map(|place| operations[*place].events.iter().copied());
        judgement.anomalies.push(found(about, text, events.collect(), at.max().unwrap_or(0)));
    }
    judgement
}

/// Operations that exclude each other, and why.
fn conflict(operations: &[Told<Operation>]) -> Option<(Vec<usize>, String)> {
    let clusters = match clusters(operations) {
        Ok(clusters) => clusters,
        Err(found) => return Some(found),
    };
    let mut forward: Vec<&Cluster> = clusters.iter().filter(|cluster| cluster.is_forward()).collect();
    forward.sort_by_key(|cluster| cluster.first_end.0);
    let both = |a: &Cluster, b: &Cluster| a.bounds().chain(b.bounds()).collect::<Vec<_>>();
    for pair in forward.windows(2) {
        if pair[1].first_end.0 < pair[0].last_start.0 {
            let why = format!("both {} and {} would have to be there at once", pair[0].id, pair[1].id);
            return Some((both(pair[0], pair[1]), why));
        }
    }
    // Forward zones are disjoint now, so only the last that begins before can enclose.
    for inner in clusters.iter().filter(|cluster| !cluster.is_forward()) {
        let count = forward.partition_point(|zone| zone.first_end.0 < inner.last_start.0);
        let outer = count.checked_sub(1).map(|last| forward[last]);
        if let Some(outer) = outer.filter(|outer| inner.first_end.0 < outer.last_start.0) {
            let why = format!("{} was there all the time in which {} would have to be", outer.id, inner.id);
            return Some((both(outer, inner), why));
        }
    }
    None
}

fn clusters(operations: &[Told<Operation>]) -> Result<Vec<Cluster>, (Vec<usize>, String)> {
    let mut clusters =
        vec![Cluster { id: 0, write: None, first_end: (0, None), last_start: (0, None), reads: 0 }];
    let mut by_id: FastMap<u64, usize> = FastMap::default();
    by_id.insert(0, 0);
    for (place, told) in operations.iter().enumerate() {
        let (operation, interval) = (told.interval.operation, &told.interval);
        if operation.write && !operation.rejected {
            by_id.insert(operation.id, clusters.len());
            clusters.push(Cluster {
                id: operation.id,
                write: Some(place),
                first_end: (interval.end.unwrap_or(u64::MAX), Some(place)),
                last_start: (interval.start, Some(place)),
                reads: 0,
            });
        }
    }
    for (place, told) in operations.iter().enumerate() {
        let (operation, interval) = (told.interval.operation, &told.interval);
        if operation.write || operation.rejected {
            continue;
        }
        let Some(cluster) = by_id.get(&operation.id).map(|number| &mut clusters[*number]) else {
            return Err((vec![place], format!("nobody wrote {}", operation.id)));
        };
        let end = interval.end.unwrap_or(u64::MAX);
        let too_early = cluster.write.filter(|write| end < operations[*write].interval.start);
        if let Some(write) = too_early {
            return Err((vec![place, write], format!("{} was read before it was written", operation.id)));
        }
        cluster.reads += 1;
        cluster.first_end = cluster.first_end.min((end, Some(place)));
        cluster.last_start = cluster.last_start.max((interval.start, Some(place)));
    }
    // A write that may never have happened and that nobody read did not.
    let happened = |cluster: &Cluster| {
        let known = cluster.write.is_none_or(|write| operations[write].interval.end.is_some());
        known || cluster.reads > 0
    };
    clusters.retain(happened);
    Ok(clusters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::register::Register,
        search::{Answer, Budget, Interval, search},
    };
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn zones_agree_with_the_search(
            raw in prop::collection::vec((any::<bool>(), 1u64..5, 0u64..12, 1u64..6, 0u8..5), 1..9),
        ) {
            let mut written = std::collections::HashSet::new();
            let mut operations = Vec::new();
            for (write, id, start, length, unknown) in raw {
                if write && !written.insert(id) {
                    continue;
                }
                let operation =
                    Operation { write, key: 0, id, replaced: None, token: None, rejected: false, unseen: false };
                let end = (!write || unknown > 0).then_some(start + length);
                let interval = Interval { operation, start, end };
                operations.push(Told { interval, words: String::new(), events: Vec::new(), unit: id });
            }
            let intervals: Vec<_> = operations.iter().map(|told| told.interval.clone()).collect();
            let found = matches!(
                search(&Register, &intervals, &Budget::default(), &mut || false),
                Answer::Found { .. }
            );
            prop_assert_eq!(conflict(&operations).is_none(), found);
        }
    }
}
