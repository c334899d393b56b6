//! One client: its process, what it says, and its life through restarts.

use std::{
    collections::HashMap,
    fs,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use fencepost_checker::{
    history::{Event, Function, Kind, Value},
    plan::Drive,
};
use fencepost_nemesis::{
    fault::{Next, Point},
    process::{Group, harden},
    schedule::Seen,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command as AsyncCommand},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use super::{Conduct, stepwise, unanswered};
use crate::protocol::{OneStep, Open, Order, Reply, StepEnd, Tenures, actor_name};

/// How long a client may take to open its lock.
const OPEN_LIMIT: Duration = Duration::from_secs(10);
/// After a kill, before a new process takes the place.
const RESTART_AFTER: Duration = Duration::from_millis(100);
/// How long a client may take to end once its pipe is closed.
const END_LIMIT: Duration = Duration::from_millis(500);

/// Why a client cannot go on. The texts are fragments that fit after "error: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Its process could not be started.
    #[error("cannot start client {process}: {why}")]
    Start {
        /// The process.
        process: String,
        /// Why.
        why: String,
    },
    /// It could not open its lock.
    #[error("client {process} cannot begin: {why}")]
    Open {
        /// The process.
        process: String,
        /// Why.
        why: String,
    },
    /// It ended without having been told to.
    #[error("client {process} died in the middle of the run ({status}); its log: {log}")]
    Died {
        /// The process.
        process: String,
        /// How.
        status: String,
        /// Where its last words are.
        log: String,
    },
    /// It said something that is no line of the protocol.
    #[error("client {process} wrote a line that is not of the protocol: {line}")]
    Line {
        /// The process.
        process: String,
        /// The line, cut.
        line: String,
    },
}

/// What an actor of a client is doing.
#[derive(Debug, Default)]
struct ActorState {
    /// The line of the operation that was called and has not returned; empty: none. Kept as bytes, since almost
    /// every one is forgotten unread.
    open: Vec<u8>,
    /// What it is, and when it was called.
    open_call: Option<(Function, Option<u64>)>,
    /// The last completion, for whoever drives step by step.
    completed: Option<Event<'static>>,
    last_attempt: u64,
    waiting_at_point: bool,
    /// The attempt whose loss the library told of.
    lost_attempt: Option<u64>,
}

impl ActorState {
    fn hear(&mut self, event: &Event<'_>, line: &[u8], drive: Drive) {
        self.last_attempt = self.last_attempt.max(event.attempt.unwrap_or(0));
        match event.kind {
            Kind::Invoke => {
                self.open.clear();
                self.open.extend_from_slice(line);
                self.open_call = Some((event.f.clone(), event.start));
            }
            Kind::Info if event.f == Function::Lost => self.lost_attempt = event.attempt,
            // What a library does in the background has no invocation and closes nothing.
            _ if self.open_call.as_ref().is_some_and(|(f, start)| *f == event.f && *start == event.start) => {
                self.open_call = None;
                if drive == Drive::Stepwise {
                    self.completed = Some(event.clone().into_owned());
                }
            }
            _ => {}
        }
    }
}

