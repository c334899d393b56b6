//! Acquire, hold, release: does the lock exclude?

use fencepost_checker::{
    plan::Span,
    registry::{ChoiceError, Item, OptionSpec, Options},
};

use crate::{protocol::Step, workload::Workload};

pub(crate) struct Mutex;

impl Workload for Mutex {
    fn item(&self) -> Item {
        Item {
            name: "mutex",
            summary: "acquire, hold, release; no data",
            documentation: "Protects nothing: it asks the lock alone whether it excludes. With renew=N the hold is cut \
                into N + 1 parts and the lease is renewed between them.",
            options: &[OptionSpec {
                name: "renew",
                summary: "explicit renewals in each hold",
                default: "0",
                values: &[],
            }],
        }
    }

    fn lock(&self) -> &'static str {
        "mutex"
    }

    fn key(&self) -> &'static str {
        "nothing"
    }

    fn steps(&self, options: &Options, hold: Span) -> Result<Vec<Step>, ChoiceError> {
        const MOST: usize = 100;
        let renewals = options.parse("renew", "a number from 0 to 100", |text| {
            text.parse::<usize>().ok().filter(|count| *count <= MOST)
        })?;
        let mut steps = vec![Step::Acquire, Step::Hold { span: hold }];
        for _ in 0..renewals {
            steps.extend([Step::Renew, Step::Hold { span: hold }]);
        }
        steps.push(Step::Release);
        Ok(steps)
    }
}
