//! `lost-update`: a read-modify-write overwrote a write that it had not read.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "lost-update",
        summary: "a read-modify-write overwrote a write that it had not read",
        documentation: "The write replaced another than the one that its attempt had read: what came in between is \
                        lost. The resource returns what each write replaced, so this is its own evidence.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
};
