//! A client process: the lock client and the connection to the protected resource, frozen together when it is
//! stopped, driven by its runner over stdin and stdout.

mod actor;
mod emitter;

use std::{
    collections::HashSet,
    io,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fencepost_checker::{
    history::{Event, Function, Kind, Value},
    registry::Options,
};
use fencepost_nemesis::clock::raw::RunClock;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::unix::pipe,
    sync::{mpsc, watch},
};

use self::{
    actor::{Actor, Shared},
    emitter::Emitter,
};
use crate::{
    fence,
    lock::{Call, OpError, Opening, Renewal},
    protocol::{Open, Order, Reply, actor_name},
    resource::ResourceSetup,
    settings,
};

/// A worker's heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(10);
/// A gap between two beats that is worth an event: one beat and the scheduler's latency.
const STALL: Duration = Duration::from_millis(25);

/// Why a worker ended before its time, a fragment that fits after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Its runner is gone, or speaks another protocol.
    #[error("worker: {0}")]
    Runner(#[from] io::Error),
    /// An order that makes no sense.
    #[error("worker: unexpected order: {0}")]
    Order(String),
}

/// Does what the runner orders until it goes away. stdin and stdout must be pipes.
///
/// # Errors
/// If the runner goes away in the middle of a line, or orders what makes no sense.
pub async fn run() -> Result<(), WorkerError> {
    let input = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut lines = BufReader::new(input).lines();
    let Some(first) = lines.next_line().await? else { return Ok(()) };
    let order = serde_json::from_str(&first).map_err(|error| WorkerError::Order(error.to_string()))?;
    let Order::Open(open) = order else { return Err(WorkerError::Order(first)) };
    let emitter = Arc::new(Emitter::new(open.record)?);
    let worker = match Worker::open(*open, Arc::clone(&emitter)).await {
        Ok(worker) => worker,
        Err(why) => {
            emitter.reply(&Reply::Broken { why });
            return Ok(());
        }
    };
    emitter.reply(&Reply::Opened);
    tokio::spawn(watch_own_heartbeat(Arc::clone(&worker.shared)));
    while let Some(line) = lines.next_line().await? {
        worker.obey(&line)?;
    }
    // The runner closed the pipe: nobody listens any more.
    Ok(())
}

struct Worker {
    shared: Arc<Shared>,
    actors: Vec<mpsc::UnboundedSender<Order>>,
    goes: Vec<mpsc::UnboundedSender<()>>,
    finish: watch::Sender<bool>,
}

impl Worker {
    async fn open(open: Open, emitter: Arc<Emitter>) -> Result<Self, String> {
        let clock = RunClock::since(open.origin_ns);
        let notices = Arc::new(Notices { emitter: Arc::clone(&emitter), clock, lost: Mutex::default() });
        let (lock, lock_options) = settings::lock(&open.lock).map_err(|error| error.to_string())?;
        let (resource, options) = settings::resource(&open.resource).map_err(|error| error.to_string())?;
        let fence = fence::by_name(&open.fence.name).ok_or("unknown fence")?;
        let setup = ResourceSetup { options, fence: open.fence.clone() };
        let contract = lock.contract(&lock_options);
        let endpoint = open.resource_endpoint.clone();
        let connect = || resource.connect(&setup, &endpoint);
        let opening = Opening {
            endpoints: open.endpoints.clone(),
            scratch: open.scratch.clone(),
            clock,
            notices: Arc::clone(&notices),
            ttl_ms: open.ttl_ms,
            resource: connect(),
        };
        let client = lock.open(&lock_options, opening).await.map_err(|error| error.to_string())?;
        let (finish, finishing) = watch::channel(false);
        let claims_late = Options::check("fence", fence.item, &open.fence)
            .is_ok_and(|options| fence.item.name == "owner" && options.get("claim") == "late");
        let stop_at = Arc::new(open.stop_at.iter().cloned().collect::<HashSet<_>>());
        let shared = Arc::new(Shared {
            client,
            emitter,
            notices,
            clock,
            contract,
            fence,
            claims_late,
            open,
            finishing,
        });
        let (mut actors, mut goes) = (Vec::new(), Vec::new());
        for place in 0..shared.open.actors {
            let (orders, inbox) = mpsc::unbounded_channel();
            let (go, gone) = mpsc::unbounded_channel();
            let gates = Gates {
                emitter: Arc::clone(&shared.emitter),
                stop_at: Arc::clone(&stop_at),
                actor: place,
                go: Arc::new(tokio::sync::Mutex::new(gone)),
            };
            let process = actor_name(&shared.open.process, shared.open.actors, place);
            let actor = Actor::new(Arc::clone(&shared), place, process, gates, connect());
            tokio::spawn(actor.obey(inbox));
            actors.push(orders);
            goes.push(go);
        }
        Ok(Self { shared, actors, goes, finish })
    }

