//! `act-after-loss`: a client wrote after it had been told that the lock was lost.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "act-after-loss",
        summary: "a client wrote after it had been told that the lock was lost",
        documentation: "The notice of loss had been delivered to the worker, and it called a write of the same \
                        tenure afterwards. The client ignores what its library tells it.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
