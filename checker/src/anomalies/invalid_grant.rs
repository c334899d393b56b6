//! `invalid-grant`: a grant that was worthless or promised too much when it was returned.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "invalid-grant",
        summary: "a grant that was worthless or promised too much when it was returned",
        documentation: "The library returned success with a validity of nothing or less, or with one that reaches \
                        beyond the lease's certain end, or after the lease had certainly ended (a dead grant: it \
                        died while the acquire was still on its way).",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
