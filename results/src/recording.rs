//! What happened in a run, as the pictures need it: operations with begin and end, holds, faults.
//!
//! This is a reading for the eye. What it means is the checker's business, and stands in the verdict.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use fencepost_checker::{
    history::{Cause, Event, Function, Header, Kind, Phase, Released},
    readers::{self, ReadError},
};

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// It did what it should.
    Ok,
    /// Somebody else held the lock.
    Busy,
    /// It certainly had no effect.
    Failed,
    /// Nobody knows.
    Unknown,
}

/// An operation, completed or not.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The index of its invocation.
    pub(crate) index: u64,
    /// The index of its completion.
    pub(crate) completion: Option<u64>,
    pub(crate) process: String,
    pub(crate) f: Function,
    pub(crate) lock: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) attempt: Option<u64>,
    pub(crate) start: u64,
    /// When it returned; what never did lasts until the end.
    pub(crate) end: u64,
    pub(crate) outcome: Outcome,
    pub(crate) token: Option<u64>,
    pub(crate) released: Option<Released>,
    pub(crate) position: Option<u64>,
}

/// An attempt's time with the lock.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) attempt: u64,
    pub(crate) process: String,
    pub(crate) lock: String,
    /// It may have been held from here: the acquire was called, or the request sent that was granted.
    pub(crate) called: u64,
    /// The acquire returned: held for certain from here.
    pub(crate) begin: u64,
    /// Held for certain from when until when: to the end of the term as last renewed, again from a renewal that
    /// came later than that.
    pub(crate) segments: Vec<(u64, u64)>,
    /// The client believed to hold until here.
    pub(crate) believed_end: u64,
    pub(crate) token: Option<u64>,
    /// It is unknown whether the acquire took effect.
    pub(crate) doubtful: bool,
}

impl Hold {
    /// The ends of the term, where the client went on believing.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(|(_, end)| *end).filter(|end| *end < self.believed_end)
    }

    /// The lease was renewed to `term_end` by a request answered at `answered`.
    fn prolong(&mut self, term_end: u64, answered: u64) {
        match self.segments.last_mut() {
            Some((_, end)) if answered <= *end => *end = term_end,
            _ => self.segments.push((answered, term_end.max(answered))),
        }
    }
}

/// A fault in force.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) f: String,
    pub(crate) targets: Vec<String>,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Something that befell a client.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) process: String,
    pub(crate) at: u64,
    /// In a word or two.
    pub(crate) what: &'static str,
}

/// A run, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) header: Header,
    /// In the order of their invocations.
    pub(crate) operations: Vec<Operation>,
    /// In the order of their acquires.
    pub(crate) holds: Vec<Hold>,
    /// In the order of their begins.
    pub(crate) faults: Vec<Fault>,
    /// Notices of loss, and deaths.
    pub(crate) moments: Vec<Moment>,
    pub(crate) events: u64,
    /// The last stamp, nanoseconds of the run.
    pub(crate) end: u64,
}

impl Recording {
    /// Reads a history.
    pub(crate) fn read(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Io { line: 1, source })?;
        Self::parse(BufReader::new(file))
    }

    /// Reads a history's lines.
    pub(crate) fn parse(lines: impl BufRead) -> Result<Self, ReadError> {
        let mut reading = None;
        let finished = readers::read(lines, |header, event| {
            reading.get_or_insert_with(|| Reading::new(header.clone())).push(event);
        })?;
        Ok(reading.unwrap_or_else(|| Reading::new(finished.header)).finish())
    }
}

/// A recording in the making.
struct Reading {
    recording: Recording,
    /// The open operation of each process, by its place.
    open: HashMap<String, usize>,
    /// The open faults, by number.
    open_faults: BTreeMap<u64, usize>,
    /// When an attempt's holder stopped believing without a release: told, or dead.
    disbelief: HashMap<u64, u64>,
    /// When a process died.
    deaths: Vec<(String, u64)>,
}

impl Reading {
    fn new(header: Header) -> Self {
        let recording = Recording { header, ..Recording::default() };
        let (open, open_faults, disbelief, deaths) = Default::default();
        Self { recording, open, open_faults, disbelief, deaths }
    }

    fn push(&mut self, event: &Event<'_>) {
        let stamps = [Some(event.time), event.start, event.end];
        self.recording.end = stamps.into_iter().flatten().fold(self.recording.end, u64::max);
        self.recording.events += 1;
        match (&event.f, event.kind) {
            (Function::Lost, _) => {
                let told = event.end.or(event.start).unwrap_or(event.time);
                self.push_moment(&event.process, told, "told: lost");
                if let Some(attempt) = event.attempt {
                    self.disbelief.entry(attempt).or_insert(told);
                }
            }
            (Function::Kill | Function::Exit, _) => {
                let died = event.start.unwrap_or(event.time);
                for process in event.value.targets.iter().chain([&event.process]) {
                    self.deaths.push((process.to_string(), died));
                    if event.f == Function::Kill {
                        self.push_moment(process, died, "killed");
                    }
                }
            }
            (Function::Other(name), _) if event.fault.is_some() || event.process == "nemesis" => {
                self.push_fault(name, event);
            }
            (Function::Renewed, _) => self.push_renewed(event),
            (_, Kind::Invoke) => self.push_invoke(event),
            (_, kind) => self.push_completion(event, kind),
        }
    }

