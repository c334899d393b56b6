//! The worker's stdout: events and replies, in the order in which they happened.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fencepost_checker::history::Event;
use serde::Serialize;

use crate::protocol::Reply;

/// Collects lines; the completion of one step leaves with the invocation of the next, in one system call.
#[derive(Debug)]
pub(super) struct Emitter {
    record: bool,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    out: File,
    bytes: Vec<u8>,
}

impl Pending {
    fn line(&mut self, line: &impl Serialize) {
        // Neither type can fail to serialise: no maps with odd keys, no custom code.
        if serde_json::to_writer(&mut self.bytes, line).is_ok() {
            self.bytes.push(b'\n');
        }
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() && self.out.write_all(&self.bytes).is_err() {
            // The runner is gone: so is the reason to live.
            std::process::exit(0);
        }
        self.bytes.clear();
    }
}

impl Emitter {
    pub(super) fn new(record: bool) -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { record, pending: Mutex::new(Pending { out, bytes: Vec::with_capacity(4096) }) })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event that may wait for the next line: the completion of a step.
    pub(super) fn event(&self, event: &Event<'_>) {
        if self.record {
            self.pending().line(event);
        }
    }

    /// An event that must be out before the step acts.
    pub(super) fn event_now(&self, event: &Event<'_>) {
        if self.record {
            let mut pending = self.pending();
            pending.line(event);
            pending.flush();
        }
    }

    /// Before anything that takes time.
    pub(super) fn flush(&self) {
        self.pending().flush();
    }

    pub(super) fn reply(&self, reply: &Reply) {
        let mut pending = self.pending();
        pending.line(reply);
        pending.flush();
    }
}
