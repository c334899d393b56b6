//! From a plan to a history: servers up, workers started, faults struck, every event recorded, all of it gone
//! again.

mod bed;
mod client;
mod recorder;
mod stepwise;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use fencepost_checker::{
    anomalies,
    history::{Cause, Event, Function, Header, Kind, Value},
    plan::Plan,
    verdict::{Severity, Verdict},
};
use fencepost_nemesis::{
    capability,
    clock::raw::{RunClock, realtime_ns},
    sandbox::Sandbox,
    schedule::{Schedule, Stage},
};
use tokio::{sync::watch, task::JoinSet};

pub use self::{
    bed::{Bed, Places},
    client::{Client, ClientError},
    recorder::{RecordError, Recorder},
};
use crate::{
    lock::OpError,
    resource::ResourceClient,
    server::ServerError,
    settings::{SettingError, Setup},
};

/// Why a run could not be carried out. The texts are fragments that fit after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A mistake in what was asked for.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A server is not there.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A client could not be started.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The history cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A fault could not be healed.
    #[error("the run had to end: {0}")]
    Unhealed(String),
}

/// What a run needs besides its plan.
pub struct Run {
    /// The plan, to be completed with versions and capabilities.
    pub plan: Plan,
    /// The plan, resolved.
    pub setup: Setup,
    /// Where the history goes.
    pub history: PathBuf,
    /// Where logs go.
    pub logs: PathBuf,
    /// Who cleans up.
    pub sandbox: Arc<Sandbox>,
    /// The run's own directory for temporary files, below the sandbox's.
    pub scratch: PathBuf,
    /// Becomes true when the user wants it to end.
    pub interrupt: watch::Receiver<bool>,
}

/// How a run stands, for progress reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Since its begin.
    pub elapsed: Duration,
    /// Operations completed.
    pub operations: u64,
    /// Faults in force.
    pub faults: Vec<&'static str>,
    /// Certain findings so far, by anomaly.
    pub found: Vec<(&'static str, u64)>,
}

