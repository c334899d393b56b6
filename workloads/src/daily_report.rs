//! A report that is computed from a snapshot and overwrites the last one: does a stale report end on top?

use fencepost_checker::{
    plan::Span,
    registry::{ChoiceError, Item, Options},
};

use crate::{
    protocol::{Content, Step},
    workload::Workload,
};

pub(crate) struct DailyReport;

impl Workload for DailyReport {
    fn item(&self) -> Item {
        Item {
            name: "daily-report",
            summary: "compute a report from a snapshot taken at the acquire, then overwrite the last one",
            documentation: "A blind overwrite: the key is never read. A holder that comes too late puts an old report \
                over a newer one (stale-write).",
            options: &[],
        }
    }

    fn lock(&self) -> &'static str {
        "daily-sales"
    }

    fn key(&self) -> &'static str {
        "report"
    }

    fn steps(&self, _: &Options, hold: Span) -> Result<Vec<Step>, ChoiceError> {
        let write = Step::Write { content: Content::Report, after_check: false };
        Ok(vec![Step::Acquire, Step::Hold { span: hold }, write, Step::Release])
    }
}