/// A client's process and its reader.
pub struct Client {
    /// The place that it fills: `c1`.
    pub place: String,
    /// The process's name in the history: `c1`, `c1.2`.
    pub process: String,
    conduct: Arc<Conduct>,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    group: Group,
    actors: Mutex<HashMap<String, ActorState>>,
    done: watch::Sender<Vec<Option<StepEnd>>>,
    opened: watch::Sender<Option<Result<(), String>>>,
    strikes: Mutex<JoinSet<()>>,
    /// No further fault strikes at a point: the run ends.
    ending: AtomicBool,
    gone: watch::Receiver<bool>,
    misspoke: Mutex<Option<String>>,
    status: Mutex<Option<String>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Client {
    /// Starts the `generation`th process (from 1) of the `place`th client (from 0), and opens its lock.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn spawn(
        conduct: Arc<Conduct>,
        place: u32,
        generation: u32,
        stop_at: Vec<String>,
    ) -> Result<Arc<Self>, ClientError> {
        let place = format!("c{}", place + 1);
        let process = if generation == 1 { place.clone() } else { format!("{place}.{generation}") };
        let failed = |why: String| ClientError::Start { process: process.clone(), why };
        let mut child = start_process(&conduct, &process).map_err(&failed)?;
        let group =
            child.id().and_then(Group::of_child).ok_or_else(|| failed("it ended at once".to_owned()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let (say_gone, gone) = watch::channel(false);
        conduct.bed.client_up(&place, process.clone(), group, gone.clone());
        conduct.recorder.note(&process, Function::Spawn, Value::default());
        let actors = conduct.plan.actors;
        let client = Arc::new(Self {
            place,
            process,
            stdin: tokio::sync::Mutex::new(Some(stdin)),
            group,
            actors: Mutex::new(HashMap::new()),
            done: watch::Sender::new(vec![None; actors as usize]),
            opened: watch::Sender::new(None),
            strikes: Mutex::new(JoinSet::new()),
            ending: AtomicBool::new(false),
            gone,
            misspoke: Mutex::new(None),
            status: Mutex::new(None),
            conduct,
        });
        tokio::spawn(Arc::clone(&client).listen(child, stdout, say_gone));
        client.open(stop_at).await?;
        Ok(client)
    }

    async fn open(&self, stop_at: Vec<String>) -> Result<(), ClientError> {
        let plan = &self.conduct.plan;
        let open = Open {
            process: self.process.clone(),
            actors: plan.actors,
            origin_ns: self.conduct.clock.origin_ns(),
            lock: plan.lock.clone(),
            endpoints: self.conduct.bed.endpoints(),
            scratch: self.conduct.bed.places.scratch.clone(),
            resource: plan.resource.clone(),
            resource_endpoint: self.conduct.bed.resource_endpoint(),
            fence: self.conduct.setup.fence_choice.clone(),
            ttl_ms: plan.ttl_ms,
            wait_ms: plan.wait_ms,
            on_lost: plan.on_lost,
            stop_at,
            record: true,
        };
        self.order(&Order::Open(Box::new(open))).await;
        let mut opened = self.opened.subscribe();
        let answer = tokio::time::timeout(OPEN_LIMIT, opened.wait_for(Option::is_some)).await;
        let why = match answer {
            Ok(Ok(answer)) => match answer.clone() {
                Some(Err(why)) => why,
                _ => return Ok(()),
            },
            _ => format!("no answer within {} s", OPEN_LIMIT.as_secs()),
        };
        Err(ClientError::Open { process: self.process.clone(), why })
    }

    /// Sends an order; one that is gone hears nothing.
    pub(crate) async fn order(&self, order: &Order) {
        let Ok(mut line) = serde_json::to_vec(order) else { return };
        line.push(b'\n');
        if let Some(stdin) = self.stdin.lock().await.as_mut() {
            let _ = stdin.write_all(&line).await;
        }
    }

    /// Performs one step and waits for it; the completion, if the step is one that is recorded.
    pub(crate) async fn step(&self, step: OneStep) -> (StepEnd, Option<Event<'static>>) {
        let actor = step.actor;
        let name = self.actor(actor);
        self.done.send_modify(|done| done[actor as usize] = None);
        self.actors().entry(name.clone()).or_default().completed = None;
        self.order(&Order::Step(Box::new(step))).await;
        let mut done = self.done.subscribe();
        let end = tokio::select! {
            end = done.wait_for(|done| done[actor as usize].is_some()) => end.ok().and_then(|done| done[actor as usize]),
            () = self.wait_gone() => None,
        };
        (end.unwrap_or(StepEnd::Info), self.actors().entry(name).or_default().completed.clone())
    }

    fn actor(&self, place: u32) -> String {
        actor_name(&self.process, self.conduct.plan.actors, place)
    }

    fn actors(&self) -> MutexGuard<'_, HashMap<String, ActorState>> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has every actor ended its order?
    fn is_done(&self) -> bool {
        *self.gone.borrow() || self.done.borrow().iter().all(Option::is_some)
    }

    /// Was the holder of this attempt told that its lock is lost?
    pub(crate) fn is_lost(&self, actor: u32, attempt: u64) -> bool {
        self.actors().get(&self.actor(actor)).is_some_and(|state| state.lost_attempt == Some(attempt))
    }

    async fn wait_gone(&self) {
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }

    /// Reads what the process says until it is gone, then closes what it left open.
    async fn listen(self: Arc<Self>, mut child: Child, stdout: ChildStdout, gone: watch::Sender<bool>) {
        self.read_lines(stdout).await;
        let status = child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
        let now = self.conduct.clock.now_ns();
        for state in self.actors().values_mut() {
            if state.open_call.take().is_some()
                && let Ok(invoke) = serde_json::from_slice::<Event<'_>>(&state.open)
            {
                self.conduct.recorder.append(unanswered(invoke, now));
            }
        }
        let value = Value { reason: Some(status.clone().into()), ..Value::default() };
        self.conduct.recorder.note(&self.process, Function::Exit, value);
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
        self.opened.send_if_modified(|opened| {
            let unanswered = opened.is_none();
            opened.get_or_insert(Err(format!("it ended ({status})")));
            unanswered
        });
        self.conduct.bed.client_down(&self.place);
        let _ = gone.send(true);
    }

    /// Hears line after line until the pipe ends. Where no fault waits for a point, lines are taken in batches:
    /// a reader that is woken for each of them takes the processor from those who are measured.
    async fn read_lines(self: &Arc<Self>, mut stdout: ChildStdout) {
        const BUFFER: usize = 1 << 16;
        const BATCH_EVERY: Duration = Duration::from_millis(1);
        let batches = self.conduct.schedule.points().is_empty() && self.conduct.plan.drive == Drive::Free;
        let mut bytes = Vec::with_capacity(BUFFER);
        loop {
            match stdout.read_buf(&mut bytes).await {
                Ok(1..) => {}
                // Half a line may be left: the process died while it wrote.
                _ => return,
            }
            let full = bytes.len() > BUFFER / 2;
            let mut begin = 0;
            while let Some(length) = bytes[begin..].iter().position(|byte| *byte == b'\n') {
                self.hear(&bytes[begin..begin + length]);
                begin += length + 1;
            }
            bytes.drain(..begin);
            if batches && !full {
                tokio::time::sleep(BATCH_EVERY).await;
            }
        }
    }

    fn hear(self: &Arc<Self>, line: &[u8]) {
        if line.starts_with(br#"{"reply""#) {
            match serde_json::from_slice(line) {
                Ok(reply) => return self.hear_reply(reply),
                Err(_) => return self.misspeak(line),
            }
        }
        match serde_json::from_slice::<Event<'_>>(line) {
            Ok(event) => self.hear_event(event, line),
            Err(_) => self.misspeak(line),
        }
    }

    /// It said something that is no line of the protocol.
    fn misspoken(&self) -> Option<ClientError> {
        let line = self.misspoke.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(ClientError::Line { process: self.process.clone(), line })
    }

    fn misspeak(&self, line: &[u8]) {
        const SHOWN: usize = 200;
        let shown: String = String::from_utf8_lossy(line).trim_end().chars().take(SHOWN).collect();
        self.say_broken(&format!("it wrote a line that is not of the protocol: {shown}"));
        self.misspoke.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(shown);
    }

    /// From here on nobody can say what the client did: the verdict is unknown.
    fn say_broken(&self, why: &str) {
        let value = Value { reason: Some(why.into()), ..Value::default() };
        self.conduct.recorder.note(&self.process, Function::Other("broken".to_owned()), value);
    }

    fn hear_event(&self, event: Event<'_>, line: &[u8]) {
        self.tell_nemesis(&event);
        {
            let mut actors = self.actors();
            if !actors.contains_key(&*event.process) {
                actors.insert(event.process.clone().into_owned(), ActorState::default());
            }
            if let Some(state) = actors.get_mut(&*event.process) {
                state.hear(&event, line, self.conduct.plan.drive);
            }
        }
        self.conduct.recorder.append_line(event, line);
    }

    fn tell_nemesis(&self, event: &Event<'_>) {
        if event.kind != Kind::Ok {
            return;
        }
        let names = || {
            let lock = event.lock.as_deref().unwrap_or_default().to_owned();
            (event.process.clone().into_owned(), lock)
        };
        match event.f {
            Function::Acquire => self.conduct.schedule.stage.saw(|| {
                let (process, lock) = names();
                Seen::Granted { process, lock }
            }),
            Function::Write => self.conduct.schedule.stage.saw(|| {
                let (process, lock) = names();
                Seen::Written { process, lock }
            }),
            _ => {}
        }
    }

    fn hear_reply(self: &Arc<Self>, reply: Reply) {
        match reply {
            Reply::Opened => {
                self.opened.send_replace(Some(Ok(())));
            }
            Reply::Broken { why } => {
                self.opened.send_replace(Some(Err(why)));
            }
            Reply::Done { actor, end, .. } => self.done.send_modify(|done| {
                if let Some(done) = done.get_mut(actor as usize) {
                    *done = Some(end);
                }
            }),
            Reply::At { actor, point, lock, attempt } => {
                let process = self.actor(actor);
                let point = Point { client: self.place.clone(), process, name: point, lock, attempt };
                self.wait_at_point(actor, point);
            }
        }
    }

    /// The actor waits: faults strike, then it may go.
    fn wait_at_point(self: &Arc<Self>, actor: u32, point: Point) {
        let client = Arc::clone(self);
        let strike = async move {
            if !client.ending.load(Ordering::Acquire)
                && client.conduct.schedule.at(&point).await == Next::Gone
            {
                return;
            }
            client.go(actor).await;
        };
        self.actors().entry(self.actor(actor)).or_default().waiting_at_point = true;
        let mut strikes = self.strikes();
        while strikes.try_join_next().is_some() {}
        strikes.spawn(strike);
    }

    fn strikes(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.strikes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn go(&self, actor: u32) {
        let was_waiting = {
            let name = self.actor(actor);
            let mut actors = self.actors();
            actors.get_mut(&name).is_some_and(|state| std::mem::take(&mut state.waiting_at_point))
        };
        if was_waiting {
            self.order(&Order::Go { actor }).await;
        }
    }

    /// Ends the faults under way at points, and lets everybody go.
    async fn drop_strikes(&self) {
        self.ending.store(true, Ordering::Release);
        self.strikes().abort_all();
        for actor in 0..self.conduct.plan.actors {
            self.go(actor).await;
        }
    }

    /// Closes the pipe, waits for the process to end, and kills it if it does not.
    pub(crate) async fn end(&self) {
        self.drop_strikes().await;
        *self.stdin.lock().await = None;
        if tokio::time::timeout(END_LIMIT, self.wait_gone()).await.is_err() {
            let _ = self.group.kill();
            self.wait_gone().await;
        }
    }
}

fn start_process(conduct: &Conduct, process: &str) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let log = fs::File::create(conduct.bed.places.logs.join(format!("{process}.log")))
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    harden(&mut command);
    AsyncCommand::from(command).kill_on_drop(true).spawn().map_err(|error| error.to_string())
}

/// A client through all its processes.
pub(crate) struct Handle {
    state: Arc<Life>,
    task: AbortHandle,
    ended: watch::Receiver<bool>,
}

/// What the run wants of a client, and what became of it.
struct Life {
    current: Mutex<Option<Arc<Client>>>,
    finishing: AtomicBool,
    generations: AtomicU32,
    failure: Mutex<Option<ClientError>>,
}

impl Life {
    fn current(&self) -> Option<Arc<Client>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Acquire)
    }
}

