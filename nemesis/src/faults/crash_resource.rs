//! The protected resource crashes and comes back, right when an expired holder is about to write: does the
//! fence remember the highest token?

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, length, point},
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

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        let gap = length(options, "gap", setting.ttl)?;
        let wait = length(options, "wait", setting.ttl)?;
        let down = length(options, "down", setting.ttl)?;
        Ok(Some(PlannedFault {
            name: NAME,
            trigger: Trigger::During { at: point(NAME, options, setting)?, gap },
            what: format!("wait for a rival's write, kill the resource, down for {}", show(down)),
            strike: Box::new(CrashOvertaken { wait, down }),
        }))
    }
}

/// Strikes when the holder at the point was overtaken.
struct CrashOvertaken {
    wait: Duration,
    down: Duration,
}

#[async_trait]
impl Strike for CrashOvertaken {
    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        if let Some(point) = point {
            wait_for(stage.watch(), self.wait, |seen| seen.is_rival_write(point)).await;
        }
        stage.kill_and_restart(NAME, &[Target::Resource], self.down, &["data"]).await;
        Next::Go
    }
}
