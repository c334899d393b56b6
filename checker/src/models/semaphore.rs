//! `semaphore`: as many permits as it has, taken with weights.

use super::{
    Judgement, Limits, ModelKind,
    lock::{self, Operation, What},
};
use crate::{
    case::Case,
    registry::{ChoiceError, Item, OptionSpec, Options},
    search::Spec,
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "semaphore",
        summary: "as many permits as it has, taken with weights",
        documentation: "A counting lock that never expires. Each acquire takes as many permits as its weight; its release gives all of them back.",
        options: &[OptionSpec {
            name: "permits",
            summary: "how many there are; contract: what the history's contract says",
            default: "contract",
            values: &[],
        }],
    },
    check: |options| permits(options).map(|_| ()),
    judge,
};

fn judge(case: &Case<'_>, options: &Options, limits: &Limits<'_>) -> Judgement {
    // Checked when the model was chosen.
    let permits = permits(options).ok().flatten().unwrap_or(case.contract().permits);
    lock::each(case, "semaphore", &Semaphore { permits }, false, limits)
}

/// What was asked for; `None`: what the contract says.
fn permits(options: &Options) -> Result<Option<u64>, ChoiceError> {
    options.parse("permits", "a number from 1, or 'contract'", |text| match text {
        "contract" => Some(None),
        number => number.parse().ok().filter(|permits| *permits > 0).map(Some),
    })
}

/// Who holds how many permits, by attempt.
struct Semaphore {
    permits: u64,
}

impl Spec for Semaphore {
    type State = Vec<(u64, u32)>;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        let held = state
            .iter()
            .map(|(attempt, permits)| format!("{permits} of {} held by attempt {attempt}", self.permits));
        if state.is_empty() { "free".to_owned() } else { held.collect::<Vec<_>>().join(" and ") }
    }

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let place = state.binary_search_by_key(&operation.attempt, |(attempt, _)| *attempt);
        let taken: u64 = state.iter().map(|(_, permits)| u64::from(*permits)).sum();
        let mut next = state.clone();
        match (operation.what, place) {
            (What::Acquire | What::Retake, Err(place)) => {
                next.insert(place, (operation.attempt, operation.permits));
                (taken + u64::from(operation.permits) <= self.permits).then_some(next)
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
