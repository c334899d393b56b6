//! Any client is stopped at any moment, in the middle of whatever it does.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, length},
    quantity::show,
    schedule::{Stage, Trigger},
};

const NAME: &str = "pause";

pub(super) struct Pause;

impl Fault for Pause {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "stops clients (SIGSTOP) at random moments",
            documentation: "A Poisson process picks a client and stops it, whatever it is doing: also in the middle \
                of a request, where no targeted fault strikes.",
            options: &[
                OptionSpec {
                    name: "every",
                    summary: "mean time between strikes",
                    default: "1ttl",
                    values: &[],
                },
                OptionSpec { name: "for", summary: "how long it lasts", default: "1.5ttl", values: &[] },
            ],
        }
    }

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        let length = length(options, "for", setting.ttl)?;
        Ok(Some(PlannedFault {
            name: NAME,
            trigger: Trigger::Random { mean: crate::fault::length(options, "every", setting.ttl)? },
            what: format!("stop a client for {}", show(length)),
            strike: Box::new(StopClient { length }),
        }))
    }
}

struct StopClient {
    length: Duration,
}

#[async_trait]
impl Strike for StopClient {
    async fn strike(&self, stage: &Stage, _: Option<&Point>) -> Next {
        if let Some(target) = stage.pick(&stage.testbed.clients()) {
            stage.pause(NAME, &target, self.length).await;
        }
        Next::Go
    }
}