impl Status {
    /// Is one of the findings a violation, rather than a hazard?
    #[must_use]
    pub fn has_violation(&self) -> bool {
        let is_violation =
            |id: &str| anomalies::find(id).is_some_and(|kind| kind.severity == Severity::Violation);
        self.found.iter().any(|(id, _)| is_violation(id))
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Finished {
    /// The plan, completed.
    pub plan: Plan,
    /// The verdict.
    pub verdict: Verdict,
    /// The user ended it.
    pub interrupted: bool,
    /// Why it ended before its time, if a server or client died or a fault could not be healed: what was
    /// recorded is judged all the same.
    pub failure: Option<RunError>,
}

/// Header of a run's history.
#[must_use]
pub fn header(plan: &Plan, setup: &Setup) -> Header {
    Header {
        test: plan.name.clone(),
        seed: plan.seed,
        contract: Some(setup.contract.clone()),
        fence: setup.fence.item.name.to_owned(),
        resource: plan.resource.name.clone(),
        heartbeat: true,
        ends: true,
        grace_ms: plan.grace_ms,
        ..Header::default()
    }
}

/// Runs a plan; `progress` is told how it stands several times a second, `begun` the completed plan.
///
/// # Errors
/// If it could not begin. What fails later is part of [`Finished`].
pub async fn run(
    run: Run,
    begun: impl FnOnce(&Plan),
    progress: &mut dyn FnMut(&Status),
) -> Result<Finished, RunError> {
    let (shared, interrupt) = Conduct::set_up(run, begun).await?;
    let mut conductor =
        Conductor { shared: Arc::clone(&shared), interrupt, clients: Vec::new(), strikes: JoinSet::new() };
    let ending = conductor.conduct(progress).await;
    let Conductor { clients, .. } = conductor;
    drop(clients);
    finish(&shared, ending).await
}

/// What all parts of a run share.
pub(crate) struct Conduct {
    pub(crate) plan: Plan,
    pub(crate) setup: Setup,
    pub(crate) bed: Arc<Bed>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) clock: RunClock,
}

impl Conduct {
    /// Servers up, history begun, faults planned; no client yet.
    pub(crate) async fn set_up(
        run: Run,
        begun: impl FnOnce(&Plan),
    ) -> Result<(Arc<Self>, watch::Receiver<bool>), RunError> {
        let clock = RunClock::start();
        let Run { mut plan, mut setup, history, logs, sandbox, scratch, interrupt } = run;
        let recorder = Recorder::create(&history, header(&plan, &setup), clock)?;
        let bed = Arc::new(Bed::up(&setup, Arc::clone(&sandbox), &Places { scratch, logs }, clock).await?);
        complete(&mut plan, &bed, &sandbox);
        begun(&plan);
        let faults = std::mem::take(&mut setup.faults);
        let ttl = Duration::from_millis(plan.ttl_ms);
        let stage = Stage::new(Arc::clone(&bed) as _, Arc::clone(&recorder) as _, clock, ttl, plan.seed);
        let schedule = Arc::new(Schedule::new(Arc::new(stage), faults));
        Ok((Arc::new(Self { plan, setup, bed, recorder, schedule, clock }), interrupt))
    }
}

fn complete(plan: &mut Plan, bed: &Bed, sandbox: &Sandbox) {
    plan.versions = bed.versions();
    plan.versions.insert("fencepost".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    plan.capabilities.insert("sandbox".to_owned(), sandbox.kind().to_owned());
    plan.machine = capability::machine().into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
}

/// How the workload came to its end.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) interrupted: bool,
    pub(crate) failure: Option<RunError>,
}

struct Conductor {
    shared: Arc<Conduct>,
    interrupt: watch::Receiver<bool>,
    clients: Vec<client::Handle>,
    strikes: JoinSet<()>,
}

/// How often progress is reported and servers are looked after.
const TICK: Duration = Duration::from_millis(200);

impl Conductor {
    async fn conduct(&mut self, progress: &mut dyn FnMut(&Status)) -> Ending {
        let shared = Arc::clone(&self.shared);
        // All are there before the first begins: a fault must not meet half of them.
        let first = match self.open_clients().await {
            Ok(first) => first,
            Err(error) => return Ending { failure: Some(error.into()), ..Ending::default() },
        };
        let until_ns = shared.clock.now_ns() + shared.plan.time_ms * 1_000_000;
        let handle = |(place, client)| client::Handle::start(Arc::clone(&shared), place, until_ns, client);
        self.clients = (0..).zip(first).map(handle).collect();
        let schedule = Arc::clone(&shared.schedule);
        self.strikes.spawn(async move { schedule.run_random().await });
        let ending = self.until_end(until_ns, progress).await;
        self.wind_up(&ending, progress).await;
        ending
    }

    async fn open_clients(&self) -> Result<Vec<Arc<Client>>, ClientError> {
        let points = self.shared.schedule.points();
        let open = |place| Client::spawn(Arc::clone(&self.shared), place, 1, points.clone());
        futures_util::future::try_join_all((0..self.shared.plan.clients).map(open)).await
    }

    /// The workload's time, or what cuts it short.
    async fn until_end(&mut self, until_ns: u64, progress: &mut dyn FnMut(&Status)) -> Ending {
        let begin = Instant::now();
        let mut last_clock = None;
        while self.shared.clock.now_ns() < until_ns {
            let tick = TICK.min(self.shared.clock.until(until_ns));
            tokio::select! {
                () = tokio::time::sleep(tick) => {}
                _ = self.interrupt.wait_for(|interrupted| *interrupted) => {
                    return Ending { interrupted: true, ..Ending::default() };
                }
            }
            if last_clock.is_none_or(|last: Instant| last.elapsed() >= Duration::from_secs(1)) {
                last_clock = Some(Instant::now());
                self.record_clock();
            }
            let status = self.status(begin);
            progress(&status);
            if let Some(failure) = self.failure().await {
                return Ending { failure: Some(failure), ..Ending::default() };
            }
            if self.shared.plan.stop_on_violation && status.has_violation() {
                break;
            }
        }
        Ending::default()
    }

