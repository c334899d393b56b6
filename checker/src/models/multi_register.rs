//! `multi-register`: registers that are judged together.

use super::{
    Judgement, Limits, ModelKind,
    register::{self, Operation},
};
use crate::{
    case::Case,
    registry::{Item, Options},
    search::Spec,
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "multi-register",
        summary: "registers that are judged together",
        documentation: "All keys of the resource form one state, as for transactions. For single accesses it says the same as `kv`, at a higher price.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    register::each_part(
        case,
        limits,
        |_| 0,
        |about, mut operations, limits| {
            operations.retain(|told| !told.interval.operation.unseen);
            register::searched("multi-register", about, &MultiRegister, operations, limits)
        },
    )
}

/// The last write of each key, by key.
struct MultiRegister;

impl Spec for MultiRegister {
    type State = Vec<(u32, u64)>;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        format!("last writes {:?}", state.iter().map(|(_, write)| write).collect::<Vec<_>>())
    }

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let place = state.binary_search_by_key(&operation.key, |(key, _)| *key);
        let last = place.map_or(0, |place| state[place].1);
        match (operation.write, operation.rejected) {
            (_, true) => Some(state.clone()),
            (true, _) => {
                let mut next = state.clone();
                match place {
                    Ok(place) => next[place].1 = operation.id,
                    Err(place) => next.insert(place, (operation.key, operation.id)),
                }
                Some(next)
            }
            (false, _) => (last == operation.id).then(|| state.clone()),
        }
    }
}
