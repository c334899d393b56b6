//! A holder is stopped in the middle of its work, for longer than its lease, as by a garbage collector, a
//! migration of its virtual machine or a suspended laptop.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, length, point, share},
    quantity::show,
    schedule::{Stage, Trigger},
    testbed::Target,
};

const NAME: &str = "pause-holder";

pub(super) struct PauseHolder;

impl Fault for PauseHolder {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "stops holders of the lock (SIGSTOP) at a point of their work",
            documentation: "A share of the clients that reach the point are stopped there and continued later. By \
                default right before the write and for longer than the lease: the classic way in which a lease lock \
                corrupts data.",
            options: &[
                AT,
                OptionSpec {
                    name: "share",
                    summary: "share of holders struck, 0 to 1",
                    default: "0.5",
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
            trigger: Trigger::Each { at: point(NAME, options, setting)?, share: share(options, "share")? },
            what: format!("stop it for {}", show(length)),
            strike: Box::new(StopHolder { length }),
        }))
    }
}

struct StopHolder {
    length: Duration,
}

#[async_trait]
impl Strike for StopHolder {
    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        if let Some(point) = point {
            stage.pause(NAME, &Target::Client(point.client.clone()), self.length).await;
        }
        Next::Go
    }
}
