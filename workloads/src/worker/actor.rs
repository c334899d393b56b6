//! One thread of work inside a worker: it performs steps, one at a time or whole tenures, and records each
//! before it acts and when it returned.

use std::{borrow::Cow, sync::Arc, time::Duration};

use fencepost_checker::{
    contract::{Contract, Term},
    history::{Cause, Event, Function, Kind, OperationError, Source, Value},
    plan::{OnLost, Span},
};
use fencepost_nemesis::clock::raw::RunClock;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::sync::{mpsc, watch};

use super::{Gates, Notices, blank, emitter::Emitter};
use crate::{
    fence::Fence,
    lock::{Call, Grant, LockClient, OpError, Outcome},
    protocol::{Content, OneStep, Open, Order, Protected, Reply, Step, StepEnd, Tenures, next_place},
    resource::{Access, AccessOutcome, ReadReply, ResourceClient, Write},
};

/// What the actors of a worker share.
pub(super) struct Shared {
    pub(super) client: Arc<dyn LockClient>,
    pub(super) emitter: Arc<Emitter>,
    pub(super) notices: Arc<Notices>,
    pub(super) clock: RunClock,
    pub(super) contract: Contract,
    pub(super) fence: &'static Fence,
    pub(super) claims_late: bool,
    pub(super) open: Open,
    pub(super) finishing: watch::Receiver<bool>,
}

pub(super) struct Actor {
    shared: Arc<Shared>,
    place: u32,
    process: String,
    gates: Gates,
    resource: Arc<dyn ResourceClient>,
    random: ChaCha8Rng,
    tenure: Tenure,
}

/// What the actor knows of its present attempt.
struct Tenure {
    call: Call,
    key: String,
    grant: Option<Grant>,
    /// What was read, and the stamp of the acquire: the data that the work is made from.
    read: Option<ReadReply>,
    snapshot_ns: u64,
}

impl Tenure {
    fn new(shared: &Shared, process: &str, gates: Gates, attempt: u64, protected: &Protected) -> Self {
        let call = Call {
            lock: protected.lock.clone(),
            process: process.to_owned(),
            attempt,
            ttl: Duration::from_millis(shared.open.ttl_ms),
            wait: Duration::from_millis(shared.open.wait_ms),
            gates,
        };
        Self { call, key: protected.key.clone(), grant: None, read: None, snapshot_ns: 0 }
    }
}

