//! `unnoticed-loss`: a release that does not check its owner hid that the hold had ended.

use super::{Analysis, AnomalyKind, foreign_release};
use crate::{
    case::{Case, Finding, Told},
    contract::ReleaseCheck,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "unnoticed-loss",
        summary: "a release that does not check its owner hid that the hold had ended",
        documentation: "The release succeeded after its tenure had certainly ended, and its caller never learns \
                        that it worked without the lock; a blind release may have freed the next holder's lock. \
                        Use an owner-checked release.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    if case.contract().release == ReleaseCheck::OwnerChecked {
        return Vec::new();
    }
    foreign_release::late_releases(case, KIND.severity)
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    (foreign_release::TELL)(case, finding)
}
