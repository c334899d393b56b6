//! How is an event kept beyond the line that it was parsed from?

use std::borrow::Cow;

use crate::history::{Event, LogEntry, OperationError, Value};

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl Event<'_> {
    /// An event that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        Event {
            index: self.index,
            time: self.time,
            process: own(self.process),
            kind: self.kind,
            f: self.f,
            lock: self.lock.map(own),
            attempt: self.attempt,
            attempts: self.attempts,
            key: self.key.map(own),
            fault: self.fault,
            start: self.start,
            end: self.end,
            value: self.value.into_owned(),
        }
    }
}

impl Value<'_> {
    /// A value that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        Value {
            ttl_ms: self.ttl_ms,
            wait_ms: self.wait_ms,
            token: self.token,
            validity_ms: self.validity_ms,
            granted_after: self.granted_after,
            granted_by: self.granted_by,
            owner: self.owner.map(own),
            released: self.released,
            held: self.held,
            content: self.content.map(own),
            write_id: self.write_id,
            position: self.position,
            replaced: self.replaced,
            highest_token_before: self.highest_token_before,
            incarnation: self.incarnation.map(own),
            error: self.error.map(|error| OperationError {
                cause: error.cause,
                text: own(error.text),
                source: error.source,
            }),
            targets: self.targets.into_iter().map(own).collect(),
            phase: self.phase,
            ends: self.ends.into_iter().map(own).collect(),
            reason: self.reason.map(own),
            log: self.log.map(|log| log.into_iter().map(LogEntry::into_owned).collect()),
            offset_ns: self.offset_ns,
            from: self.from,
            until: self.until,
            shared: self.shared,
            permits: self.permits,
        }
    }
}

impl LogEntry<'_> {
    /// An entry that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> LogEntry<'static> {
        LogEntry {
            key: own(self.key),
            position: self.position,
            write_id: self.write_id,
            replaced: self.replaced,
            token: self.token,
            highest_token_before: self.highest_token_before,
        }
    }
}