impl Handle {
    /// Sets a client to its work, which begins when the run's time does and ends at an instant of the run.
    pub(crate) fn start(conduct: Arc<Conduct>, place: u32, until_ns: u64, first: Arc<Client>) -> Self {
        let state = Arc::new(Life {
            current: Mutex::new(None),
            finishing: AtomicBool::new(false),
            generations: AtomicU32::new(1),
            failure: Mutex::new(None),
        });
        let (say_ended, ended) = watch::channel(false);
        let life = live(Arc::clone(&state), conduct, place, until_ns, first);
        let task = tokio::spawn(async move {
            life.await;
            let _ = say_ended.send(true);
        });
        Self { state, task: task.abort_handle(), ended }
    }

    /// Why the client cannot go on.
    pub(crate) fn failure(&self) -> Option<ClientError> {
        let gone = self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        gone.or_else(|| self.state.current().and_then(|client| client.misspoken()))
    }

    /// No further tenure begins, no further process, no further fault at a point.
    pub(crate) fn finish(&self) {
        self.state.finishing.store(true, Ordering::Release);
        if let Some(client) = self.state.current() {
            client.ending.store(true, Ordering::Release);
            tokio::spawn(async move { client.order(&Order::Finish).await });
        }
    }

    /// Nothing of it is under way.
    pub(crate) fn is_done(&self) -> bool {
        *self.ended.borrow() || self.state.current().is_none_or(|client| client.is_done())
    }