/// A completion: how it ended, and what it says.
type Completion = (Kind, StepEnd, Value<'static>);

fn refused(error: OpError, kind: Kind) -> Completion {
    let end = if kind == Kind::Info { StepEnd::Info } else { StepEnd::Fail };
    (kind, end, Value { error: Some(error), ..Value::default() })
}

fn completion<T>(outcome: Outcome<T>, ok: impl FnOnce(T) -> (StepEnd, Value<'static>)) -> Completion {
    match outcome {
        Outcome::Ok(value) => {
            let (end, value) = ok(value);
            (Kind::Ok, end, value)
        }
        Outcome::Fail(error) => refused(error, Kind::Fail),
        Outcome::Info(error) => refused(error, Kind::Info),
    }
}

fn access_completion<T>(
    outcome: AccessOutcome<T>,
    common: Value<'static>,
    ok: impl FnOnce(T, Value<'static>) -> Value<'static>,
) -> Completion {
    match outcome {
        AccessOutcome::Accepted(reply) => (Kind::Ok, StepEnd::Ok, ok(reply, common)),
        AccessOutcome::Rejected { highest_token_before, why } => {
            let error =
                OperationError { cause: Cause::Refused, text: why.into(), source: Some(Source::Server) };
            let highest_token_before = Some(highest_token_before);
            (Kind::Fail, StepEnd::Fail, Value { highest_token_before, error: Some(error), ..common })
        }
        AccessOutcome::Failed(error) => (Kind::Fail, StepEnd::Fail, Value { error: Some(error), ..common }),
        AccessOutcome::Unknown(error) => (Kind::Info, StepEnd::Info, Value { error: Some(error), ..common }),
    }
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        place: u32,
        process: String,
        gates: Gates,
        resource: Arc<dyn ResourceClient>,
    ) -> Self {
        let nothing = Protected { lock: String::new(), key: String::new() };
        let tenure = Tenure::new(&shared, &process, gates.clone(), 0, &nothing);
        Self { shared, place, process, gates, resource, random: ChaCha8Rng::seed_from_u64(0), tenure }
    }

    pub(super) async fn obey(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = inbox.recv().await {
            let (end, tenures) = match order {
                Order::Step(step) => (self.one_step(*step).await, 1),
                Order::Tenures(tenures) => self.many_tenures(&tenures).await,
                _ => continue,
            };
            self.shared.emitter.reply(&Reply::Done { actor: self.place, end, tenures });
        }
    }

    /// The runner drives: points before steps are its own affair, gates inside them are ours.
    async fn one_step(&mut self, order: OneStep) -> StepEnd {
        if order.attempt != self.tenure.call.attempt {
            self.begin(order.attempt, &order.protected);
        }
        self.perform(&order.step).await
    }

    fn begin(&mut self, attempt: u64, protected: &Protected) {
        self.shared.notices.forget(self.tenure.call.attempt);
        self.tenure = Tenure::new(&self.shared, &self.process, self.gates.clone(), attempt, protected);
    }

    /// The worker drives.
    async fn many_tenures(&mut self, order: &Tenures) -> (StepEnd, u64) {
        self.random = ChaCha8Rng::seed_from_u64(order.seed);
        let (mut attempt, mut count) = (order.first_attempt, 0);
        while self.shared.clock.now_ns() < order.until_ns && !*self.shared.finishing.borrow() {
            let protected = &order.protected[self.random.random_range(0..order.protected.len())];
            self.begin(attempt, protected);
            let acquired = self.one_tenure(&order.steps).await;
            attempt += order.stride;
            count += 1;
            if acquired {
                self.rest(order.think).await;
            } else {
                self.sleep_unless_finishing(Duration::from_millis(order.retry_ms)).await;
            }
        }
        (StepEnd::Ok, count)
    }

    /// One tenure; true if it got the lock.
    async fn one_tenure(&mut self, steps: &[Step]) -> bool {
        let mut place = Some(0);
        while let Some(at) = place {
            let step = &steps[at];
            self.gates.pass(step.name(), &self.tenure.call).await;
            // The news may have come while the client was held at the point.
            if self.gives_up() && step.needs_the_lock() {
                place = next_place(steps, at, StepEnd::Fail, true);
                continue;
            }
            let end = self.perform(step).await;
            place = next_place(steps, at, end, self.gives_up());
        }
        self.tenure.grant.is_some()
    }

    fn gives_up(&self) -> bool {
        self.shared.open.on_lost == OnLost::Stop && self.shared.notices.is_lost(self.tenure.call.attempt)
    }

    async fn rest(&mut self, span: Span) {
        let length = draw(&mut self.random, span);
        self.sleep_unless_finishing(length).await;
    }

    async fn sleep_unless_finishing(&self, length: Duration) {
        if length.is_zero() {
            // Without a pause an actor would keep its sisters from running.
            return tokio::task::yield_now().await;
        }
        self.shared.emitter.flush();
        let mut finishing = self.shared.finishing.clone();
        tokio::select! {
            () = tokio::time::sleep(length) => {}
            _ = finishing.wait_for(|finishing| *finishing) => {}
        }
    }

    async fn perform(&mut self, step: &Step) -> StepEnd {
        match step {
            Step::Acquire => self.acquire().await,
            Step::Claim => self.claim().await,
            Step::Read => self.read().await,
            Step::Hold { span } => {
                let length = draw(&mut self.random, *span);
                if !length.is_zero() {
                    self.shared.emitter.flush();
                    tokio::time::sleep(length).await;
                }
                StepEnd::Ok
            }
            Step::Held => self.held().await,
            Step::Renew => self.renew().await,
            Step::Write { content, after_check } => self.write(*content, *after_check).await,
            Step::Release => self.release().await,
        }
    }

    /// Writes the invocation out; its stamp is taken before that, so the operation is recorded too wide, never
    /// too narrow.
    fn invoke(&self, f: Function, key: Option<&str>, value: Value<'_>) -> u64 {
        let start = self.shared.clock.now_ns();
        self.shared.emitter.event_now(&Event {
            start: Some(start),
            value,
            ..self.about(Kind::Invoke, f, key)
        });
        start
    }

    fn complete(&self, f: Function, key: Option<&str>, start: u64, completion: Completion) -> StepEnd {
        let (kind, end, value) = completion;
        self.shared.emitter.event(&Event {
            start: Some(start),
            end: Some(self.shared.clock.now_ns()),
            value,
            ..self.about(kind, f, key)
        });
        end
    }

    fn about<'a>(&'a self, kind: Kind, f: Function, key: Option<&'a str>) -> Event<'a> {
        Event {
            lock: Some(Cow::Borrowed(&self.tenure.call.lock)),
            attempt: Some(self.tenure.call.attempt),
            key: key.map(Cow::Borrowed),
            ..blank(&self.process, kind, f)
        }
    }

    async fn acquire(&mut self) -> StepEnd {
        let is_lease = self.shared.contract.term == Term::Lease;
        let asked = Value {
            ttl_ms: is_lease.then_some(self.shared.open.ttl_ms),
            wait_ms: Some(self.shared.open.wait_ms),
            ..Value::default()
        };
        let start = self.invoke(Function::Acquire, None, asked);
        let outcome = self.shared.client.acquire(&self.tenure.call).await;
        if let Outcome::Ok(grant) = &outcome {
            self.tenure.grant = Some(grant.clone());
            self.tenure.snapshot_ns = self.shared.clock.now_ns();
        }
        let completion = completion(outcome, |grant| {
            let value = Value {
                token: grant.token,
                validity_ms: grant.validity_ms,
                ttl_ms: grant.ttl_ms,
                granted_after: Some(grant.granted_after),
                granted_by: Some(grant.granted_by),
                ..Value::default()
            };
            (StepEnd::Ok, value)
        });
        self.complete(Function::Acquire, None, start, completion)
    }

    async fn renew(&mut self) -> StepEnd {
        let asked = Value { ttl_ms: Some(self.shared.open.ttl_ms), ..Value::default() };
        let start = self.invoke(Function::Renew, None, asked);
        let outcome = self.shared.client.renew(&self.tenure.call).await;
        let completion = completion(outcome, |renewal| {
            let value = Value {
                ttl_ms: Some(renewal.ttl_ms),
                granted_after: Some(renewal.granted_after),
                granted_by: Some(renewal.granted_by),
                ..Value::default()
            };
            (StepEnd::Ok, value)
        });
        self.complete(Function::Renew, None, start, completion)
    }

    async fn release(&mut self) -> StepEnd {
        let start = self.invoke(Function::Release, None, Value::default());
        let outcome = self.shared.client.release(&self.tenure.call).await;
        let completion = completion(outcome, |released| {
            (StepEnd::Ok, Value { released: Some(released), ..Value::default() })
        });
        self.complete(Function::Release, None, start, completion)
    }

    async fn held(&mut self) -> StepEnd {
        let start = self.invoke(Function::Held, None, Value::default());
        let outcome = self.shared.client.held(&self.tenure.call).await;
        let completion = completion(outcome, |held| {
            let end = if held { StepEnd::Ok } else { StepEnd::Fail };
            (end, Value { held: Some(held), ..Value::default() })
        });
        self.complete(Function::Held, None, start, completion)
    }

    /// The present tenure's access to its key.
    fn access(&self) -> Access {
        let grant = self.tenure.grant.as_ref();
        Access {
            key: self.tenure.key.clone(),
            token: grant.and_then(|grant| grant.token).filter(|_| self.shared.fence.needs_token),
            owner: grant.map(|grant| grant.owner.clone()).unwrap_or_default(),
            call: self.tenure.call.clone(),
        }
    }

    async fn claim(&mut self) -> StepEnd {
        let f = || Function::Other("claim".to_owned());
        let access = self.access();
        let owner = Value { owner: Some(access.owner.clone().into()), ..Value::default() };
        let start = self.invoke(f(), Some(&access.key), owner.clone());
        let outcome = self.resource.claim(&access).await;
        self.complete(f(), Some(&access.key), start, access_completion(outcome, owner, |(), common| common))
    }

    async fn read(&mut self) -> StepEnd {
        let access = self.access();
        let common = Value { token: access.token, ..Value::default() };
        let start = self.invoke(Function::Read, Some(&access.key), common.clone());
        let outcome = self.resource.read(&access).await;
        if let AccessOutcome::Accepted(reply) = &outcome {
            self.tenure.read = Some(reply.clone());
        }
        let completion = access_completion(outcome, common, |reply, common| Value {
            content: Some(reply.content.into()),
            write_id: Some(reply.write_id),
            position: Some(reply.position),
            incarnation: Some(reply.incarnation.into()),
            highest_token_before: Some(reply.highest_token_before),
            ..common
        });
        self.complete(Function::Read, Some(&access.key), start, completion)
    }

    async fn write(&mut self, content: Content, after_check: bool) -> StepEnd {
        if after_check {
            self.gates.pass("write.between", &self.tenure.call).await;
        }
        if self.shared.claims_late && self.claim().await != StepEnd::Ok {
            return StepEnd::Fail;
        }
        let access = self.access();
        let write = Write {
            content: self.content(content),
            // An attempt writes once: its number names the write.
            write_id: self.tenure.call.attempt,
            version: self.tenure.read.as_ref().map(|read| read.position),
        };
        let common = Value { token: access.token, write_id: Some(write.write_id), ..Value::default() };
        let asked = Value { content: Some(Cow::Borrowed(&write.content)), ..common.clone() };
        let start = self.invoke(Function::Write, Some(&access.key), asked);
        let outcome = self.resource.write(&access, &write).await;
        let completion = access_completion(outcome, common, |reply, common| Value {
            position: Some(reply.position),
            replaced: Some(reply.replaced),
            highest_token_before: Some(reply.highest_token_before),
            incarnation: Some(reply.incarnation.into()),
            ..common
        });
        self.complete(Function::Write, Some(&access.key), start, completion)
    }

    fn content(&self, content: Content) -> String {
        match content {
            Content::Report => {
                let at_ms = self.tenure.snapshot_ns / 1_000_000;
                format!("sales as {} saw them at {at_ms} ms", self.process)
            }
            Content::Increment => {
                let read = self.tenure.read.as_ref().and_then(|read| read.content.parse::<u64>().ok());
                (read.unwrap_or(0) + 1).to_string()
            }
        }
    }
}

fn draw(random: &mut ChaCha8Rng, span: Span) -> Duration {
    let ms =
        if span.max_ms > span.min_ms { random.random_range(span.min_ms..span.max_ms) } else { span.min_ms };
    Duration::from_secs_f64(ms / 1e3)
}
