//! `false-loss`: the holder was told that the lock is lost, and it was not.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "false-loss",
        summary: "the holder was told that the lock is lost, and it was not",
        documentation: "A notice of loss was delivered although, before and after it, an observer saw at the server \
                        that the lock was still the holder's. Nothing broke, but work was given up for nothing.",
        options: &[],
    },
    severity: Severity::Liveness,
    analysis: Analysis::Liveness,
};
