//! `register`: a read returns the last write; and what all models of a resource share.

use super::{
    About, Judgement, Limits, ModelKind, PINNED, Regroup, Told, in_parts, judge as search_and_tell, zones,
};
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

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    each_key(case, limits, |about, operations, limits| zones_or_search("register", about, operations, limits))
}

/// What was written is told by its number; a foreign history may have written 0, which stands for nothing here.
pub(crate) const ZERO: u64 = 1 << 52;

/// A write's number in words.
pub(crate) fn name(id: u64) -> String {
    if id == ZERO { "value 0".to_owned() } else { id.to_string() }
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
    /// A read whose answer nobody knows: its token may have been seen.
    pub(crate) unseen: bool,
}

/// Judges each key, in each life of the resource, by itself.
pub(crate) fn each_key(
    case: &Case<'_>,
    limits: &Limits<'_>,
    judge: impl Fn(&About, Vec<Told<Operation>>, &Limits<'_>) -> Judgement + Sync,
) -> Judgement {
    each_part(
        case,
        limits,
        |access| access.key,
        |about, mut operations: Vec<Told<Operation>>, limits| {
            // What nobody saw says nothing of what was there.
            operations.retain(|told| !told.interval.operation.unseen);
            judge(about, operations, limits)
        },
    )
}

/// Judges the accesses in parts, in each life of the resource.
pub(crate) fn each_part(
    case: &Case<'_>,
    limits: &Limits<'_>,
    part: impl Fn(&Access) -> u32,
    judge: impl Fn(&About, Vec<Told<Operation>>, &Limits<'_>) -> Judgement + Sync,
) -> Judgement {
    let mut parts: FastMap<(u32, u32), Vec<&Access>> = FastMap::default();
    let mut unknown: FastMap<u32, Vec<&Access>> = FastMap::default();
    let named = |access: &Access| !case.ledger.incarnations.name(access.incarnation).is_empty();
    let mut lives: FastMap<u32, Vec<u32>> = FastMap::default();
    for access in case.ledger.accesses.iter().filter(|access| named(access)) {
        let lives = lives.entry(part(access)).or_default();
        if !lives.contains(&access.incarnation) {
            lives.push(access.incarnation);
        }
    }
    for access in &case.ledger.accesses {
        if access.answer != Answer::Unknown {
            // An answer need not say in which life it was given.
            let life = match lives.get(&part(access)).map(Vec::as_slice) {
                Some([only]) => *only,
                Some(_) if !named(access) && (!access.write || access.answer == Answer::Rejected) => continue,
                _ => access.incarnation,
            };
            parts.entry((part(access), life)).or_default().push(access);
        } else {
            unknown.entry(part(access)).or_default().push(access);
        }
    }
    // An access of unknown outcome may have landed in any life.
    for ((number, _), accesses) in &mut parts {
        accesses.extend(unknown.get(number).into_iter().flatten());
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(part, _)| *part);
    in_parts(&parts, limits, |(_, accesses), limits| {
        let operations: Vec<Told<Operation>> =
            accesses.iter().filter_map(|access| told(case, access)).collect();
        let whole = accesses.windows(2).any(|pair| pair[0].key != pair[1].key);
        let key = (!whole).then(|| case.ledger.keys.name(accesses[0].key).to_owned());
        judge(&About { lock: None, key }, operations, limits)
    })
}

/// Did two writes write the same? Then what was read does not say which of them was read.
pub(super) fn repeats(operations: &[Told<Operation>]) -> bool {
    let mut seen = FastMap::default();
    let mut writes = operations.iter().map(|told| told.interval.operation);
    writes.any(|operation| operation.write && !operation.rejected && seen.insert(operation.id, ()).is_some())
}

/// By zones where every write differs, else by search.
pub(super) fn zones_or_search(
    model: &str,
    about: &About,
    operations: Vec<Told<Operation>>,
    limits: &Limits<'_>,
) -> Judgement {
    if repeats(&operations) {
        return searched(model, about, &Register, operations, limits);
    }
    zones::judge(model, about, &operations)
}

fn told(case: &Case<'_>, access: &Access) -> Option<Told<Operation>> {
    let nothing_there = !access.write && access.position == Some(0);
    let rejected = access.answer == Answer::Rejected;
    let unseen = !access.write && access.answer == Answer::Unknown;
    let id = if unseen { None } else { access.write_id };
    let id = id.or((nothing_there || rejected || unseen).then_some(0))?;
    let process = case.ledger.process_name(access.process);
    let unknown = access.answer == Answer::Unknown;
    let words = format!(
        "{process}'s {} of {} from {}{}",
        if access.write { "write" } else { "read" },
        name(id),
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
        unseen,
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
    limits: &Limits<'_>,
) -> Judgement {
    let regroup: Option<Regroup<Operation>> = match model {
        "cas-register" => {
            // What a write replaced ties it to others; no other operation rests on a read.
            for (number, told) in (0..).zip(&mut operations) {
                told.unit = if told.interval.operation.write { PINNED } else { number };
            }
            None
        }
        "fenced-register" => {
            // Others may have been turned away because of an access that was not; none because of one that was.
            for (number, told) in (0..).zip(&mut operations) {
                told.unit = if told.interval.operation.rejected { number } else { PINNED };
            }
            Some(untie)
        }
        _ => None,
    };
    search_and_tell(model, about, spec, operations, regroup, limits)
}

/// An access because of whose token nobody else was turned away stands and falls with those of the same write only.
fn untie(operations: &mut [Told<Operation>]) {
    let rejected = operations.iter().filter(|told| told.interval.operation.rejected);
    let least = rejected.filter_map(|told| told.interval.operation.token).min();
    let mut highest: FastMap<u64, u64> = FastMap::default();
    for operation in operations.iter().map(|told| told.interval.operation).filter(|told| !told.rejected) {
        let highest = highest.entry(operation.id).or_default();
        *highest = (*highest).max(operation.token.unwrap_or(0));
    }
    for told in operations {
        let operation = told.interval.operation;
        let low =
            highest.get(&operation.id).is_none_or(|highest| least.is_none_or(|least| *highest <= least));
        told.unit = match (operation.rejected, low) {
            (true, _) => PINNED - 1 - told.unit.min(PINNED / 2),
            (false, true) => operation.id,
            (false, false) => PINNED,
        };
    }
}

/// The last write.
pub(super) struct Register;

impl Spec for Register {
    type State = u64;
    type Operation = Operation;

    fn initial(&self) -> u64 {
        0
    }

    fn describe(&self, state: &u64) -> String {
        format!("last write {}", name(*state))
    }

    fn step(&self, state: &u64, operation: &Operation) -> Option<u64> {
        match (operation.write, operation.rejected) {
            (_, true) => Some(*state),
            (true, _) => Some(operation.id),
            (false, _) => (*state == operation.id).then_some(*state),
        }
    }
}
