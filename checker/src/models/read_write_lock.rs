//! `read-write-lock`: many readers or one writer.

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
        name: "read-write-lock",
        summary: "many readers or one writer",
        documentation: "A shared lock that never expires. An acquire with `shared` is a reader.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    lock::each(case, "read-write-lock", &ReadWriteLock, false, limits)
}

/// Who holds, and whether as a reader.
struct ReadWriteLock;

impl Spec for ReadWriteLock {
    type State = Vec<(u64, bool)>;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        let held = state.iter().map(|(attempt, shared)| {
            format!("held by {} attempt {attempt}", if *shared { "reader" } else { "writer" })
        });
        if state.is_empty() { "free".to_owned() } else { held.collect::<Vec<_>>().join(" and ") }
    }

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let place = state.binary_search_by_key(&operation.attempt, |(attempt, _)| *attempt);
        let mut next = state.clone();
        match (operation.what, place) {
            (What::Acquire | What::Retake, Err(place)) => {
                let room = state.iter().all(|(_, shared)| *shared && operation.shared);
                next.insert(place, (operation.attempt, operation.shared));
                room.then_some(next)
            }
            (What::Free | What::MayFree | What::Expire, Ok(place)) => {
                next.remove(place);
                Some(next)
            }
            (What::Find | What::MayFree | What::Expire, Err(_)) => Some(next),
            (What::Acquire | What::Retake | What::Find, Ok(_)) | (What::Free, Err(_)) => None,
        }
    }

    fn inert(&self, state: &Self::State, operation: &Operation) -> bool {
        let holds = state.iter().any(|(attempt, _)| *attempt == operation.attempt);
        operation.after_acquire && !holds && operation.what == What::MayFree
    }
}
