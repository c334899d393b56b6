//! `false-held`: the library said 'still yours' while another owner held the lock.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "false-held",
        summary: "the library said 'still yours' while another owner held the lock",
        documentation: "The holder asked whether the lock was still its own and was told yes, although the whole \
                        question lies inside another owner's granted interval. An answer from local memory is worth \
                        nothing once the process has stood still.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
