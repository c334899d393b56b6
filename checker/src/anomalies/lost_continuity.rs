//! `lost-continuity`: a renewal succeeded although another owner had held the lock in between.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "lost-continuity",
        summary: "a renewal succeeded although another owner had held the lock in between",
        documentation: "A renewal answered ok, so its caller believes that the lock was its own throughout; but \
                        another owner held it since the last proof. The renewal took the lock anew instead of \
                        prolonging it, and whatever the caller had read under the lock is stale.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
