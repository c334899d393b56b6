//! A holder dies: its lock must become free by itself, and whatever it left half done must do no harm.

use async_trait::async_trait;
use fencepost_checker::{
    history::Function,
    registry::{Item, OptionSpec, Options},
};

use crate::{
    fault::{AT, Fault, Next, PlanError, PlannedFault, Point, Setting, Strike, point, share},
    schedule::{Stage, Trigger},
    testbed::Target,
};

const NAME: &str = "kill-holder";

pub(super) struct KillHolder;

impl Fault for KillHolder {
    fn item(&self) -> Item {
        Item {
            name: NAME,
            summary: "kills holders of the lock (SIGKILL) at a point of their work",
            documentation: "A share of the clients that reach the point are killed there; a new process takes their \
                place 100 ms later, under a name of its own (c1.2 after c1).",
            options: &[
                AT,
                OptionSpec {
                    name: "share",
                    summary: "share of holders struck, 0 to 1",
                    default: "0.2",
                    values: &[],
                },
            ],
        }
    }

    fn plan(&self, options: &Options, setting: &Setting) -> Result<Option<PlannedFault>, PlanError> {
        Ok(Some(PlannedFault {
            name: NAME,
            trigger: Trigger::Each { at: point(NAME, options, setting)?, share: share(options, "share")? },
            what: "kill it, a new process follows after 100ms".to_owned(),
            strike: Box::new(KillClient),
        }))
    }
}

struct KillClient;

#[async_trait]
impl Strike for KillClient {
    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        let Some(point) = point else { return Next::Go };
        let target = Target::Client(point.client.clone());
        let process = stage.testbed.label(&target);
        let start = stage.clock.now_ns();
        if let Err(error) = stage.testbed.kill(&target).await {
            stage.skipped(NAME, &target, error.to_string());
            return Next::Gone;
        }
        stage.about_process(Function::Kill, process, start, Some("killed by the nemesis".to_owned()));
        let strike = stage.begin(NAME, std::slice::from_ref(&target), &[], start);
        stage.end(&strike, stage.clock.now_ns());
        Next::Gone
    }
}
