//! `unfenced-window`: an expired holder's write slipped in before the new holder showed its token.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "unfenced-window",
        summary: "an expired holder's write slipped in before the new holder showed its token",
        documentation: "The fence learns of a new holder only from its first access. Until then a write of the \
                        expired holder passes. It is harmless for blind overwrites; with a read by the new holder \
                        before it, it becomes a lost-update: fence reads, too.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Resource,
};
