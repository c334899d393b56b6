//! When does a fault strike? Triggered by what the runner just saw, or at random from the seed; and what every
//! strike shares: the event log, the undo list, the random numbers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fencepost_checker::history::{Event, Function, Kind, Phase, Value};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::{sync::broadcast, time::Instant};

use crate::{
    clock::raw::RunClock,
    fault::{Next, PlannedFault, Point},
    testbed::{Target, Testbed},
};

/// When a fault strikes.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A holder reached this point: each strikes with this chance, several at once.
    Each {
        /// The step or gate.
        at: String,
        /// The share of holders struck, 0 to 1.
        share: f64,
    },
    /// A holder reached this point, and the last strike ended at least `gap` ago: one at a time.
    During {
        /// The step or gate.
        at: String,
        /// Between two strikes.
        gap: Duration,
    },
    /// A Poisson process of this mean gap, whatever the clients do.
    Random {
        /// Mean time between two strikes.
        mean: Duration,
    },
}

impl Trigger {
    /// The point at which workers must wait for this trigger, if it has one.
    #[must_use]
    pub fn point(&self) -> Option<&str> {
        match self {
            Self::Each { at, .. } | Self::During { at, .. } => Some(at),
            Self::Random { .. } => None,
        }
    }

    /// In words, for `--dry-run`.
    #[must_use]
    pub fn describe(&self) -> String {
        use crate::quantity::show;
        match self {
            Self::Each { at, share } => {
                format!("when a client reaches '{at}', {:.0} % of them", share * 100.0)
            }
            Self::During { at, gap } => {
                format!("when a client reaches '{at}', one at a time, {} apart", show(*gap))
            }
            Self::Random { mean } => format!("at random, every {} on average", show(*mean)),
        }
    }
}

/// What the runner saw, told to faults that wait for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An acquire of this process was answered ok.
    Granted {
        /// The process, `c1/t1`.
        process: String,
        /// The lock.
        lock: String,
    },
    /// A write of this process was accepted.
    Written {
        /// The process.
        process: String,
        /// The lock.
        lock: String,
    },
}

impl Seen {
    /// Another process than the one held at this point was granted its lock.
    #[must_use]
    pub fn is_rival_grant(&self, point: &Point) -> bool {
        matches!(self, Self::Granted { process, lock } if *process != point.process && *lock == point.lock)
    }

    /// Another process than the one held at this point wrote under its lock.
    #[must_use]
    pub fn is_rival_write(&self, point: &Point) -> bool {
        matches!(self, Self::Written { process, lock } if *process != point.process && *lock == point.lock)
    }
}

/// Where fault events go: the recorder implements it.
pub trait FaultLog: Send + Sync {
    /// Appends an event; index and time are the log's to set.
    fn record(&self, event: Event<'static>);
}

/// A healing action, registered before the fault acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// SIGCONT.
    Resume(Target),
    /// Start it again.
    Restart(Target),
}

/// What strikes share.
pub struct Stage {
    /// The run's processes.
    pub testbed: Arc<dyn Testbed>,
    /// The run's clock.
    pub clock: RunClock,
    /// The lease's length.
    pub ttl: Duration,
    log: Arc<dyn FaultLog>,
    seen: broadcast::Sender<Seen>,
    random: Mutex<ChaCha8Rng>,
    next_fault: AtomicU64,
    next_undo: AtomicU64,
    undo: Mutex<BTreeMap<u64, Undo>>,
    failure: Mutex<Option<String>>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl Stage {
    /// A stage for one run; `seed` decides every random choice.
    #[must_use]
    pub fn new(
        testbed: Arc<dyn Testbed>,
        log: Arc<dyn FaultLog>,
        clock: RunClock,
        ttl: Duration,
        seed: u64,
    ) -> Self {
        const FEW_HUNDRED: usize = 512;
        Self {
            testbed,
            clock,
            ttl,
            log,
            seen: broadcast::Sender::new(FEW_HUNDRED),
            random: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            next_fault: AtomicU64::new(1),
            next_undo: AtomicU64::new(1),
            undo: Mutex::new(BTreeMap::new()),
            failure: Mutex::new(None),
        }
    }

    /// Tells waiting faults what was just seen.
    pub fn saw(&self, seen: impl FnOnce() -> Seen) {
        if self.seen.receiver_count() > 0 {
            // Nobody listening any more is no error.
            let _ = self.seen.send(seen());
        }
    }

    /// What is seen from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Seen> {
        self.seen.subscribe()
    }

    /// Registers an undo before the fault acts; the number takes it back.
    pub fn register(&self, undo: Undo) -> u64 {
        let id = self.next_undo.fetch_add(1, Ordering::Relaxed);
        lock(&self.undo).insert(id, undo);
        id
    }

    /// The fault undid itself.
    pub fn undone(&self, id: u64) {
        lock(&self.undo).remove(&id);
    }

