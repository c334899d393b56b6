//! `token-regression`: a later tenure got a token that is not higher.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "token-regression",
        summary: "a later tenure got a token that is not higher",
        documentation: "One tenure certainly precedes another and its token is not lower. A fence then turns the \
                        rightful holder away or lets the expired one in. Tokens must be drawn in the very step that \
                        grants, from a source that survives what the lock survives.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Tokens,
};
