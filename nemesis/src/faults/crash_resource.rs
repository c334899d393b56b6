//! The protected resource crashes and comes back, right when an expired holder is about to write: does the
//! fence remember the highest token?

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, length, point},
    quantity::show,
    schedule::{Stage, Trigger, wait_for},
    testbed::Target,
};

const NAME: &str = "crash-resource";

pub(super) struct CrashResource;

impl Fault for CrashResource {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "kills the protected resource (SIGKILL) once a rival has written, and starts it again",
            documentation: "The holder at the point is kept back until its lease has run out and another client has \
                written, or for at most `wait`; then the resource is killed and started again on its data, and \
                the late holder goes on at once.",
            options: &[
                AT,
                OptionSpec {
                    name: "wait",
                    summary: "how long for a rival's write",
                    default: "2ttl",
                    values: &[],
                },
                OptionSpec {
                    name: "down",
                    summary: "time before it is started again",
                    default: "0s",
                    values: &[],
                },
                OptionSpec {
                    name: "gap",
                    summary: "least time between strikes",
                    default: "1ttl",
                    values: &[],
                },
            ],
        }
    }

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<Box<dyn PlannedFault>>, PlanError> {
        let gap = length(options, "gap", setting.ttl)?;
        let trigger = Trigger::During { at: point(NAME, options, setting)?, gap };
        let wait = length(options, "wait", setting.ttl)?;
        Ok(Some(Box::new(Planned { trigger, wait, down: length(options, "down", setting.ttl)? })))
    }
}

struct Planned {
    trigger: Trigger,
    wait: Duration,
    down: Duration,
}

#[async_trait]
impl PlannedFault for Planned {
    fn name(&self) -> &'static str {
        NAME
    }

    fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        if let Some(point) = point {
            wait_for(stage.watch(), self.wait, |seen| seen.is_rival_write(point)).await;
        }
        stage.kill_and_restart(NAME, &[Target::Resource], self.down, &["data"]).await;
        Next::Go
    }

    fn describe(&self) -> String {
        format!("{NAME}: kill the resource, down for {}, {}", show(self.down), self.trigger.describe())
    }
}
