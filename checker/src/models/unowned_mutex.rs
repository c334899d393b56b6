//! `unowned-mutex`: one holder at a time, and anybody frees it.

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
        name: "unowned-mutex",
        summary: "one holder at a time, and anybody frees it",
        documentation: "Jepsen's mutex: it knows held and free, not whose. It misses real double grants once releases are of unknown outcome; 'mutex' does not.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "unowned-mutex", &UnownedMutex, false, limits)
}

/// Held or free.
struct UnownedMutex;

impl Spec for UnownedMutex {
    type State = bool;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        if *state { "held" } else { "free" }.to_owned()
    }

    fn initial(&self) -> Self::State {
        false
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        match operation.what {
            What::Acquire | What::Retake => (!state).then_some(true),
            What::Free => state.then_some(false),
            What::Find => (!state).then_some(false),
            What::MayFree | What::Expire => Some(false),
        }
    }

    fn kin(&self, operation: &Operation) -> Option<u64> {
        Some(operation.what as u64)
    }
}