    fn push_moment(&mut self, process: &str, at: u64, what: &'static str) {
        self.recording.moments.push(Moment { process: process.to_owned(), at, what });
    }

    fn push_fault(&mut self, name: &str, event: &Event<'_>) {
        let Some(number) = event.fault else { return };
        match event.value.phase {
            Some(Phase::Begin) => {
                let begin = event.start.unwrap_or(event.time);
                let targets = event.value.targets.iter().map(ToString::to_string).collect();
                self.open_faults.insert(number, self.recording.faults.len());
                self.recording.faults.push(Fault { f: name.to_owned(), targets, begin, end: u64::MAX });
            }
            Some(Phase::End) => {
                if let Some(place) = self.open_faults.remove(&number) {
                    self.recording.faults[place].end = event.end.unwrap_or(event.time);
                }
            }
            Some(Phase::Skipped) | None => {}
        }
    }

    fn push_invoke(&mut self, event: &Event<'_>) {
        self.open.insert(event.process.to_string(), self.recording.operations.len());
        self.recording.operations.push(opened(event));
    }

    /// The library renewed in the background: one event, an operation all the same.
    fn push_renewed(&mut self, event: &Event<'_>) {
        let answered = event.end.unwrap_or(event.time);
        let operation =
            Operation { completion: Some(event.index), end: answered, outcome: Outcome::Ok, ..opened(event) };
        let asked = event.value.granted_after.unwrap_or(operation.start);
        self.prolong(event.attempt, asked, answered, event.value.ttl_ms);
        self.recording.operations.push(operation);
    }

    fn push_completion(&mut self, event: &Event<'_>, kind: Kind) {
        let Some(place) = self.open.remove(event.process.as_ref()) else { return };
        let operation = &mut self.recording.operations[place];
        if operation.f != event.f {
            // No completion, but news of the same process, such as a stall.
            self.open.insert(event.process.to_string(), place);
            return;
        }
        let busy = event.value.error.as_ref().is_some_and(|error| error.cause == Cause::Busy);
        operation.completion = Some(event.index);
        operation.outcome = match kind {
            Kind::Ok => Outcome::Ok,
            Kind::Fail if busy => Outcome::Busy,
            Kind::Fail => Outcome::Failed,
            Kind::Info | Kind::Invoke => Outcome::Unknown,
        };
        operation.end = event.end.unwrap_or(event.time);
        operation.token = event.value.token.or(operation.token);
        operation.released = event.value.released;
        operation.position = event.value.position;
        if operation.f == Function::Acquire && matches!(kind, Kind::Ok | Kind::Info) {
            self.push_hold(place, event);
        } else if operation.f == Function::Renew && kind == Kind::Ok {
            let (attempt, asked, answered) = (operation.attempt, operation.start, operation.end);
            self.prolong(attempt, event.value.granted_after.unwrap_or(asked), answered, event.value.ttl_ms);
        }
    }

    fn push_hold(&mut self, place: usize, event: &Event<'_>) {
        let operation = &self.recording.operations[place];
        let Some(attempt) = operation.attempt else { return };
        let doubtful = event.kind == Kind::Info;
        let from = event.value.granted_after.unwrap_or(operation.start);
        let term = event.value.ttl_ms.map_or(u64::MAX, |ttl_ms| self.term_end(from, ttl_ms));
        let hold = Hold {
            attempt,
            process: operation.process.clone(),
            lock: operation.lock.clone().unwrap_or_default(),
            called: from.min(operation.end),
            begin: operation.end,
            segments: vec![(operation.end, term.max(operation.end))],
            believed_end: u64::MAX,
            token: operation.token,
            doubtful,
        };
        self.recording.holds.push(hold);
    }

    fn prolong(&mut self, attempt: Option<u64>, asked: u64, answered: u64, ttl_ms: Option<u64>) {
        let Some(ttl_ms) = ttl_ms else { return };
        let term_end = self.term_end(asked, ttl_ms);
        let mut holds = self.recording.holds.iter_mut().rev();
        if let Some(hold) = holds.find(|hold| Some(hold.attempt) == attempt) {
            hold.prolong(term_end, answered);
        }
    }

