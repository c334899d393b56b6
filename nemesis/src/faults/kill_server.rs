//! The lock server crashes while somebody holds, and comes back: with what it kept of its data.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, length, point},
    quantity::show,
    schedule::{Stage, Trigger, wait_for},
};

const NAME: &str = "kill-server";

pub(super) struct KillServer;

impl Fault for KillServer {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "kills a lock server (SIGKILL) while somebody holds, and starts it again",
            documentation: "The holder at the point is kept back until another client was granted the lock or 1.5 ttl \
                have passed, so that a lock lost with the server's memory shows. What the operating system had \
                been given survives; what the server kept in its memory alone is gone.",
            options: &[
                AT,
                OptionSpec { name: "nodes", summary: "how many at once", default: "1", values: &[] },
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

    fn needs_server(&self) -> bool {
        true
    }

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<Box<dyn PlannedFault>>, PlanError> {
        setting.check_server(NAME)?;
        let gap = length(options, "gap", setting.ttl)?;
        let trigger = Trigger::During { at: point(NAME, options, setting)?, gap };
        let nodes = options.parse("nodes", "how many of the lock's servers to kill, such as 1", |text| {
            text.parse().ok().filter(|nodes| (1..=setting.servers).contains(nodes))
        })?;
        Ok(Some(Box::new(Planned { trigger, nodes, down: length(options, "down", setting.ttl)? })))
    }
}

struct Planned {
    trigger: Trigger,
    nodes: usize,
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
        let Some(point) = point else { return Next::Go };
        let targets = stage.pick_several(&stage.testbed.servers(), self.nodes);
        let seen = stage.watch();
        stage.kill_and_restart(NAME, &targets, self.down, &["leases", "tokens", "sessions"]).await;
        wait_for(seen, stage.ttl.mul_f64(1.5), |seen| seen.is_rival_grant(point)).await;
        Next::Go
    }

    fn describe(&self) -> String {
        let (nodes, down) = (self.nodes, show(self.down));
        format!("{NAME}: kill {nodes} lock server(s), down for {down}, {}", self.trigger.describe())
    }
}
