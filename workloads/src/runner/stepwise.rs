//! The runner drives: one verb at a time, so that it decides between any two.

use std::{sync::Arc, time::Duration};

use fencepost_checker::plan::{OnLost, Span};
use fencepost_nemesis::fault::{Next, Point};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{Client, Conduct};
use crate::protocol::{OneStep, Protected, StepEnd, Tenures, actor_name, next_place};

/// Drives an actor's tenures until their time is over or the process is gone.
pub(crate) async fn drive(conduct: Arc<Conduct>, client: Arc<Client>, tenures: Tenures) {
    let mut random = ChaCha8Rng::seed_from_u64(tenures.seed);
    let mut attempt = tenures.first_attempt;
    while conduct.clock.now_ns() < tenures.until_ns && !client.is_ending() {
        let protected = &tenures.protected[random.random_range(0..tenures.protected.len())];
        let acquired = one_tenure(&conduct, &client, &tenures, attempt, protected).await;
        attempt += tenures.stride;
        let rest =
            if acquired { draw(&mut random, tenures.think) } else { Duration::from_millis(tenures.retry_ms) };
        tokio::time::sleep(rest).await;
    }
    client.stepwise_done(tenures.actor);
}

fn draw(random: &mut ChaCha8Rng, span: Span) -> Duration {
    let ms =
        if span.max_ms > span.min_ms { random.random_range(span.min_ms..span.max_ms) } else { span.min_ms };
    Duration::from_secs_f64(ms / 1e3)
}

/// One tenure; true if it got the lock.
async fn one_tenure(
    conduct: &Conduct,
    client: &Client,
    tenures: &Tenures,
    attempt: u64,
    protected: &Protected,
) -> bool {
    let process = actor_name(&client.process, conduct.plan.actors, tenures.actor);
    let points = conduct.schedule.points();
    let gives_up = || conduct.plan.on_lost == OnLost::Stop && client.is_lost(tenures.actor, attempt);
    let (mut place, mut acquired) = (Some(0), false);
    while let Some(at) = place {
        let step = &tenures.steps[at];
        if points.iter().any(|point| point == step.name()) && !client.is_ending() {
            let point = Point {
                client: client.place.clone(),
                process: process.clone(),
                name: step.name().to_owned(),
                lock: protected.lock.clone(),
                attempt,
            };
            if conduct.schedule.at(&point).await == Next::Gone {
                return acquired;
            }
        }
        if gives_up() && step.needs_the_lock() {
            place = next_place(&tenures.steps, at, StepEnd::Fail, true);
            continue;
        }
        let order =
            OneStep { actor: tenures.actor, step: step.clone(), attempt, protected: protected.clone() };
        let (end, _) = client.step(order).await;
        acquired |= at == 0 && end == StepEnd::Ok;
        place = next_place(&tenures.steps, at, end, gives_up());
    }
    acquired
}
