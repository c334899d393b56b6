//! `late-notice`: the holder was told of the loss only after another owner had the lock.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "late-notice",
        summary: "the holder was told of the loss only after another owner had the lock",
        documentation: "From the rival's grant to the notice the holder acted on a lock that it did not have. The \
                        metric notice_ms says for how long. No notice can be early enough in every case: fence the \
                        resource.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
};
