//! What must be remembered of a history? One entry an attempt and one an access, with numbers for names:
//! memory grows with what happened, not with the text that tells it.

use std::num::NonZeroU64;

use crate::{
    contract::{Contract, Mode, Renews, Term},
    history::{Cause, Event, Function, Header, Kind, LogEntry, Phase, Released, Source},
    names::{FastMap, Names, Numbers, identity},
    verdict::Counts,
};

/// No end is known.
pub(crate) const FOREVER: u64 = u64::MAX;

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It returned and said so.
    Ok,
    /// Nobody knows.
    Info,
}

/// An operation's stamps and the events that tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Number, from 1, of its invoke, if it has one.
    invoke: Option<NonZeroU64>,
    /// Number, from 1, of its completion, if it has one.
    done: Option<NonZeroU64>,
}

impl Call {
    fn new(start: u64, end: u64, invoke: Option<u64>, done: Option<u64>) -> Self {
        let number = |index: Option<u64>| NonZeroU64::new(index?.saturating_add(1));
        Self { start, end, invoke: number(invoke), done: number(done) }
    }

    /// Index of its invoke, if it has one.
    pub(crate) fn invoke(&self) -> Option<u64> {
        self.invoke.map(|number| number.get() - 1)
    }

    /// The events that tell of it.
    pub(crate) fn events(&self) -> impl Iterator<Item = u64> + use<> {
        self.invoke.into_iter().chain(self.done).map(|number| number.get() - 1)
    }
}

/// Giving back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
    pub(crate) released: Option<Released>,
}

/// Prolonging, asked for by the client or by its library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
    /// k0: stamp just before the request from which the new term counts.
    pub(crate) after: u64,
    /// k1: stamp just after its reply.
    pub(crate) by: u64,
    /// The acquire of an owner that holds already.
    pub(crate) reentry: bool,
}

/// One acquire that may have succeeded, and all that became of it.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The history's number for it.
    pub(crate) id: u64,
    pub(crate) process: u32,
    pub(crate) lock: u32,
    pub(crate) owner: u64,
    pub(crate) acquire: Call,
    pub(crate) outcome: Outcome,
    pub(crate) shared: bool,
    pub(crate) waited: bool,
    pub(crate) permits: u32,
    pub(crate) token: Option<u64>,
    pub(crate) validity_ms: Option<i64>,
    /// g0, nanoseconds.
    pub(crate) granted_after: u64,
    /// g1, nanoseconds.
    pub(crate) granted_by: u64,
    /// m, milliseconds.
    pub(crate) ttl_ms_min: Option<NonZeroU64>,
    /// M, milliseconds.
    pub(crate) ttl_ms_max: Option<NonZeroU64>,
    /// The earliest that may have had an effect.
    pub(crate) release: Option<Release>,
    /// Further ones; hardly ever any.
    pub(crate) releases_more: Vec<Release>,
    pub(crate) renewals: Vec<Renewal>,
    /// Stamp and event of the first delivered notice of loss.
    pub(crate) lost: Option<(u64, u64)>,
    /// The first call of a release, whatever came of it: from then on the client does not act.
    pub(crate) gave_up: Option<u64>,
}

impl Attempt {
    fn admit_ttl(&mut self, ttl_ms: Option<u64>) {
        let Some(ttl) = ttl_ms.and_then(NonZeroU64::new) else { return };
        self.ttl_ms_min = Some(self.ttl_ms_min.map_or(ttl, |least| least.min(ttl)));
        self.ttl_ms_max = Some(self.ttl_ms_max.map_or(ttl, |most| most.max(ttl)));
    }

    /// All releases that may have had an effect, in the order of their calls.
    pub(crate) fn releases(&self) -> impl Iterator<Item = &Release> {
        self.release.iter().chain(&self.releases_more)
    }
}

/// An acquire that was turned away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) process: u32,
    pub(crate) lock: u32,
    pub(crate) call: Call,
}

/// What the resource did with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// The fence turned it away.
    Rejected,
    /// Nobody knows, and the final dump does not say.
    Unknown,
}