    /// Ends faults under way at its points.
    pub(crate) fn drop_strikes(&self) {
        if let Some(client) = self.state.current() {
            tokio::spawn(async move { client.drop_strikes().await });
        }
    }

    /// Ends its process.
    pub(crate) async fn end(self) {
        if let Some(client) = self.state.current() {
            client.end().await;
        }
        self.task.abort();
    }
}

/// A client's life: process after process, until the run ends.
async fn live(state: Arc<Life>, conduct: Arc<Conduct>, place: u32, until_ns: u64, first: Arc<Client>) {
    let mut client = first;
    let mut attempts = vec![0; conduct.plan.actors as usize];
    loop {
        *state.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&client));
        if state.is_finishing() {
            return;
        }
        drive(&conduct, &client, place, until_ns, &attempts).await;
        client.wait_gone().await;
        for (actor, last) in attempts.iter_mut().enumerate() {
            let name = client.actor(actor as u32);
            *last = client.actors().get(&name).map_or(*last, |state| state.last_attempt.max(*last));
        }
        if state.is_finishing() {
            return;
        }
        if let Some(failure) = why_gone(&client) {
            client.say_broken("its process ended in the middle of the run");
            *state.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            return;
        }
        tokio::time::sleep(RESTART_AFTER).await;
        if state.is_finishing() {
            return;
        }
        let generation = state.generations.fetch_add(1, Ordering::Relaxed) + 1;
        match Client::spawn(Arc::clone(&conduct), place, generation, conduct.schedule.points()).await {
            Ok(next) => client = next,
            Err(failure) => {
                *state.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                return;
            }
        }
    }
}

