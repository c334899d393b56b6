//! `stale-write`: an old holder's write landed on top of a newer holder's.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "stale-write",
        summary: "an old holder's write landed on top of a newer holder's",
        documentation: "In the resource's own commit order an accepted write of one tenure stands after an accepted \
                        write of a tenure that it certainly precedes. The newer holder's work was overwritten.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
};
