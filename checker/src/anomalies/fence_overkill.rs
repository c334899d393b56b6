//! `fence-overkill`: the fence turned a rightful access away.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "fence-overkill",
        summary: "the fence turned a rightful access away",
        documentation: "The access carried a token at least as high as the highest that the resource itself named in \
                        its refusal, or the resource named one that nobody had ever brought.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
};
