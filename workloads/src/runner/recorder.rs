//! The history file and the checker, fed in one order: the one in which the runner learned of things.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use fencepost_checker::{
    check::Checker,
    history::{Event, Function, Header, Kind, Value},
    plan::Plan,
    verdict::Verdict,
};
use fencepost_nemesis::{clock::raw::RunClock, schedule::FaultLog};

/// The history cannot be written: a fragment that fits after "error: ".
#[derive(Debug, thiserror::Error)]
#[error("cannot write the history {}: {source}; what was recorded before is kept and can be judged: fencepost check {}", path.display(), path.display())]
pub struct RecordError {
    path: PathBuf,
    source: io::Error,
}

/// Lines wait in memory for at most this long: a killed run loses no more.
const FLUSH_EVERY: Duration = Duration::from_millis(2);

/// How a worker's line begins: it does not know its place in the history.
const UNPLACED: &[u8] = br#"{"index":0,"time":0,"#;

/// Appends events to the history and feeds them to the checker.
pub struct Recorder {
    clock: RunClock,
    operations: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    next_index: u64,
    checker: Option<Checker>,
    failure: Option<io::Error>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("operations", &self.operations()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Creates the file with its header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, header: Header, clock: RunClock) -> Result<Arc<Self>, RecordError> {
        let failed = |source| RecordError { path: path.to_owned(), source };
        let mut file = OpenOptions::new().create_new(true).append(true).open(path).map_err(failed)?;
        let mut line = serde_json::to_vec(&header).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        file.write_all(&line).map_err(failed)?;
        let inner = Inner {
            path: path.to_owned(),
            file,
            bytes: Vec::with_capacity(1 << 16),
            next_index: 0,
            checker: Some(Checker::new(header)),
            failure: None,
        };
        let recorder = Arc::new(Self { clock, operations: AtomicU64::new(0), inner: Mutex::new(inner) });
        flush_regularly(Arc::downgrade(&recorder)).map_err(failed)?;
        Ok(recorder)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event; its index and time are set here.
    pub fn append(&self, event: Event<'_>) {
        self.append_with(event, |event, bytes| {
            // Neither keys nor values of an event can fail to serialise.
            let _ = serde_json::to_writer(bytes, event);
        });
    }

    /// Appends an event of which a worker wrote the line: the line is taken over as it is, but for its place.
    pub fn append_line(&self, event: Event<'_>, line: &[u8]) {
        let Some(rest) = line.strip_prefix(UNPLACED) else { return self.append(event) };
        self.append_with(event, |event, bytes| {
            // Writing to memory does not fail.
            let _ = write!(bytes, r#"{{"index":{},"time":{},"#, event.index, event.time);
            bytes.extend_from_slice(rest);
        });
    }

    fn append_with(&self, mut event: Event<'_>, write: impl FnOnce(&Event<'_>, &mut Vec<u8>)) {
        let mut inner = self.inner();
        let Inner { bytes, next_index, checker: Some(checker), .. } = &mut *inner else { return };
        event.index = *next_index;
        event.time = self.clock.now_ns();
        *next_index += 1;
        write(&event, bytes);
        bytes.push(b'\n');
        checker.push(&event);
        if matches!(event.kind, Kind::Ok | Kind::Fail) {
            self.operations.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends an event about the run itself.
    pub fn note(&self, process: &str, f: Function, value: Value<'_>) {
        let now = self.clock.now_ns();
        self.append(Event {
            index: 0,
            time: 0,
            process: process.into(),
            kind: Kind::Info,
            f,
            lock: None,
            attempt: None,
            attempts: Vec::new(),
            key: None,
            fault: None,
            start: Some(now),
            end: Some(now),
            value,
        });
    }

    /// Operations completed so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Certain findings so far.
    #[must_use]
    pub fn found_so_far(&self) -> Vec<(&'static str, u64)> {
        self.inner().checker.as_mut().map(Checker::found_so_far).unwrap_or_default()
    }

    /// Why the history is not complete, if it could not be written.
    #[must_use]
    pub fn failure(&self) -> Option<RecordError> {
        let inner = self.inner();
        let source = inner.failure.as_ref()?;
        // The error is asked for more than once, and cannot be cloned.
        let source = source
            .raw_os_error()
            .map_or_else(|| io::Error::from(source.kind()), io::Error::from_raw_os_error);
        Some(RecordError { path: inner.path.clone(), source })
    }

    /// Ends the history, and judges it.
    #[must_use]
    pub fn finish(&self, plan: &Plan) -> Verdict {
        let mut inner = self.inner();
        inner.flush();
        inner.checker.take().map_or_else(Verdict::empty, |checker| checker.finish(Some(plan)))
    }
}

impl Inner {
    fn flush(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.file.write_all(&self.bytes)
        {
            self.failure = Some(error);
        }
        self.bytes.clear();
    }
}

fn flush_regularly(recorder: Weak<Recorder>) -> io::Result<()> {
    let flush = move || {
        while let Some(recorder) = recorder.upgrade() {
            recorder.inner().flush();
            drop(recorder);
            thread::sleep(FLUSH_EVERY);
        }
    };
    thread::Builder::new().name("history".to_owned()).spawn(flush).map(drop)
}

impl FaultLog for Recorder {
    fn record(&self, event: Event<'static>) {
        self.append(event);
    }
}