    fn obey(&self, line: &str) -> Result<(), WorkerError> {
        let order: Order =
            serde_json::from_str(line).map_err(|error| WorkerError::Order(error.to_string()))?;
        let unknown = || WorkerError::Order(line.to_owned());
        match &order {
            Order::Open(_) => return Err(unknown()),
            Order::Go { actor } => {
                let go = self.goes.get(*actor as usize).ok_or_else(unknown)?;
                let _ = go.send(());
            }
            Order::Finish => {
                let _ = self.finish.send(true);
            }
            Order::Step(step) => {
                let actor = self.actors.get(step.actor as usize).ok_or_else(unknown)?;
                let _ = actor.send(order);
            }
            Order::Tenures(tenures) => {
                let actor = self.actors.get(tenures.actor as usize).ok_or_else(unknown)?;
                let _ = actor.send(order);
            }
        }
        Ok(())
    }
}

/// Reports when this process stood still: the reader of a history must know who was slow by himself.
async fn watch_own_heartbeat(shared: Arc<Shared>) {
    let mut last = shared.clock.now_ns();
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let now = shared.clock.now_ns();
        if now - last > STALL.as_nanos() as u64 {
            shared.emitter.event_now(&Event {
                value: Value { from: Some(last), until: Some(now), ..Value::default() },
                start: Some(last),
                end: Some(now),
                ..blank(&shared.open.process, Kind::Info, Function::Stall)
            });
        }
        last = now;
    }
}

/// An event with nothing but its process, kind and function.
fn blank(process: &str, kind: Kind, f: Function) -> Event<'_> {
    Event {
        index: 0,
        time: 0,
        process: process.into(),
        kind,
        f,
        lock: None,
        attempt: None,
        attempts: Vec::new(),
        key: None,
        fault: None,
        start: None,
        end: None,
        value: Value::default(),
    }
}

/// Where an operation can be held: steps of the script and gates inside operations.
#[derive(Clone, Debug)]
pub struct Gates {
    emitter: Arc<Emitter>,
    stop_at: Arc<HashSet<String>>,
    actor: u32,
    go: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>>,
}

impl Gates {
    /// Waits for the runner's `go` if this point is one where the nemesis asked to stop.
    pub async fn pass(&self, point: &'static str, call: &Call) {
        if !self.stop_at.contains(point) {
            return;
        }
        let mut go = self.go.lock().await;
        self.emitter.reply(&Reply::At {
            actor: self.actor,
            point: point.to_owned(),
            lock: call.lock.clone(),
            attempt: call.attempt,
        });
        // The sender lives as long as the worker.
        let _ = go.recv().await;
    }
}

/// What a library tells without being asked.
#[derive(Debug)]
pub struct Notices {
    emitter: Arc<Emitter>,
    clock: RunClock,
    /// Attempts whose holder was told of the loss.
    lost: Mutex<HashSet<u64>>,
}

impl Notices {
    fn emit(&self, call: &Call, kind: Kind, f: Function, start_ns: u64, value: Value<'_>) {
        self.emitter.event_now(&Event {
            lock: Some(call.lock.as_str().into()),
            attempt: Some(call.attempt),
            start: Some(start_ns),
            end: Some(self.clock.now_ns()),
            value,
            ..blank(&call.process, kind, f)
        });
    }

    /// The holder is told that the lock is gone.
    pub fn lost(&self, call: &Call, why: &'static str) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).insert(call.attempt);
        let value = Value { reason: Some(why.into()), ..Value::default() };
        self.emit(call, Kind::Info, Function::Lost, self.clock.now_ns(), value);
    }

    /// The lease was prolonged in the background.
    pub fn renewed(&self, call: &Call, start_ns: u64, renewal: Renewal) {
        let value = Value {
            ttl_ms: Some(renewal.ttl_ms),
            granted_after: Some(renewal.granted_after),
            granted_by: Some(renewal.granted_by),
            ..Value::default()
        };
        self.emit(call, Kind::Info, Function::Renewed, start_ns, value);
    }

    /// The server refused a renewal in the background.
    pub fn renewal_refused(&self, call: &Call, start_ns: u64, error: &OpError) {
        let value = Value { error: Some(error.clone()), ..Value::default() };
        self.emit(call, Kind::Fail, Function::Renew, start_ns, value);
    }

    /// A renewal in the background had no answer.
    pub fn renewal_failed(&self, call: &Call, start_ns: u64, error: &OpError, may_have_acted: bool) {
        let kind = if may_have_acted { Kind::Info } else { Kind::Fail };
        let ttl_ms = Some(call.ttl.as_millis() as u64);
        let value = Value { error: Some(error.clone()), ttl_ms, ..Value::default() };
        self.emit(call, kind, Function::Renew, start_ns, value);
    }

    /// Was the holder told?
    #[must_use]
    pub fn is_lost(&self, attempt: u64) -> bool {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).contains(&attempt)
    }

    fn forget(&self, attempt: u64) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
    }
}
