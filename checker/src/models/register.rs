//! `register`: a read returns the last write; and what all models of a resource share.

use super::{About, Judgement, Limits, ModelKind, Told, judge as search_and_tell, zones};
use crate::{
    case::{Case, ms},
    ledger::{Access, Answer},
    names::FastMap,
    registry::{Item, Options},
    search::{Interval, Spec},
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "register",
        summary: "a read returns the last write",
        documentation: "Each key of the resource, in each of its lives, is a register of its own. Writes have numbers of their own, so an order is found in O(n log n) by comparing the zones between them.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &mut Limits<'_>) -> Judgement {
    each_key(case, limits, |about, operations, _| zones::judge("register", about, &operations))
}

/// An access to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) write: bool,
    pub(crate) key: u32,
    /// What was written or read.
    pub(crate) id: u64,
    /// What a write replaced, if it said so.
    pub(crate) replaced: Option<u64>,
    pub(crate) token: Option<u64>,
    /// The fence turned it away.
    pub(crate) rejected: bool,
}

/// Judges each key, in each life of the resource, by itself.
pub(crate) fn each_key(
    case: &Case<'_>,
    limits: &mut Limits<'_>,
    judge: impl Fn(&About, Vec<Told<Operation>>, &mut Limits<'_>) -> Judgement,
) -> Judgement {
    each_part(case, limits, |access| access.key, judge)
}

/// Judges the accesses in parts, in each life of the resource.
pub(crate) fn each_part(
    case: &Case<'_>,
    limits: &mut Limits<'_>,
    part: impl Fn(&Access) -> u32,
    judge: impl Fn(&About, Vec<Told<Operation>>, &mut Limits<'_>) -> Judgement,
) -> Judgement {
    let mut parts: FastMap<(u32, u32), Vec<&Access>> = FastMap::default();
    for access in &case.ledger.accesses {
        if access.answer != Answer::Unknown {
            parts.entry((part(access), access.incarnation)).or_default().push(access);
        }
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(part, _)| *part);
    let mut judgement = Judgement::default();
    for ((number, _), mut accesses) in parts {
        // A write of unknown outcome may have landed in any life.
        let unknown = case.ledger.accesses.iter().filter(|access| access.answer == Answer::Unknown);
        accesses.extend(unknown.filter(|access| access.write && part(access) == number));
        let operations: Vec<Told<Operation>> =
            accesses.iter().filter_map(|access| told(case, access)).collect();
        let whole = accesses.windows(2).any(|pair| pair[0].key != pair[1].key);
        let key = (!whole).then(|| case.ledger.keys.name(accesses[0].key).to_owned());
        let one = judge(&About { lock: None, key }, operations, limits);
        judgement.anomalies.extend(one.anomalies);
        judgement.unknown.extend(one.unknown);
    }
    judgement
}

fn told(case: &Case<'_>, access: &Access) -> Option<Told<Operation>> {
    let nothing_there = !access.write && access.position == Some(0);
    let rejected = access.answer == Answer::Rejected;
    let id = access.write_id.or((nothing_there || rejected).then_some(0))?;
    let process = case.ledger.process_name(access.process);
    let unknown = access.answer == Answer::Unknown;
    let words = format!(
        "{process}'s {} of {id} from {}{}",
        if access.write { "write" } else { "read" },
        ms(access.call.start),
        match access.answer {
            Answer::Accepted => "",
            Answer::Rejected => " (turned away)",
            Answer::Unknown => " (of unknown outcome)",
        }
    );
    let operation = Operation {
        write: access.write,
        key: access.key,
        id,
        replaced: access.replaced,
        token: access.token,
        rejected,
    };
    // A write that the final dump settled took effect; nobody knows when after its call.
    let settled = access.resolved_by.is_some();
    let end = if settled { u64::MAX } else { access.call.end };
    Some(Told {
        interval: Interval { operation, start: access.call.start, end: (!unknown).then_some(end) },
        words,
        events: access.call.events().chain(access.resolved_by).collect(),
        unit: id,
    })
}

/// The same by search, for models that say more than a register, and as a referee.
pub(crate) fn searched<M: Spec<Operation = Operation>>(
    model: &str,
    about: &About,
    spec: &M,
    mut operations: Vec<Told<Operation>>,
    limits: &mut Limits<'_>,
) -> Judgement {
    // What a write replaced, or why it was turned away, ties it to others: they are left out together.
    if matches!(model, "cas-register" | "fenced-register") {
        operations.iter_mut().for_each(|told| told.unit = 0);
    }
    search_and_tell(model, about, spec, operations, limits)
}

/// The last write.
#[cfg(test)]
pub(super) struct Register;

#[cfg(test)]
impl Spec for Register {
    type State = u64;
    type Operation = Operation;

    fn initial(&self) -> u64 {
        0
    }

    fn step(&self, state: &u64, operation: &Operation) -> Option<u64> {
        if operation.write { Some(operation.id) } else { (*state == operation.id).then_some(*state) }
    }
}