/// A read or write of the protected resource.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) attempt: Option<u32>,
    pub(crate) process: u32,
    pub(crate) key: u32,
    pub(crate) write: bool,
    pub(crate) answer: Answer,
    /// The event of the final dump that settled it.
    pub(crate) resolved_by: Option<u64>,
    pub(crate) call: Call,
    pub(crate) token: Option<u64>,
    pub(crate) write_id: Option<u64>,
    pub(crate) position: Option<u64>,
    pub(crate) replaced: Option<u64>,
    pub(crate) highest_token_before: Option<u64>,
    pub(crate) incarnation: u32,
}

/// A library's answer "it is yours".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) attempt: u32,
    pub(crate) call: Call,
}

/// What the lock's server said of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// This attempt does not hold it.
    NotHeldBy(u32),
    /// Nobody holds it.
    Free,
    /// This owner holds it.
    HeldBy(u64),
}

/// The lock's server said so at some instant of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub(crate) lock: u32,
    pub(crate) call: Call,
    pub(crate) says: Says,
}

/// A fault that struck.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) id: u64,
    pub(crate) f: Box<str>,
    pub(crate) targets: Vec<Box<str>>,
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
    /// The events of its begin and end.
    pub(crate) events: Vec<u64>,
}

impl Fault {
    /// It strikes a lock server or a link to one.
    pub(crate) fn strikes_server(&self) -> bool {
        self.targets.iter().any(|target| target.starts_with("lock/") || target.contains("lock/"))
    }

    /// It strikes the process, or the client process that it is an actor of.
    pub(crate) fn strikes(&self, process: &str) -> bool {
        let client = client_of(process);
        self.targets.iter().any(|target| **target == *client || **target == *process)
    }

    /// It moves a clock.
    pub(crate) fn moves_clock(&self) -> bool {
        self.f.starts_with("clock")
    }
}

/// The client process of `c1/t1` is `c1`.
fn client_of(process: &str) -> &str {
    process.split('/').next().unwrap_or(process)
}

/// A stretch in which a worker's heartbeat stood still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) client: u32,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) event: u64,
}

/// An operation on the lock that was answered by an error or by silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    pub(crate) lock: u32,
    pub(crate) call: Call,
}

/// What is known of a process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// The client process that it is an actor of; itself where it is none.
    pub(crate) client: u32,
    /// Stamp and event of its death.
    pub(crate) death: Option<(u64, u64)>,
    /// The last stamp of its own operations: up to here all is known of it.
    pub(crate) heard: u64,
    /// The event of that stamp.
    pub(crate) heard_event: u64,
    /// The owner that it takes itself for, as far as it ever said.
    pub(crate) owner: Option<u64>,
    open: Option<Open>,
}

/// An operation that was invoked.
#[derive(Clone, Debug)]
struct Open {
    f: Function,
    start: u64,
    index: u64,
    lock: Option<u32>,
    attempt: Option<u64>,
    key: Option<u32>,
    ttl_ms: Option<u64>,
    wait_ms: Option<u64>,
    shared: Option<bool>,
    permits: Option<u64>,
    owner: Option<u64>,
    token: Option<u64>,
    write_id: Option<u64>,
}

/// All that the judges look at.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) header: Header,
    pub(crate) processes: Names,
    pub(crate) process: Vec<Process>,
    pub(crate) locks: Names,
    pub(crate) keys: Names,
    pub(crate) incarnations: Names,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) helds: Vec<Held>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) skipped: Vec<Box<str>>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) counts: Counts,
    /// Why nobody can say whether the lock is right.
    pub(crate) broken: Vec<String>,
    /// The host's clock was stepped between two samples.
    pub(crate) host_clock_steps: Vec<(u64, u64)>,
    /// The last sample of the host's clock: when, and REALTIME − MONOTONIC.
    pub(crate) clock_sample: Option<(u64, i64)>,
    /// A lease's length was asked or granted somewhere.
    pub(crate) ttl_seen: bool,
    pub(crate) time_first: Option<u64>,
    pub(crate) time_last: u64,
    by_id: Numbers,
    /// The last attempt of a process on a lock, for histories that number no attempts.
    latest: FastMap<(u32, u32), u32>,
    by_write: Numbers,
    attempt_id_next: u64,
    /// The event that ends a complete history.
    pub(crate) ended: Option<u64>,
}

