//! `stuck-lock`: nobody held the lock and nobody could get it.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "stuck-lock",
        summary: "nobody held the lock and nobody could get it",
        documentation: "While no client believed to hold the lock and at least one wanted it, it stayed unavailable \
                        for longer than grace after a proven release, or for longer than ttl and grace after a \
                        crash, a loss or an operation of unknown outcome. The metric leaked_ms sums such time up. \
                        Time in which the server or a link is faulted or answers errors does not count.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
};
