//! `kv`: a store of registers, each judged by itself.

use super::{Judgement, Limits, ModelKind, register};
use crate::{
    case::Case,
    registry::{Item, Options},
};

/// The registry item.
pub(super) const KIND: ModelKind = ModelKind {
    item: Item {
        name: "kv",
        summary: "a store of registers, each judged by itself",
        documentation: "Linearizability is local: a store is linearizable iff each of its keys is. So it is split by key, and each key compared by the zones between its writes.",
        options: &[],
    },
    check: |_| Ok(()),
    judge,
};

fn judge(case: &Case<'_>, _options: &Options, limits: &Limits<'_>) -> Judgement {
    register::each_key(case, limits, |about, operations, limits| {
        register::zones_or_search("kv", about, operations, limits)
    })
}