impl Process {
    fn hear(&mut self, stamp: u64, event: u64) {
        if stamp >= self.heard {
            (self.heard, self.heard_event) = (stamp, event);
        }
    }
}

impl Ledger {
    /// The history stops in the middle: its recorder says when it ends, and did not. Lines of one process come in
    /// order, those of two do not: what a process did after it was last heard of may be missing although later
    /// events of others are there.
    pub(crate) fn is_torn(&self) -> bool {
        self.header.ends && self.ended.is_none()
    }

    pub(crate) fn new(header: Header) -> Self {
        Self {
            header,
            processes: Names::default(),
            process: Vec::new(),
            locks: Names::default(),
            keys: Names::default(),
            incarnations: Names::default(),
            attempts: Vec::new(),
            refused: Vec::new(),
            accesses: Vec::new(),
            helds: Vec::new(),
            evidence: Vec::new(),
            faults: Vec::new(),
            skipped: Vec::new(),
            stalls: Vec::new(),
            troubles: Vec::new(),
            counts: Counts::default(),
            broken: Vec::new(),
            host_clock_steps: Vec::new(),
            clock_sample: None,
            ttl_seen: false,
            time_first: None,
            time_last: 0,
            by_id: Numbers::default(),
            latest: FastMap::default(),
            by_write: Numbers::default(),
            attempt_id_next: 1 << 63,
            ended: None,
        }
    }

    /// The contract that the history is judged by. Without a recorded one: a lease with hidden renewal if a
    /// ttl was ever named, else a plain mutex.
    pub(crate) fn contract(&self) -> Contract {
        match &self.header.contract {
            Some(contract) => contract.clone(),
            None if self.ttl_seen => {
                Contract { term: Term::Lease, renews: Renews::Hidden, ..Contract::default() }
            }
            None => Contract::default(),
        }
    }

