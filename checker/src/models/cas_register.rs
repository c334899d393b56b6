//! `cas-register`: a register whose writes say what they replaced.

use super::{
    Judgement, Limits, ModelKind, chain,
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
        name: "cas-register",
        summary: "a register whose writes say what they replaced",
        documentation: "Each key is a register of its own; a write that returned what it replaced fits only there. The replaced writes form a chain, along which the search has hardly a choice. What was there at the begin is what somebody saw and nobody wrote; there can be only one such value.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    register::each_key(case, limits, |about, operations, limits| {
        chain::judge("cas-register", about, &operations).unwrap_or_else(|| {
            let origin = chain::origins(&operations).first().map_or(0, |(origin, _)| *origin);
            register::searched("cas-register", about, &CasRegister { origin }, operations, limits)
        })
    })
}

/// The last write.
pub(super) struct CasRegister {
    /// What was there at the begin.
    pub(super) origin: u64,
}

impl Spec for CasRegister {
    type State = u64;
    type Operation = Operation;

    fn describe(&self, state: &Self::State) -> String {
        format!("last write {}", register::name(*state))
    }

    fn initial(&self) -> Self::State {
        self.origin
    }

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        match (operation.write, operation.rejected) {
            (_, true) => Some(*state),
            (true, _) => operation.replaced.is_none_or(|replaced| replaced == *state).then_some(operation.id),
            (false, _) => (*state == operation.id).then_some(*state),
        }
    }
}
