//! The classic story: a holder is stopped right before its write, for longer than its lease; somebody else takes
//! the lock and writes; the first wakes and writes, too.

use std::{sync::Arc, time::Duration};

use fencepost_nemesis::{schedule::Undo, testbed::Target};
use tokio::sync::{oneshot, watch};

use super::{Audience, Beat};
use crate::{
    protocol::{Content, OneStep, Protected, Step, StepEnd},
    runner::{Client, Conduct, Ending, Finished, Run, RunError, finish},
};

/// Between two tries of the second client.
const RETRY: Duration = Duration::from_millis(20);
/// After the first client's wake-up time, how long the second may need to get the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Plays it; `pause` is how long the first client is stopped, `by_step` waits for the audience.
///
/// # Errors
/// If it could not begin.
pub async fn play(
    run: Run,
    pause: Duration,
    by_step: bool,
    audience: Audience,
    begun: impl FnOnce(&fencepost_checker::plan::Plan),
) -> Result<Finished, RunError> {
    let (conduct, mut interrupt) = Conduct::set_up(run, begun).await?;
    let first = Client::spawn(Arc::clone(&conduct), 0, 1, Vec::new()).await?;
    let second = Client::spawn(Arc::clone(&conduct), 1, 1, Vec::new()).await?;
    let story = Story { conduct: Arc::clone(&conduct), pause, by_step, audience };
    let interrupted = tokio::select! {
        () = story.tell(&first, &second) => false,
        _ = interrupt.wait_for(|interrupted| *interrupted) => true,
    };
    conduct.schedule.stage.heal().await;
    first.end().await;
    second.end().await;
    // The audience must not wait for more.
    drop(story);
    finish(&conduct, Ending { interrupted, failure: None }).await
}

struct Story {
    conduct: Arc<Conduct>,
    pause: Duration,
    by_step: bool,
    audience: Audience,
}

impl Story {
    async fn tell(&self, first: &Client, second: &Client) {
        self.wait_for_audience("the first client takes the lock").await;
        if self.step(first, 1, Step::Acquire).await != StepEnd::Ok {
            return;
        }
        self.wait_for_audience("it is stopped right before its write").await;
        let (say_woken, woken) = watch::channel(false);
        let (say_written, written) = watch::channel(false);
        let late = async {
            self.stop(first, written).await;
            self.step(first, 1, write()).await;
            self.step(first, 1, Step::Release).await;
            let _ = say_woken.send(true);
        };
        tokio::join!(late, self.overtake(second, say_written, woken));
    }

    /// The second client takes the lock as soon as it can, writes, and releases when the first has had its say.
    async fn overtake(
        &self,
        second: &Client,
        say_written: watch::Sender<bool>,
        mut woken: watch::Receiver<bool>,
    ) {
        let deadline = tokio::time::Instant::now() + self.pause + PATIENCE;
        let mut attempt = 2;
        loop {
            let (end, completed) = second.step(self.order(attempt, Step::Acquire)).await;
            if end == StepEnd::Ok || attempt == 2 || tokio::time::Instant::now() > deadline {
                let _ = completed.map(|event| self.audience.send(Beat::Step(Box::new(event))));
            }
            if end == StepEnd::Ok {
                break;
            }
            if tokio::time::Instant::now() > deadline {
                return;
            }
            attempt += 1;
            tokio::time::sleep(RETRY).await;
        }
        self.step(second, attempt, write()).await;
        let _ = say_written.send(true);
        let _ = woken.wait_for(|woken| *woken).await;
        self.step(second, attempt, Step::Release).await;
    }

    /// Stops the client for the story's pause; by step, also until the second has written and the audience nods.
    async fn stop(&self, client: &Client, mut written: watch::Receiver<bool>) {
        let stage = &self.conduct.schedule.stage;
        let target = Target::Client(client.place.clone());
        let undo = stage.register(Undo::Resume(target.clone()));
        let start = self.conduct.clock.now_ns();
        if let Err(error) = stage.testbed.stop(&target) {
            stage.undone(undo);
            return stage.skipped("pause-holder", &target, error.to_string());
        }
        let strike = stage.begin("pause-holder", std::slice::from_ref(&target), &[], start);
        let _ = self.audience.send(Beat::Stopped { process: client.process.clone(), at_ns: start });
        tokio::time::sleep(self.pause).await;
        if self.by_step && self.pause > stage.ttl {
            let _ = written.wait_for(|written| *written).await;
            self.wait_for_audience("the first client wakes up").await;
        }
        let start = self.conduct.clock.now_ns();
        let _ = self.audience.send(Beat::Resumed { process: client.process.clone(), at_ns: start });
        // It cannot be gone: nobody kills in this story.
        let _ = stage.testbed.resume(&target);
        stage.end(&strike, start);
        stage.undone(undo);
    }

    async fn wait_for_audience(&self, next: &'static str) {
        if self.by_step {
            let (go_on, sign) = oneshot::channel();
            let _ = self.audience.send(Beat::Pause { next, go_on });
            let _ = sign.await;
        }
    }

    fn order(&self, attempt: u64, step: Step) -> OneStep {
        let protected: Protected = self.conduct.setup.protected[0].clone();
        OneStep { actor: 0, step, attempt, protected }
    }

    async fn step(&self, client: &Client, attempt: u64, step: Step) -> StepEnd {
        let (end, completed) = client.step(self.order(attempt, step)).await;
        let _ = completed.map(|event| self.audience.send(Beat::Step(Box::new(event))));
        end
    }
}

fn write() -> Step {
    Step::Write { content: Content::Report, after_check: false }
}