    fn term_end(&self, from: u64, ttl_ms: u64) -> u64 {
        let Header { rho, epsilon_ns, contract, .. } = &self.recording.header;
        let granularity_ms = contract.as_ref().map_or(0, |contract| contract.granularity_ms);
        let term_ns = ttl_ms as f64 * 1e6 * (1.0 - rho);
        let uncertain_ns = granularity_ms.saturating_mul(1_000_000).saturating_add(*epsilon_ns);
        from.saturating_add(term_ns as u64).saturating_sub(uncertain_ns)
    }

    /// Closes what is open: operations and faults last to the end, holds to release, notice, death or end.
    fn finish(mut self) -> Recording {
        let end = self.recording.end;
        let mut releases: HashMap<u64, u64> = HashMap::new();
        for operation in &mut self.recording.operations {
            operation.end = operation.end.min(end);
            let released = operation.f == Function::Release && operation.outcome != Outcome::Failed;
            if let (true, Some(attempt)) = (released, operation.attempt) {
                releases.entry(attempt).or_insert(operation.start);
            }
        }
        for fault in &mut self.recording.faults {
            fault.end = fault.end.min(end).max(fault.begin);
        }
        let (disbelief, deaths) = (&self.disbelief, &self.deaths);
        for hold in &mut self.recording.holds {
            let death =
                deaths.iter().find(|(who, when)| same_process(who, &hold.process) && *when >= hold.begin);
            let ends =
                [releases.get(&hold.attempt), disbelief.get(&hold.attempt), death.map(|(_, when)| when)];
            hold.believed_end = ends.into_iter().flatten().fold(end, |a, &b| a.min(b)).max(hold.begin);
            let believed_end = hold.believed_end;
            hold.segments.retain(|(begin, _)| *begin <= believed_end);
            hold.segments.iter_mut().for_each(|(begin, end)| *end = (*end).min(believed_end).max(*begin));
        }
        self.recording
    }
}

/// An operation as its invocation shows it.
fn opened(event: &Event<'_>) -> Operation {
    let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(ToString::to_string);
    Operation {
        index: event.index,
        completion: None,
        process: event.process.to_string(),
        f: event.f.clone(),
        lock: owned(&event.lock),
        key: owned(&event.key),
        attempt: event.attempt,
        start: event.start.unwrap_or(event.time),
        end: u64::MAX,
        outcome: Outcome::Unknown,
        token: event.value.token,
        released: None,
        position: None,
    }
}

/// Is this actor one of that process?
pub(crate) fn same_process(process: &str, actor: &str) -> bool {
    process == actor || client_of(actor) == process
}

/// The process of an actor: `c1` of `c1/t1`.
pub(crate) fn client_of(actor: &str) -> &str {
    actor.split('/').next().unwrap_or(actor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_classic_story_is_read() {
        let recording = Recording::parse(samples::stale_write().as_bytes()).unwrap();
        let [first, second] = recording.holds.as_slice() else { panic!("{:?}", recording.holds) };
        assert_eq!((first.token, second.token), (Some(1), Some(2)));
        assert!(first.expiries().next().is_some_and(|expired| expired < second.begin));
        assert!(first.believed_end > second.believed_end, "the stopped holder goes on believing");
        assert_eq!(second.expiries().next(), None);
        assert_eq!(recording.faults.len(), 1);
        let writes = recording.operations.iter().filter(|operation| operation.f == Function::Write);
        assert_eq!(writes.map(|write| write.outcome).collect::<Vec<_>>(), [Outcome::Ok, Outcome::Ok]);
    }

    #[test]
    fn a_renewal_prolongs_or_begins_again() {
        let renewed = |ms: f64| {
            let mut script = samples::Script::new();
            script.acquire(10.0, 11.0, "c1", 1, 1);
            script.event(ms, "c1", "info", "renewed", 1, ms - 1.0, r#""value":{"ttl_ms":1000}"#);
            script.release(2_500.0, "c1", 1, true);
            Recording::parse(script.text().as_bytes()).unwrap().holds.remove(0)
        };
        assert_eq!(renewed(800.0).segments.len(), 1, "in time");
        let late = renewed(1_400.0);
        assert_eq!(late.segments.len(), 2, "taken again");
        assert_eq!(late.segments[1].0, 1_400_000_000);
        assert_eq!(late.expiries().count(), 2);
    }

    #[test]
    fn a_torn_line_is_dropped_and_a_broken_one_named() {
        let whole = samples::stale_write();
        let torn = &whole[..whole.len() - 20];
        assert!(Recording::parse(torn.as_bytes()).is_ok());
        let mut lines: Vec<_> = whole.lines().collect();
        lines[3] = "{";
        let error = Recording::parse(lines.join("\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 4 is not an event"), "{error}");
        assert!(matches!(Recording::parse(&b""[..]), Err(ReadError::Empty)));
    }
}
