//! Does every completion have its invoke, and does every actor do one thing at a time?

use super::ReadError;
use crate::{
    history::{Event, Function, Kind},
    names::Names,
};

/// An operation that was invoked and not completed.
#[derive(Debug)]
struct Open {
    f: Function,
    start: Option<u64>,
    line: u64,
}

/// The open operation of every actor.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    processes: Names,
    open: Vec<Option<Open>>,
}

impl Pairing {
    pub(super) fn take(&mut self, event: &Event<'_>, line: u64) -> Result<(), ReadError> {
        if !event.f.is_operation() {
            return Ok(());
        }
        let process = event.process.as_ref();
        let number = self.processes.number(process) as usize;
        if number == self.open.len() {
            self.open.push(None);
        }
        let slot = &mut self.open[number];
        match (event.kind, slot.as_ref()) {
            (Kind::Invoke, None) => {
                *slot = Some(Open { f: event.f.clone(), start: event.start, line });
                Ok(())
            }
            (Kind::Invoke, Some(open)) => Err(ReadError::TwoOpen {
                line,
                process: process.to_owned(),
                f: event.f.name().to_owned(),
                open: open.f.name().to_owned(),
                since: open.line,
            }),
            (_, Some(open)) if open.f == event.f && !is_of_another(event, open) => {
                *slot = None;
                Ok(())
            }
            _ if event.may_lack_invoke() => Ok(()),
            (kind, _) => Err(ReadError::NoInvoke {
                line,
                process: process.to_owned(),
                f: event.f.name().to_owned(),
                kind: kind.name(),
            }),
        }
    }
}

/// A background renewal answered while the actor's own one is open: they differ in their start.
fn is_of_another(event: &Event<'_>, open: &Open) -> bool {
    event.may_lack_invoke()
        && matches!((event.start, open.start), (Some(start), Some(invoked)) if start != invoked)
}