/// Why a process is gone that the nemesis did not kill.
fn why_gone(client: &Client) -> Option<ClientError> {
    if let Some(error) = client.misspoken() {
        return Some(error);
    }
    let process = client.process.clone();
    let status = client.status.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    // SIGKILL is the nemesis's way, and nobody else's in a run of its own.
    (!status.contains("SIGKILL") && !status.contains("signal: 9")).then(|| ClientError::Died {
        log: client.conduct.bed.places.logs.join(format!("{process}.log")).display().to_string(),
        process,
        status,
    })
}

async fn drive(
    conduct: &Arc<Conduct>,
    client: &Arc<Client>,
    place: u32,
    until_ns: u64,
    last_attempts: &[u64],
) {
    let plan = &conduct.plan;
    let stride = u64::from(plan.clients) * u64::from(plan.actors);
    for actor in 0..plan.actors {
        let number = u64::from(place * plan.actors + actor);
        let last = last_attempts[actor as usize];
        let tenures = Tenures {
            actor,
            steps: conduct.setup.steps.clone(),
            protected: conduct.setup.protected.clone(),
            first_attempt: if last == 0 { number + 1 } else { last + stride },
            stride,
            until_ns,
            think: plan.think,
            retry_ms: plan.retry_ms,
            // Every actor has a stream of its own, told apart by its number and its attempts so far.
            seed: plan.seed.wrapping_mul(1_000_003).wrapping_add(number).wrapping_add(last << 20),
        };
        match plan.drive {
            Drive::Free => client.order(&Order::Tenures(Box::new(tenures))).await,
            Drive::Stepwise => {
                drop(tokio::spawn(stepwise::drive(Arc::clone(conduct), Arc::clone(client), tenures)))
            }
        }
    }
}

impl Client {
    /// An actor that the runner drives has ended its tenures.
    pub(crate) fn stepwise_done(&self, actor: u32) {
        self.done.send_modify(|done| done[actor as usize] = Some(StepEnd::Ok));
    }

    /// Does the run end?
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire) || *self.gone.borrow()
    }
}
