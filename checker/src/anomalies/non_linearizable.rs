//! `non-linearizable`: no order of the operations fits the model.

use super::{Analysis, AnomalyKind};
use crate::{case::Told, registry::Item, verdict::Severity};

/// The registry item. Models find and tell it themselves: only where one was asked for.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "non-linearizable",
        summary: "no order of the operations fits the model",
        documentation: "Asked for with a model: no order of the operations, one after the other, keeps both \
                        their stamps and the model's rules. The witness is the smallest set of operations that \
                        has no order either; the text names the one that fits nowhere and the states that were \
                        possible before it.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Linearizable,
    find: |_| Vec::new(),
    tell: |_, _| Told::default(),
};
