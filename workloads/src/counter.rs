//! Read, work, write one more: is an increment lost?

use fencepost_checker::{
    plan::Span,
    registry::{ChoiceError, Item, OptionSpec, Options},
};

use crate::{
    protocol::{Content, Step},
    workload::Workload,
};

pub(crate) struct Counter;

impl Workload for Counter {
    fn item(&self) -> Item {
        Item {
            name: "counter",
            summary: "read a counter, work, write one more",
            documentation: "A read-modify-write: whoever writes on top of a value that changed since it was read takes \
                an increment away (lost-update). With check=held the client asks its library 'is it still mine?' \
                right before the write; a pause between answer and write (at=write.between) shows that asking does \
                not help.",
            options: &[OptionSpec {
                name: "check",
                summary: "what is asked right before the write",
                default: "none",
                values: &["none", "held"],
            }],
        }
    }

    fn lock(&self) -> &'static str {
        "counter"
    }

    fn key(&self) -> &'static str {
        "count"
    }

    fn steps(&self, options: &Options, hold: Span) -> Result<Vec<Step>, ChoiceError> {
        let asks = options.get("check") == "held";
        let mut steps = vec![Step::Acquire, Step::Read, Step::Hold { span: hold }];
        if asks {
            steps.push(Step::Held);
        }
        steps.push(Step::Write { content: Content::Increment, after_check: asks });
        steps.push(Step::Release);
        Ok(steps)
    }
}
