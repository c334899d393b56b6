//! `reentrant-mutex`: an owner may take it again; as many releases free it.

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
        name: "reentrant-mutex",
        summary: "an owner may take it again; as many releases free it",
        documentation: "A mutex with an owner and a count. Owners are what the acquires name, else processes.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "reentrant-mutex", &ReentrantMutex, false, limits)
}

/// The owner and how often he holds.
struct ReentrantMutex;

impl Spec for ReentrantMutex {
    type State = (u64, u32);
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        if state.1 == 0 { "free".to_owned() } else { format!("held {} times by one owner", state.1) }
    }

    fn initial(&self) -> Self::State {
        (0, 0)
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let (holder, count) = *state;
        let mine = count > 0 && holder == operation.owner;
        let less = || if count > 1 { (holder, count - 1) } else { (0, 0) };
        match operation.what {
            What::Acquire | What::Retake if mine => Some((holder, count + 1)),
            What::Acquire | What::Retake => (count == 0).then_some((operation.owner, 1)),
            What::Free => mine.then(less),
            What::Find => (!mine).then_some(*state),
            What::MayFree | What::Expire => Some(if mine { less() } else { *state }),
        }
    }

    fn kin(&self, operation: &Operation) -> Option<u64> {
        lock::kin_of_owner(operation)
    }
}