    fn status(&self, begin: Instant) -> Status {
        Status {
            elapsed: begin.elapsed(),
            operations: self.shared.recorder.operations(),
            faults: self.shared.schedule.in_force(),
            found: self.shared.recorder.found_so_far(),
        }
    }

    async fn failure(&self) -> Option<RunError> {
        if let Some(error) = self.shared.recorder.failure() {
            return Some(error.into());
        }
        if let Some(why) = self.shared.schedule.stage.failure() {
            return Some(RunError::Unhealed(why));
        }
        if let Some(error) = self.clients.iter().find_map(client::Handle::failure) {
            return Some(error.into());
        }
        self.shared.bed.unexpected_end().await.map(Into::into)
    }

    /// A step of the host's clock during a run makes what follows from leases uncertain.
    fn record_clock(&self) {
        let offset = i128::from(realtime_ns())
            - i128::from(self.shared.clock.now_ns() + self.shared.clock.origin_ns());
        let value = Value { offset_ns: i64::try_from(offset).ok(), ..Value::default() };
        self.shared.recorder.note("recorder", Function::Clock, value);
    }

    /// Lets tenures under way end, heals, and ends the clients.
    async fn wind_up(&mut self, ending: &Ending, progress: &mut dyn FnMut(&Status)) {
        self.strikes.abort_all();
        for client in &self.clients {
            client.finish();
        }
        let shared = &self.shared;
        let in_a_hurry = ending.interrupted || ending.failure.is_some() || shared.plan.stop_on_violation;
        let patience = if in_a_hurry {
            Duration::from_millis(500)
        } else {
            // The longest fault by default, a wait for the lock, and a second for what is slow.
            Duration::from_millis(shared.plan.ttl_ms * 2 + shared.plan.wait_ms + 1000)
        };
        if in_a_hurry {
            self.clients.iter().for_each(client::Handle::drop_strikes);
            shared.schedule.stage.heal().await;
        }
        let begin = Instant::now();
        while begin.elapsed() < patience && !self.clients.iter().all(client::Handle::is_done) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.clients.iter().for_each(client::Handle::drop_strikes);
        shared.schedule.stage.heal().await;
        for client in std::mem::take(&mut self.clients) {
            client.end().await;
        }
        progress(&self.status(begin));
    }
}

pub(crate) async fn finish(shared: &Conduct, ending: Ending) -> Result<Finished, RunError> {
    let dumped = dump(shared).await;
    if let Err(error) = dumped {
        let value = Value { error: Some(error), ..Value::default() };
        shared.recorder.note("resource", Function::Dump, value);
    }
    shared.recorder.note("recorder", Function::Other("end".to_owned()), Value::default());
    let verdict = shared.recorder.finish(&shared.plan);
    let mut failure = ending.failure;
    if failure.is_none() {
        failure = shared.recorder.failure().map(Into::into);
    }
    shared.bed.down().await;
    Ok(Finished { plan: shared.plan.clone(), verdict, interrupted: ending.interrupted, failure })
}

/// The resource's own record goes into the history: it settles what writes of unknown outcome did.
async fn dump(shared: &Conduct) -> Result<(), OpError> {
    const ENTRIES_A_LINE: u64 = 5_000;
    let client: Arc<dyn ResourceClient> = shared.bed.connect_resource(&shared.setup);
    let mut from = 0;
    loop {
        let dump = client.dump(from, ENTRIES_A_LINE).await?;
        let count = dump.log.len() as u64;
        let value =
            Value { log: Some(dump.log), incarnation: Some(dump.incarnation.into()), ..Value::default() };
        shared.recorder.note("resource", Function::Dump, value);
        from += count;
        if count < ENTRIES_A_LINE {
            return Ok(());
        }
    }
}

/// An operation that its process cannot complete any more: nobody knows what became of it.
fn unanswered(invoke: Event<'_>, now_ns: u64) -> Event<'_> {
    let error = crate::lock::error(
        Cause::Unavailable,
        fencepost_checker::history::Source::Library,
        "the process is gone",
    );
    Event {
        kind: Kind::Info,
        end: Some(now_ns),
        value: Value { error: Some(error), content: None, ..invoke.value },
        ..invoke
    }
}
