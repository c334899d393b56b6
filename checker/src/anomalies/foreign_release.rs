//! `foreign-release`: a release succeeded after the hold had certainly ended.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "foreign-release",
        summary: "a release succeeded after the hold had certainly ended",
        documentation: "A release that checks the owner answered that it freed the lock, although its tenure had \
                        certainly ended before it was called. It freed somebody else's lock, or it lies.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
