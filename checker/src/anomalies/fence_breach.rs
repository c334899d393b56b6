//! `fence-breach`: the fence let a lower token pass after a higher one.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "fence-breach",
        summary: "the fence let a lower token pass after a higher one",
        documentation: "The resource's own record shows an accepted write with a token below one that it had already \
                        committed: the check is missing, racy, or forgot its maximum, for instance because that \
                        lives in memory.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
};