    /// Undoes whatever is still in force.
    pub async fn heal(&self) {
        let pending = std::mem::take(&mut *lock(&self.undo));
        for undo in pending.into_values() {
            // A target that is gone needs no healing.
            let _ = match undo {
                Undo::Resume(target) => self.testbed.resume(&target),
                Undo::Restart(target) => self.testbed.restart(&target).await,
            };
        }
    }

    /// A number from 0 to 1.
    pub fn chance(&self) -> f64 {
        lock(&self.random).random()
    }

    /// One of several.
    pub fn pick<T: Clone>(&self, among: &[T]) -> Option<T> {
        if among.is_empty() {
            return None;
        }
        let place = (lock(&self.random).next_u64() % among.len() as u64) as usize;
        among.get(place).cloned()
    }

    /// Records that a fault begins; call it with the stamp taken right before acting, after acting.
    pub fn begin(&self, f: &'static str, targets: &[Target], ends: &[&'static str], start_ns: u64) -> Strike {
        let fault = self.next_fault.fetch_add(1, Ordering::Relaxed);
        let labels: Vec<_> = targets.iter().map(|target| self.testbed.label(target)).collect();
        let strike = Strike { fault, f, labels, ends: ends.to_vec() };
        self.log.record(strike.event(Phase::Begin, start_ns, self.clock.now_ns(), None));
        strike
    }

    /// Records that a fault is healed.
    pub fn end(&self, strike: &Strike, start_ns: u64) {
        self.log.record(strike.event(Phase::End, start_ns, self.clock.now_ns(), None));
    }

    /// Records that a fault could not strike.
    pub fn skipped(&self, f: &'static str, target: &Target, why: String) {
        let fault = self.next_fault.fetch_add(1, Ordering::Relaxed);
        let strike = Strike { fault, f, labels: vec![self.testbed.label(target)], ends: vec![] };
        let now = self.clock.now_ns();
        self.log.record(strike.event(Phase::Skipped, now, now, Some(why)));
    }

    /// Records an event about a client's process, such as its kill.
    pub fn about_process(&self, f: Function, process: String, start_ns: u64, reason: Option<String>) {
        self.log.record(Event {
            index: 0,
            time: 0,
            process: process.into(),
            kind: Kind::Info,
            f,
            lock: None,
            attempt: None,
            attempts: vec![],
            key: None,
            fault: None,
            start: Some(start_ns),
            end: Some(self.clock.now_ns()),
            value: Value { reason: reason.map(Into::into), ..Value::default() },
        });
    }

    /// Stops a target for a while, and records both ends; a target that cannot be stopped is a skipped fault.
    pub async fn pause(&self, f: &'static str, target: &Target, length: Duration) {
        let undo = self.register(Undo::Resume(target.clone()));
        let start = self.clock.now_ns();
        match self.testbed.stop(target) {
            Ok(()) => {
                let strike = self.begin(f, std::slice::from_ref(target), &[], start);
                tokio::time::sleep(length).await;
                let start = self.clock.now_ns();
                // It may have been killed by another fault meanwhile; the end of the pause is recorded all the same.
                let _ = self.testbed.resume(target);
                self.end(&strike, start);
            }
            Err(error) => self.skipped(f, target, error.to_string()),
        }
        self.undone(undo);
    }

    /// Why the run must end, if a healing failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Kills servers or the resource and starts them again after `down`; records both ends. If one does not come up
    /// again, the run must end, see [`Stage::failure`].
    pub async fn kill_and_restart(
        &self,
        f: &'static str,
        targets: &[Target],
        down: Duration,
        ends: &[&'static str],
    ) {
        let undo: Vec<_> =
            targets.iter().map(|target| self.register(Undo::Restart(target.clone()))).collect();
        let start = self.clock.now_ns();
        let mut killed = Vec::new();
        for target in targets {
            match self.testbed.kill(target).await {
                Ok(()) => killed.push(target.clone()),
                Err(error) => self.skipped(f, target, error.to_string()),
            }
        }
        if !killed.is_empty() {
            let strike = self.begin(f, &killed, ends, start);
            tokio::time::sleep(down).await;
            let start = self.clock.now_ns();
            for target in &killed {
                if let Err(error) = self.testbed.restart(target).await {
                    let why = format!("{target} did not start again after {f}: {error}");
                    lock(&self.failure).get_or_insert(why);
                }
            }
            self.end(&strike, start);
        }
        undo.into_iter().for_each(|undo| self.undone(undo));
    }

    /// Several different ones.
    pub fn pick_several<T: Clone>(&self, among: &[T], count: usize) -> Vec<T> {
        let mut left = among.to_vec();
        let mut picked = Vec::new();
        while picked.len() < count && !left.is_empty() {
            let place = (lock(&self.random).next_u64() % left.len() as u64) as usize;
            picked.push(left.swap_remove(place));
        }
        picked
    }
}

/// A fault in force.
#[derive(Clone, Debug)]
pub struct Strike {
    fault: u64,
    f: &'static str,
    labels: Vec<String>,
    ends: Vec<&'static str>,
}

