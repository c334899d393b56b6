//! `belief-overlap`: an expired holder went on while another held the lock.

use super::{Analysis, AnomalyKind};
use crate::{registry::Item, verdict::Severity};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "belief-overlap",
        summary: "an expired holder went on while another held the lock",
        documentation: "Two clients acted on the lock at the same time, and the service broke no promise: the lease \
                        of the first had run out. That is what leases do to a client that stops for longer than its \
                        ttl; only a fence at the resource protects the data. It is a violation of the library, and \
                        reported as one, if that promised to renew, its process never stood still, and nothing \
                        disturbed client, link or server.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
};
