//! `reentrant-fenced-mutex`: a reentrant mutex whose tokens rise with every outermost grant.

use super::{
    Judgement, Limits, ModelKind,
    lock::{self, Operation, What},
};
use crate::{
    case::Case,
    registry::{Item, Options},
    search::Spec,
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "reentrant-fenced-mutex",
        summary: "a reentrant mutex whose tokens rise with every outermost grant",
        documentation: "A reentrant mutex; a re-entry has the token of the hold that it enters again, every other grant one above all before.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "reentrant-fenced-mutex", &ReentrantFencedMutex, false, limits)
}

/// The owner, how often he holds, and the highest token so far.
struct ReentrantFencedMutex;

impl Spec for ReentrantFencedMutex {
    type State = (u64, u32, u64);
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        format!("held {} times by one owner, highest token {}", state.1, state.2)
    }

    fn initial(&self) -> Self::State {
        (0, 0, 0)
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let (holder, count, highest) = *state;
        let mine = count > 0 && holder == operation.owner;
        let less = || if count > 1 { (holder, count - 1, highest) } else { (0, 0, highest) };
        match operation.what {
            What::Acquire | What::Retake if mine => {
                let same = operation.token.is_none_or(|token| token == highest);
                same.then_some((holder, count + 1, highest))
            }
            What::Acquire | What::Retake => {
                let rises = operation.token.is_none_or(|token| token > highest);
                let highest = operation.token.unwrap_or(highest);
                (count == 0 && rises).then_some((operation.owner, 1, highest))
            }
            What::Free => mine.then(less),
            What::Find => (!mine).then_some(*state),
            What::MayFree | What::Expire => Some(if mine { less() } else { *state }),
        }
    }

    fn kin(&self, operation: &Operation) -> Option<u64> {
        lock::kin_of_owner(operation)
    }
}
