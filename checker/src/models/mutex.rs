//! `mutex`: one holder at a time, and only the holder frees it.

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
        name: "mutex",
        summary: "one holder at a time, and only the holder frees it",
        documentation: "Owner-aware: a release frees the hold of its own attempt. It never expires. Releases of unknown outcome may take effect late or never.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "mutex", &Mutex, false, limits)
}

/// Who holds.
pub(super) struct Mutex;

impl Spec for Mutex {
    type State = Option<u64>;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        lock::holder(*state)
    }

    fn initial(&self) -> Self::State {
        None
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let mine = *state == Some(operation.attempt);
        match operation.what {
            What::Acquire | What::Retake => state.is_none().then_some(Some(operation.attempt)),
            What::Free => mine.then_some(None),
            What::Find => (!mine).then_some(*state),
            What::MayFree | What::Expire => Some(if mine { None } else { *state }),
        }
    }

    fn inert(&self, state: &Self::State, operation: &Operation) -> bool {
        // Its acquire lies behind, and it does not hold: it never will again.
        operation.after_acquire && *state != Some(operation.attempt) && operation.what == What::MayFree
    }
}
