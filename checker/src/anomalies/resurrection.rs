//! `resurrection`: a renewal succeeded after the lease had certainly ended.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "resurrection",
        summary: "a renewal succeeded after the lease had certainly ended",
        documentation: "A renewal answered ok although the lease had certainly run out. Nobody else held the lock in \
                        between, so nothing broke this time; with a rival it is a lost-continuity.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
};
