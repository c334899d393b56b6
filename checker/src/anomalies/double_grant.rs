//! `double-grant`: two owners were granted the lock at the same time.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "double-grant",
        summary: "two owners were granted the lock at the same time",
        documentation: "The lock service promised the lock to one owner until a certain instant and granted it to \
                        another before. A promise ends at the call of the release, at a notice of loss, at the \
                        holder's death, or when the lease that was granted last may have run out, counted from the \
                        stamp just before its request: so what is left is broken in every interpretation of the \
                        history. Look at what the service forgot or let slip: data lost at a restart or failover, a \
                        clock that jumped, an acquire in two steps, a release that frees whoever holds. For counting \
                        locks: more holders than permits; for read-write locks: a writer beside anyone.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
