//! `lease-mutex`: a mutex whose holds may end with their lease.

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
        name: "lease-mutex",
        summary: "a mutex whose holds may end with their lease",
        documentation: "A hold may end by itself from the instant on at which its lease may have run out, as the contract says. A renewal that came too late takes the lock anew.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "lease-mutex", &LeaseMutex, true, limits)
}

/// Who holds.
struct LeaseMutex;

impl Spec for LeaseMutex {
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
            What::Acquire => state.is_none().then_some(Some(operation.attempt)),
            What::Retake => (mine || state.is_none()).then_some(Some(operation.attempt)),
            What::Free => mine.then_some(None),
            What::Find => (!mine).then_some(*state),
            What::MayFree | What::Expire => Some(if mine { None } else { *state }),
        }
    }

    fn inert(&self, state: &Self::State, operation: &Operation) -> bool {
        let over = operation.after_acquire && *state != Some(operation.attempt);
        over && matches!(operation.what, What::MayFree | What::Expire)
    }
}
