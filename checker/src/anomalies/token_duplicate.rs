//! `token-duplicate`: two tenures got the same fencing token.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "token-duplicate",
        summary: "two tenures got the same fencing token",
        documentation: "A fence cannot tell two holders with one token apart. The source of the tokens was set back, \
                        typically by a restart without its data or a failover to a replica that lagged behind.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Tokens,
};
