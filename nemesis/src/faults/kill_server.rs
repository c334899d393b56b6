//! The lock server crashes while somebody holds, and comes back: with what it kept of its data.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::registry::{Item, OptionSpec, Options};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, length, point},
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

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        setting.check_server(NAME)?;
        let nodes = options.parse("nodes", &format!("a number from 1 to {}", setting.servers), |text| {
            text.parse().ok().filter(|nodes| (1..=setting.servers).contains(nodes))
        })?;
        let gap = length(options, "gap", setting.ttl)?;
        let down = length(options, "down", setting.ttl)?;
        Ok(Some(PlannedFault {
            name: NAME,
            trigger: Trigger::During { at: point(NAME, options, setting)?, gap },
            what: format!(
                "kill {nodes} lock server{}, down for {}",
                if nodes == 1 { "" } else { "s" },
                show(down)
            ),
            strike: Box::new(KillServers { nodes, down }),
        }))
    }
}

struct KillServers {
    nodes: usize,
    down: Duration,
}

#[async_trait]
impl Strike for KillServers {
    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        let Some(point) = point else { return Next::Go };
        let targets = stage.pick_several(&stage.testbed.servers(), self.nodes);
        let seen = stage.watch();
        stage.kill_and_restart(NAME, &targets, self.down, &["leases", "tokens", "sessions"]).await;
        wait_for(seen, stage.ttl.mul_f64(1.5), |seen| seen.is_rival_grant(point)).await;
        Next::Go
    }
}