    /// Takes one event into account.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        self.counts.events += 1;
        self.time_first.get_or_insert(event.time);
        self.time_last = self.time_last.max(event.time);
        if event.f.is_operation() {
            self.operation(event);
            return;
        }
        match event.f {
            Function::Lost => self.lost(event),
            Function::Renewed => self.renewed(event),
            Function::Kill | Function::Exit if event.fault.is_none() => self.death(event),
            Function::Clock if event.fault.is_none() => self.clock(event),
            Function::Stall => self.stall(event),
            Function::Spawn => {}
            Function::Other(ref name) if name == "end" => self.ended = Some(event.index),
            Function::Other(ref name) if name == "broken" => {
                let reason = event.value.reason.as_deref().unwrap_or("no reason given");
                self.broken.push(format!("{} broke: {reason}", event.process));
            }
            _ => self.fault(event),
        }
    }

    /// Operations that are open at the end of the history may have happened.
    pub(crate) fn close(&mut self) {
        for number in 0..self.process.len() {
            if let Some(open) = self.process[number].open.take() {
                self.complete(number as u32, open, None);
            }
        }
    }

    pub(crate) fn process_name(&self, process: u32) -> &str {
        self.processes.name(process)
    }

    /// The write of this number.
    pub(crate) fn write_of(&self, id: u64) -> Option<&Access> {
        self.by_write.get(id).map(|number| &self.accesses[number as usize])
    }

    /// Stamp and event of the death of the client behind a process.
    pub(crate) fn death_of(&self, process: u32) -> Option<(u64, u64)> {
        let own = &self.process[process as usize];
        own.death.or(self.process[own.client as usize].death)
    }

    fn process_number(&mut self, name: &str) -> u32 {
        let number = self.processes.number(name);
        if number as usize == self.process.len() {
            self.process.push(Process {
                client: number,
                death: None,
                heard: 0,
                heard_event: 0,
                owner: None,
                open: None,
            });
            let client = client_of(name);
            if client.len() < name.len() {
                let client = self.process_number_of_client(client);
                self.process[number as usize].client = client;
            }
        }
        number
    }

    fn process_number_of_client(&mut self, name: &str) -> u32 {
        let number = self.processes.number(name);
        if number as usize == self.process.len() {
            self.process.push(Process {
                client: number,
                death: None,
                heard: 0,
                heard_event: 0,
                owner: None,
                open: None,
            });
        }
        number
    }

    fn operation(&mut self, event: &Event<'_>) {
        let process = self.process_number(&event.process);
        self.ttl_seen |= event.value.ttl_ms.is_some();
        if event.kind == Kind::Invoke {
            let open = self.open_of(event);
            let known = &mut self.process[process as usize];
            known.hear(open.start, event.index);
            known.open = Some(open);
            return;
        }
        let slot = &mut self.process[process as usize].open;
        let own = slot.as_ref().is_some_and(|open| {
            open.f == event.f
                && !(event.may_lack_invoke() && event.start.is_some_and(|start| start != open.start))
        });
        if own {
            let Some(open) = slot.take() else { return };
            let known = &mut self.process[process as usize];
            known.hear(event.returned_at(), event.index);
            self.complete(process, open, Some(event));
        } else if event.may_lack_invoke() {
            let mut open = self.open_of(event);
            // Nobody can say when it began: not before the last that was heard, at the worst.
            open.start = event.start.or(event.value.granted_after).unwrap_or(event.time);
            self.complete_uninvoked(process, open, event);
        }
    }

    fn open_of(&mut self, event: &Event<'_>) -> Open {
        Open {
            f: event.f.clone(),
            start: event.called_at(),
            index: event.index,
            lock: event.lock.as_ref().map(|lock| self.locks.number(lock)),
            attempt: event.attempt.or(event.attempts.first().copied()),
            key: event.key.as_ref().map(|key| self.keys.number(key)),
            ttl_ms: event.value.ttl_ms,
            wait_ms: event.value.wait_ms,
            shared: event.value.shared,
            permits: event.value.permits,
            owner: event.value.owner.as_deref().map(identity),
            token: event.value.token,
            write_id: event.value.write_id,
        }
    }

    fn complete_uninvoked(&mut self, process: u32, open: Open, event: &Event<'_>) {
        let call = Call::new(open.start, event.returned_at(), None, Some(event.index));
        self.completed(process, &open, call, Some(event));
    }

    fn complete(&mut self, process: u32, open: Open, event: Option<&Event<'_>>) {
        let end = event.map_or(FOREVER, |event| event.returned_at());
        let call = Call::new(open.start, end, Some(open.index), event.map(|event| event.index));
        self.completed(process, &open, call, event);
    }

    fn completed(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        self.note_trouble(open, call, event);
        match open.f {
            Function::Acquire => self.acquired(process, open, call, event),
            Function::Renew => self.renew_answered(process, open, call, event),
            Function::Release => self.release_answered(process, open, call, event),
            Function::Held => self.held_answered(process, open, call, event),
            Function::Read | Function::Write => self.accessed(process, open, call, event),
            Function::Probe => self.probed(open, call, event),
            Function::Dump => {
                if let Some(event) = event {
                    self.dumped(event);
                }
            }
            _ => {}
        }
    }

    fn note_trouble(&mut self, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let on_lock = matches!(open.f, Function::Acquire | Function::Renew | Function::Release);
        let cause = event.and_then(|event| event.value.error.as_ref()).map(|error| error.cause);
        let troubled = match event.map(|event| event.kind) {
            None | Some(Kind::Info) => true,
            Some(Kind::Fail) => matches!(cause, Some(Cause::Unavailable | Cause::Other)),
            _ => false,
        };
        if let (true, true, Some(lock)) = (on_lock, troubled, open.lock) {
            self.troubles.push(Trouble { lock, call });
        }
    }

    fn acquired(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let kind = event.map_or(Kind::Info, |event| event.kind);
        let lock = match (open.lock, event.and_then(|event| event.lock.as_ref())) {
            (Some(lock), _) => lock,
            (None, Some(lock)) => self.locks.number(lock),
            (None, None) => self.locks.number(""),
        };
        let waited = open.wait_ms.is_some_and(|wait| wait > 0);
        if kind == Kind::Fail {
            let cause = event.and_then(|event| event.value.error.as_ref()).map(|error| error.cause);
            match cause {
                None | Some(Cause::Busy) => {
                    self.counts.acquires_busy += 1;
                    self.refused.push(Refused { process, lock, call });
                }
                Some(_) => self.counts.acquires_failed += 1,
            }
            return;
        }
        let value = event.map(|event| &event.value);
        let named = value.and_then(|value| value.owner.as_deref()).map(identity);
        let owner = self.owner_of(process, named.or(open.owner));
        let mut attempt = Attempt {
            id: 0,
            process,
            lock,
            owner,
            acquire: call,
            outcome: if kind == Kind::Ok { Outcome::Ok } else { Outcome::Info },
            shared: value.and_then(|value| value.shared).or(open.shared).unwrap_or(false),
            waited,
            permits: permits(value.and_then(|value| value.permits).or(open.permits)),
            token: value.and_then(|value| value.token),
            validity_ms: value.and_then(|value| value.validity_ms),
            granted_after: value.and_then(|value| value.granted_after).unwrap_or(call.start),
            granted_by: value.and_then(|value| value.granted_by).unwrap_or(call.end),
            ttl_ms_min: None,
            ttl_ms_max: None,
            release: None,
            releases_more: Vec::new(),
            renewals: Vec::new(),
            lost: None,
            gave_up: None,
        };
        attempt.admit_ttl(open.ttl_ms);
        attempt.admit_ttl(value.and_then(|value| value.ttl_ms));
        match attempt.outcome {
            Outcome::Ok => self.counts.acquires_ok += 1,
            Outcome::Info => self.counts.acquires_info += 1,
        }
        self.admit(attempt, open.attempt);
    }

    /// Who asks: the owner that he names, else the one that he named before, else his process.
    fn owner_of(&mut self, process: u32, named: Option<u64>) -> u64 {
        let known = &mut self.process[process as usize];
        known.owner = known.owner.or(named);
        named.or(known.owner).unwrap_or_else(|| identity(self.processes.name(process)))
    }

    fn admit(&mut self, mut attempt: Attempt, id: Option<u64>) {
        let number = self.attempts.len() as u32;
        attempt.id = id.unwrap_or(self.attempt_id_next);
        if id.is_none() {
            self.attempt_id_next += 1;
            self.latest.insert((attempt.process, attempt.lock), number);
        } else {
            self.by_id.insert(attempt.id, number);
        }
        self.attempts.push(attempt);
    }

    /// The attempt that an event belongs to: by its number, else the last of its process on its lock.
    fn attempt_of(&self, process: u32, id: Option<u64>, lock: Option<u32>) -> Option<u32> {
        match id {
            Some(id) => self.by_id.get(id),
            None => self.latest.get(&(process, lock?)).copied(),
        }
    }

    fn renew_answered(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let Some(number) = self.attempt_of(process, open.attempt, open.lock) else { return };
        let kind = event.map_or(Kind::Info, |event| event.kind);
        let value = event.map(|event| &event.value);
        if kind == Kind::Fail {
            let error = value.and_then(|value| value.error.as_ref());
            let proven = error
                .is_some_and(|error| error.cause == Cause::NotHeld && error.source == Some(Source::Server));
            if proven {
                let lock = self.attempts[number as usize].lock;
                self.evidence.push(Evidence { lock, call, says: Says::NotHeldBy(number) });
            }
            return;
        }
        let attempt = &mut self.attempts[number as usize];
        attempt.admit_ttl(open.ttl_ms);
        attempt.admit_ttl(value.and_then(|value| value.ttl_ms));
        attempt.renewals.push(Renewal {
            call,
            outcome: if kind == Kind::Ok { Outcome::Ok } else { Outcome::Info },
            after: value.and_then(|value| value.granted_after).unwrap_or(call.start),
            by: value.and_then(|value| value.granted_by).unwrap_or(call.end),
            reentry: false,
        });
    }

    fn release_answered(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let Some(number) = self.attempt_of(process, open.attempt, open.lock) else { return };
        let kind = event.map_or(Kind::Info, |event| event.kind);
        let attempt = &mut self.attempts[number as usize];
        attempt.gave_up = Some(attempt.gave_up.map_or(call.start, |first| first.min(call.start)));
        if kind == Kind::Fail {
            return;
        }
        let release = Release {
            call,
            outcome: if kind == Kind::Ok { Outcome::Ok } else { Outcome::Info },
            released: event.and_then(|event| event.value.released),
        };
        match attempt.release {
            None => attempt.release = Some(release),
            Some(first) if release.call.start < first.call.start => {
                attempt.releases_more.insert(0, first);
                attempt.release = Some(release);
            }
            Some(_) => attempt.releases_more.push(release),
        }
    }

    fn held_answered(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let Some(number) = self.attempt_of(process, open.attempt, open.lock) else { return };
        let Some(event) = event.filter(|event| event.kind == Kind::Ok) else { return };
        if event.value.held == Some(true) {
            self.helds.push(Held { attempt: number, call });
        }
    }

    fn accessed(&mut self, process: u32, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let value = event.map(|event| &event.value);
        let write = open.f == Function::Write;
        let highest_token_before = value.and_then(|value| value.highest_token_before);
        let refused = value.and_then(|value| value.error.as_ref()).map(|error| error.cause);
        let answer = match event.map_or(Kind::Info, |event| event.kind) {
            Kind::Ok => Answer::Accepted,
            Kind::Fail if highest_token_before.is_some() || refused == Some(Cause::Refused) => {
                Answer::Rejected
            }
            Kind::Fail => return,
            _ => Answer::Unknown,
        };
        match (write, answer) {
            (true, Answer::Accepted) => self.counts.writes_accepted += 1,
            (true, Answer::Rejected) => self.counts.writes_rejected += 1,
            (true, Answer::Unknown) => self.counts.writes_info += 1,
            (false, Answer::Accepted) => self.counts.reads_ok += 1,
            (false, _) => {}
        }
        let incarnation = value.and_then(|value| value.incarnation.as_deref()).unwrap_or("");
        let access = Access {
            attempt: self.attempt_of(process, open.attempt, open.lock),
            process,
            key: open.key.unwrap_or_else(|| self.keys.number("")),
            write,
            answer,
            resolved_by: None,
            call,
            token: value.and_then(|value| value.token).or(open.token),
            write_id: value.and_then(|value| value.write_id).or(open.write_id),
            position: value.and_then(|value| value.position),
            replaced: value.and_then(|value| value.replaced),
            highest_token_before,
            incarnation: self.incarnations.number(incarnation),
        };
        if let (true, Some(write)) = (write, access.write_id) {
            self.by_write.insert(write, self.accesses.len() as u32);
        }
        self.accesses.push(access);
    }

    fn probed(&mut self, open: &Open, call: Call, event: Option<&Event<'_>>) {
        let Some(event) = event.filter(|event| event.kind == Kind::Ok) else { return };
        let Some(lock) = open.lock else { return };
        let says = match (event.value.held, event.value.owner.as_deref()) {
            (Some(false), _) => Says::Free,
            (_, Some(owner)) => Says::HeldBy(identity(owner)),
            _ => return,
        };
        self.evidence.push(Evidence { lock, call, says });
    }

    /// The resource's own record settles writes of unknown outcome.
    fn dumped(&mut self, event: &Event<'_>) {
        let incarnation = event.value.incarnation.as_deref().unwrap_or("");
        let incarnation = self.incarnations.number(incarnation);
        for entry in event.value.log.iter().flatten() {
            self.settle(entry, incarnation, event.index);
        }
    }

    fn settle(&mut self, entry: &LogEntry<'_>, incarnation: u32, event: u64) {
        let Some(number) = self.by_write.get(entry.write_id) else { return };
        let access = &mut self.accesses[number as usize];
        if access.answer != Answer::Unknown {
            return;
        }
        access.answer = Answer::Accepted;
        access.resolved_by = Some(event);
        access.position = Some(entry.position);
        access.replaced = Some(entry.replaced);
        access.highest_token_before = Some(entry.highest_token_before);
        access.token = access.token.or(entry.token);
        access.incarnation = incarnation;
    }

    fn lost(&mut self, event: &Event<'_>) {
        let process = self.process_number(&event.process);
        let lock = event.lock.as_ref().map(|lock| self.locks.number(lock));
        let Some(number) = self.attempt_of(process, event.attempt, lock) else { return };
        let told = (event.called_at(), event.index);
        let attempt = &mut self.attempts[number as usize];
        attempt.lost = Some(attempt.lost.map_or(told, |first| first.min(told)));
    }

    fn renewed(&mut self, event: &Event<'_>) {
        self.ttl_seen |= event.value.ttl_ms.is_some();
        let process = self.process_number(&event.process);
        let lock = event.lock.as_ref().map(|lock| self.locks.number(lock));
        let Some(number) = self.attempt_of(process, event.attempt, lock) else { return };
        // Without a stamp from before the request nothing is known about where its term begins.
        let Some(after) = event.value.granted_after.or(event.start) else { return };
        let by = event.value.granted_by.or(event.end).unwrap_or(event.time);
        let attempt = &mut self.attempts[number as usize];
        attempt.admit_ttl(event.value.ttl_ms);
        let call = Call::new(after, by, None, Some(event.index));
        attempt.renewals.push(Renewal { call, outcome: Outcome::Ok, after, by, reentry: false });
    }

    fn death(&mut self, event: &Event<'_>) {
        let process = self.process_number(&event.process);
        let known = &mut self.process[process as usize];
        // An exit is learned of afterwards: what is certain is what the process last said itself.
        let at = match event.f {
            Function::Exit => event.start.unwrap_or(known.heard),
            _ => event.called_at(),
        };
        known.death = Some(known.death.map_or((at, event.index), |first| first.min((at, event.index))));
    }

    fn clock(&mut self, event: &Event<'_>) {
        /// Slewing moves a clock by half a millisecond a second, and a sampler may be interrupted between
        /// its two readings; time daemons step from 128 ms on.
        const STEP_NS_MIN: u64 = 50 * MS;
        let Some(offset) = event.value.offset_ns else { return };
        if let Some((at, before)) = self.clock_sample
            && offset.abs_diff(before) > STEP_NS_MIN
        {
            self.host_clock_steps.push((at, event.time));
        }
        self.clock_sample = Some((event.time, offset));
    }

    fn stall(&mut self, event: &Event<'_>) {
        let process = self.process_number(&event.process);
        let client = self.process[process as usize].client;
        let (from, until) = (event.value.from, event.value.until);
        if let (Some(from), Some(until)) = (from, until.or(Some(event.time))) {
            self.stalls.push(Stall { client, from, until, event: event.index });
        }
    }

    fn fault(&mut self, event: &Event<'_>) {
        let Some(id) = event.fault else { return };
        match event.value.phase {
            Some(Phase::Skipped) => {
                self.counts.faults_skipped += 1;
                let reason = event.value.reason.as_deref().unwrap_or("no reason given");
                self.skipped.push(format!("{}: {reason}", event.f.name()).into());
            }
            Some(Phase::End) => {
                let end = event.returned_at();
                if let Some(fault) = self.faults.iter_mut().rev().find(|fault| fault.id == id) {
                    fault.end = Some(end);
                    fault.events.push(event.index);
                }
            }
            Some(Phase::Begin) | None => {
                self.counts.faults += 1;
                self.faults.push(Fault {
                    id,
                    f: event.f.name().into(),
                    targets: event.value.targets.iter().map(|target| target.as_ref().into()).collect(),
                    begin: event.called_at(),
                    end: if event.value.phase.is_none() { Some(event.returned_at()) } else { None },
                    events: vec![event.index],
                });
            }
        }
    }

    /// May anybody but one owner hold at a time?
    pub(crate) fn excludes(&self, attempt: &Attempt, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => true,
            Mode::Shared => !attempt.shared,
            Mode::Counting => false,
        }
    }
}

fn permits(asked: Option<u64>) -> u32 {
    asked.map_or(1, |permits| u32::try_from(permits).unwrap_or(u32::MAX))
}