impl Strike {
    fn event(&self, phase: Phase, start_ns: u64, end_ns: u64, reason: Option<String>) -> Event<'static> {
        Event {
            index: 0,
            time: 0,
            process: "nemesis".into(),
            kind: Kind::Info,
            f: Function::Other(self.f.to_owned()),
            lock: None,
            attempt: None,
            attempts: vec![],
            key: None,
            fault: Some(self.fault),
            start: Some(start_ns),
            end: Some(end_ns),
            value: Value {
                phase: Some(phase),
                targets: self.labels.iter().cloned().map(Into::into).collect(),
                ends: self.ends.iter().map(|what| (*what).into()).collect(),
                reason: reason.map(Into::into),
                ..Value::default()
            },
        }
    }
}

/// All planned faults of a run, and the stage they act on.
pub struct Schedule {
    /// What strikes share.
    pub stage: Arc<Stage>,
    faults: Vec<Scheduled>,
}

struct Scheduled {
    fault: PlannedFault,
    in_force: AtomicUsize,
    last_end: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("faults", &self.faults.len()).finish_non_exhaustive()
    }
}

impl Schedule {
    /// A schedule of these faults.
    #[must_use]
    pub fn new(stage: Arc<Stage>, faults: Vec<PlannedFault>) -> Self {
        let scheduled =
            |fault| Scheduled { fault, in_force: AtomicUsize::new(0), last_end: Mutex::new(None) };
        Self { stage, faults: faults.into_iter().map(scheduled).collect() }
    }

    /// The points at which workers must wait.
    #[must_use]
    pub fn points(&self) -> Vec<String> {
        let mut points: Vec<_> =
            self.faults.iter().filter_map(|s| s.fault.trigger.point()).map(str::to_owned).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// A worker waits at a point: strikes whatever is due there, and says whether the worker may go on.
    pub async fn at(&self, point: &Point) -> Next {
        for scheduled in &self.faults {
            if scheduled.is_due(point, &self.stage)
                && scheduled.strike(&self.stage, Some(point)).await == Next::Gone
            {
                return Next::Gone;
            }
        }
        Next::Go
    }

    /// Strikes the random faults until dropped.
    pub async fn run_random(&self) {
        let each = self.faults.iter().filter_map(|scheduled| match &scheduled.fault.trigger {
            Trigger::Random { mean } => Some(self.run_one_random(scheduled, *mean)),
            _ => None,
        });
        let mut each: Vec<_> = each.map(Box::pin).collect();
        std::future::poll_fn(|context| {
            for one in &mut each {
                let _ = one.as_mut().poll(context);
            }
            std::task::Poll::<()>::Pending
        })
        .await;
    }

    async fn run_one_random(&self, scheduled: &Scheduled, mean: Duration) -> std::convert::Infallible {
        loop {
            // The gap of a Poisson process: exponential, by inversion.
            let gap = mean.mul_f64(-(1.0 - self.stage.chance()).ln());
            tokio::time::sleep(gap).await;
            scheduled.strike(&self.stage, None).await;
        }
    }

    /// Names of the faults in force at this moment.
    #[must_use]
    pub fn in_force(&self) -> Vec<&'static str> {
        let active = |s: &&Scheduled| s.in_force.load(Ordering::Relaxed) > 0;
        self.faults.iter().filter(active).map(|s| s.fault.name).collect()
    }
}

impl Scheduled {
    fn is_due(&self, point: &Point, stage: &Stage) -> bool {
        match &self.fault.trigger {
            Trigger::Each { at, share } => *at == point.name && stage.chance() < *share,
            Trigger::During { at, gap } => {
                *at == point.name
                    && lock(&self.last_end).is_none_or(|end| end.elapsed() >= *gap)
                    && self.in_force.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
            Trigger::Random { .. } => false,
        }
    }

    async fn strike(&self, stage: &Stage, point: Option<&Point>) -> Next {
        let exclusive = matches!(self.fault.trigger, Trigger::During { .. });
        if !exclusive {
            self.in_force.fetch_add(1, Ordering::AcqRel);
        }
        // A cancelled strike (the run ends) must not count as in force for ever.
        let _guard = InForce(self);
        self.fault.strike.strike(stage, point).await
    }
}

struct InForce<'a>(&'a Scheduled);

impl Drop for InForce<'_> {
    fn drop(&mut self) {
        *lock(&self.0.last_end) = Some(Instant::now());
        self.0.in_force.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A poisoned lock means that a strike panicked; its data is still whole, and healing must go on.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `wanted` is seen or `limit` passed. True if it was seen.
pub async fn wait_for(
    mut seen: broadcast::Receiver<Seen>,
    limit: Duration,
    wanted: impl Fn(&Seen) -> bool,
) -> bool {
    let found = async {
        loop {
            match seen.recv().await {
                Ok(event) if wanted(&event) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            }
        }
    };
    tokio::time::timeout(limit, found).await.is_ok()
}
