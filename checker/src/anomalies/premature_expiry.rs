//! `premature-expiry`: the service gave up a lease before its time.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "premature-expiry",
        summary: "the service gave up a lease before its time",
        documentation: "The server itself said that the holder does not hold (it refused a renewal, or an observer \
                        looked) at an instant at which it had promised that he does. A library's notice of loss is \
                        no such evidence. Where another owner already got the lock, the double-grant tells the story \
                        and this is not repeated.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Exclusion,
};
