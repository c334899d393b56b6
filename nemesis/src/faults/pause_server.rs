//! The lock server is stopped while somebody holds: its clock runs on, its answers do not come.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, length, point},
    quantity::show,
    schedule::{Stage, Trigger},
};

const NAME: &str = "pause-server";

pub(super) struct PauseServer;

impl Fault for PauseServer {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "stops a lock server (SIGSTOP) while somebody holds",
            documentation: "Requests time out with an unknown outcome; leases run out while nobody can be granted. \
                The holder at the point waits until the server goes on. Requests that \
                their clients gave up are served then, too: the lock may be taken for nobody, until its lease ends.",
            options: &[
                AT,
                OptionSpec { name: "for", summary: "how long it lasts", default: "1.5ttl", values: &[] },
                OptionSpec {
                    name: "gap",
                    summary: "least time between strikes",
                    default: "3ttl",
                    values: &[],
                },
            ],
        }
    }

    fn needs_server(&self) -> bool {
        true
    }

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        setting.check_server(NAME)?;
        let gap = length(options, "gap", setting.ttl)?;
        let length = length(options, "for", setting.ttl)?;
        Ok(Some(PlannedFault {
            name: NAME,
            trigger: Trigger::During { at: point(NAME, options, setting)?, gap },
            what: format!("stop a lock server for {}", show(length)),
            strike: Box::new(StopServer { length }),
        }))
    }
}

struct StopServer {
    length: Duration,
}

#[async_trait]
impl Strike for StopServer {
    async fn strike(&self, stage: &Stage, _: Option<&Point>) -> Next {
        if let Some(target) = stage.pick(&stage.testbed.servers()) {
            stage.pause(NAME, &target, self.length).await;
        }
        Next::Go
    }
}
