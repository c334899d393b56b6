//! What can go wrong with a lock? One file an anomaly, each with what it means and how it is proven.

mod act_after_loss;
mod belief_overlap;
mod double_grant;
mod false_held;
mod false_loss;
mod fence_breach;
mod fence_overkill;
mod foreign_release;
mod invalid_grant;
pub(crate) mod late_notice;
mod lost_continuity;
mod lost_update;
mod non_linearizable;
mod phantom_holder;
mod premature_expiry;
mod resurrection;
mod stale_write;
mod starvation;
mod stuck_lock;
mod token_duplicate;
mod token_regression;
mod unfenced_window;
mod unnoticed_loss;

use crate::{
    case::{Case, Finding, Told},
    registry::Item,
    verdict::Severity,
};

/// Which question an anomaly answers; the verdict answers each of them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Analysis {
    /// Did the lock exclude, and did its library tell the truth?
    Exclusion,
    /// Do tokens grow with every tenure?
    Tokens,
    /// Did the data survive?
    Resource,
    /// Could the lock be had?
    Liveness,
    /// Is there an order that the model allows? Only where one was asked for.
    Linearizable,
}

impl Analysis {
    /// Those that every history answers.
    pub const ALL: [Self; 4] = [Self::Exclusion, Self::Tokens, Self::Resource, Self::Liveness];

    /// The name in `verdict.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusion => "exclusion",
            Self::Tokens => "tokens",
            Self::Resource => "resource",
            Self::Liveness => "liveness",
            Self::Linearizable => "linearizable",
        }
    }
}

/// A kind of anomaly, as listed by `fencepost list anomalies`.
#[derive(Clone, Copy, Debug)]
pub struct AnomalyKind {
    /// Its id (the item's name), summary and documentation.
    pub item: Item,
    /// How grave it is.
    pub severity: Severity,
    /// Which question it answers.
    pub analysis: Analysis,
    /// Finds them all.
    pub(crate) find: fn(&Case<'_>) -> Vec<Finding>,
    /// Tells of one.
    pub(crate) tell: fn(&Case<'_>, &Finding) -> Told,
}

impl AnomalyKind {
    /// The id, such as `stale-write`.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        self.item.name
    }
}

/// Every anomaly that is looked for, in the order in which equally grave ones are told.
pub const ANOMALIES: &[AnomalyKind] = &[
    double_grant::KIND,
    premature_expiry::KIND,
    belief_overlap::KIND,
    invalid_grant::KIND,
    false_held::KIND,
    lost_continuity::KIND,
    resurrection::KIND,
    late_notice::KIND,
    act_after_loss::KIND,
    false_loss::KIND,
    token_duplicate::KIND,
    token_regression::KIND,
    stale_write::KIND,
    fence_breach::KIND,
    fence_overkill::KIND,
    unfenced_window::KIND,
    lost_update::KIND,
    foreign_release::KIND,
    unnoticed_loss::KIND,
    stuck_lock::KIND,
    phantom_holder::KIND,
    starvation::KIND,
    non_linearizable::KIND,
];

/// The anomaly of this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static AnomalyKind> {
    ANOMALIES.iter().find(|kind| kind.id() == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_documented() {
        for (place, kind) in ANOMALIES.iter().enumerate() {
            assert!(ANOMALIES[..place].iter().all(|other| other.id() != kind.id()), "{} twice", kind.id());
            assert!(!kind.item.summary.is_empty() && kind.item.documentation.len() > 80, "{}", kind.id());
        }
    }
}
