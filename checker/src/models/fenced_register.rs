//! `fenced-register`: a register that turns lower tokens away.

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
        name: "fenced-register",
        summary: "a register that turns lower tokens away",
        documentation: "Each key is a register that remembers the highest token: an access with a lower one must have been turned away, one with a token at least as high must not. It is for the fence that checks reads, too.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    register::each_part(
        case,
        limits,
        |access| access.key,
        |about, operations, limits| {
            register::searched("fenced-register", about, &FencedRegister, operations, limits)
        },
    )
}

/// The last write and the highest token.
struct FencedRegister;

impl Spec for FencedRegister {
    type State = (u64, u64);
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        format!("last write {}, highest token {}", state.0, state.1)
    }

    fn initial(&self) -> Self::State {
        (0, 0)
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let (last, highest) = *state;
        let token = operation.token.unwrap_or(highest);
        let low = token < highest;
        if operation.unseen {
            return Some((last, token.max(highest)));
        }
        match (operation.write, operation.rejected) {
            (_, true) => low.then_some(*state),
            (true, _) => (!low).then_some((operation.id, token)),
            (false, _) => (!low && last == operation.id).then_some((last, token)),
        }
    }
}
