//! `fenced-mutex`: a mutex whose tokens rise with every grant.

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
        name: "fenced-mutex",
        summary: "a mutex whose tokens rise with every grant",
        documentation: "A mutex that never expires; each grant has a token above all tokens of the grants before it.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "fenced-mutex", &FencedMutex, false, limits)
}

/// Who holds, and the highest token so far.
struct FencedMutex;

impl Spec for FencedMutex {
    type State = (Option<u64>, u64);
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        format!("{}, highest token {}", lock::holder(state.0), state.1)
    }

    fn initial(&self) -> Self::State {
        (None, 0)
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let (holder, highest) = *state;
        let mine = holder == Some(operation.attempt);
        match operation.what {
            What::Acquire | What::Retake => {
                let rises = operation.token.is_none_or(|token| token > highest);
                let highest = operation.token.unwrap_or(highest);
                (holder.is_none() && rises).then_some((Some(operation.attempt), highest))
            }
            What::Free => mine.then_some((None, highest)),
            What::Find => (!mine).then_some(*state),
            What::MayFree | What::Expire => Some(if mine { (None, highest) } else { *state }),
        }
    }

    fn inert(&self, state: &Self::State, operation: &Operation) -> bool {
        operation.after_acquire && state.0 != Some(operation.attempt) && operation.what == What::MayFree
    }
}
