//! How does a file become events? Line by line, borrowed, within a bounded memory, with errors that name the
//! line, what is wrong with it and what to do.

mod edn;
mod pairing;
mod scan;
mod witness;

use std::io::{BufRead, Read};

use serde::Deserialize;

use crate::{
    check::Checker,
    history::{Event, FORMAT_VERSION, Header},
    plan::Plan,
    verdict::Verdict,
};

pub use edn::{EdnError, from_edn, is_edn, to_edn};
pub use witness::{CopyError, copy_witness, copy_witnesses};

/// The longest line that is read, bytes. The longest lines are `dump` events: 16 MiB hold the record of
/// about 150,000 writes.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a history cannot be read. Every text names the line and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is not even a header.
    #[error(
        "the history is empty: it must begin with a header line such as {{\"fencepost\":1}}; was the run killed before it began?"
    )]
    Empty,
    /// The first line is no header.
    #[error(
        "line 1 is not a header ({what}): a history begins with a line such as {{\"fencepost\":1,\"contract\":{{…}}}}"
    )]
    Header {
        /// What is wrong with it.
        what: String,
    },
    /// Written by another generation of the format.
    #[error(
        "line 1: format version {found} is not the version {FORMAT_VERSION} that this program reads; check it with the release that wrote it, or with a newer one"
    )]
    Version {
        /// What the header says.
        found: u64,
    },
    /// A line that is no event.
    #[error(
        "line {line} is not an event ({what}): every line after the header is one JSON object with type, f, process and time; repair or remove the line"
    )]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A line that would not fit into memory.
    #[error(
        "line {line} is longer than {LINE_BYTES_MAX} bytes: no event is that long; is this a history, and are its line ends intact?"
    )]
    LineTooLong {
        /// The line's number, from 1.
        line: u64,
    },
    /// A completion that completes nothing.
    #[error(
        "line {line}: {process} completes {f}, which it never invoked (type \"{kind}\" needs an \"invoke\" of the same process and f before it); the recorder must write the invoke before the operation acts"
    )]
    NoInvoke {
        /// The line's number, from 1.
        line: u64,
        /// Who.
        process: String,
        /// Which function.
        f: String,
        /// How it ended.
        kind: &'static str,
    },
    /// An actor that does two things at once.
    #[error(
        "line {line}: {process} invokes {f} while its {open} of line {since} is open; one operation an actor at a time: give each task its own name, such as {process}/t1"
    )]
    TwoOpen {
        /// The line's number, from 1.
        line: u64,
        /// Who.
        process: String,
        /// What it invokes.
        f: String,
        /// What is open.
        open: String,
        /// Since which line.
        since: u64,
    },
    /// The recorder's clock ran backwards.
    #[error(
        "line {line}: time runs backwards, from {before} to {after} ns; lines stand in the order in which one recorder with a monotonic clock learned of them: sort them by time, or repair the recorder"
    )]
    TimeBackwards {
        /// The line's number, from 1.
        line: u64,
        /// The time of the line before, nanoseconds.
        before: u64,
        /// The time of this line, nanoseconds.
        after: u64,
    },
    /// An operation that ends before it begins.
    #[error("line {line}: end {end} is before start {start} (ns); both are stamps of one monotonic clock")]
    EndBeforeStart {
        /// The line's number, from 1.
        line: u64,
        /// The start, nanoseconds.
        start: u64,
        /// The end, nanoseconds.
        end: u64,
    },
    /// It is no history of Jepsen either.
    #[error(transparent)]
    Edn(EdnError),
    /// The file cannot be read.
    #[error("line {line} cannot be read: {source}")]
    Io {
        /// The line's number, from 1.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
}

/// A history that was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The header.
    pub header: Header,
    /// How many events it has.
    pub events: u64,
    /// What the reader had to put up with, one sentence each.
    pub notes: Vec<String>,
}

/// A history that was read and judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The header.
    pub header: Header,
    /// The verdict.
    pub verdict: Verdict,
    /// What the reader had to put up with, one sentence each.
    pub notes: Vec<String>,
}

/// Reads a history and judges it. `plan` is that of the run, if there was one.
///
/// # Errors
/// [`ReadError`] if it is no history, or one that contradicts itself.
pub fn check<R: BufRead>(reader: R, plan: Option<&Plan>) -> Result<Checked, ReadError> {
    check_with(reader, plan, Checker::new)
}

/// Reads a history and judges it with a checker of one's own making, such as one with a model.
///
/// # Errors
/// As [`check`].
pub fn check_with<R: BufRead>(
    reader: R,
    plan: Option<&Plan>,
    new: impl Fn(Header) -> Checker,
) -> Result<Checked, ReadError> {
    check_unless(reader, plan, new, &|| false)
}

/// As [`check_with`]; `stop` is asked now and then whether a search under a model shall give up.
///
/// # Errors
/// As [`check`].
pub fn check_unless<R: BufRead>(
    reader: R,
    plan: Option<&Plan>,
    new: impl Fn(Header) -> Checker,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Checked, ReadError> {
    let mut checker = None;
    let finished = read(reader, |header, event| {
        checker.get_or_insert_with(|| new(header.clone())).push(event);
    })?;
    let checker = checker.unwrap_or_else(|| new(finished.header.clone()));
    Ok(Checked { verdict: checker.finish_unless(plan, stop), header: finished.header, notes: finished.notes })
}

/// Reads a history and hands each event to `sink`, with the header.
///
/// A torn last line, as a killed recorder leaves it, is dropped and noted.
///
/// # Errors
/// [`ReadError`] if it is no history, or one that contradicts itself.
pub fn read<R: BufRead>(reader: R, mut sink: impl FnMut(&Header, &Event<'_>)) -> Result<Finished, ReadError> {
    let mut lines = Lines::new(reader);
    let header = read_header(&mut lines)?;
    let mut pairing = pairing::Pairing::default();
    let mut finished = Finished { header, events: 0, notes: Vec::new() };
    let mut index_next = 0;
    let mut time_before = 0;
    while let Some(line) = lines.next()? {
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut event: Event<'_> = match parse(line.bytes) {
            Ok(event) => event,
            Err(torn) if line.last && (torn.eof || !line.whole) => {
                finished.notes.push(format!(
                    "line {} is torn, as a killed recorder leaves it; it was dropped",
                    line.number
                ));
                break;
            }
            Err(bad) => return Err(ReadError::Line { line: line.number, what: bad.what }),
        };
        if event.index == 0 {
            event.index = index_next;
        }
        check_stamps(&event, line.number, time_before)?;
        pairing.take(&event, line.number)?;
        index_next = event.index + 1;
        time_before = event.time;
        finished.events += 1;
        sink(&finished.header, &event);
    }
    Ok(finished)
}

fn check_stamps(event: &Event<'_>, line: u64, before: u64) -> Result<(), ReadError> {
    if event.time < before {
        return Err(ReadError::TimeBackwards { line, before, after: event.time });
    }
    match (event.start, event.end) {
        (Some(start), Some(end)) if end < start => Err(ReadError::EndBeforeStart { line, start, end }),
        _ => Ok(()),
    }
}

fn read_header<R: BufRead>(lines: &mut Lines<R>) -> Result<Header, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        fencepost: Option<u64>,
    }
    let line = lines.next()?.ok_or(ReadError::Empty)?;
    let not_a_header = |what: &dyn std::fmt::Display| ReadError::Header { what: what.to_string() };
    let version: Version = serde_json::from_slice(line.bytes).map_err(|error| not_a_header(&error))?;
    match version.fencepost {
        Some(found) if found == u64::from(FORMAT_VERSION) => {}
        Some(found) => return Err(ReadError::Version { found }),
        None => return Err(not_a_header(&"no field \"fencepost\"")),
    }
    let header: Header = serde_json::from_slice(line.bytes).map_err(|error| not_a_header(&error))?;
    match header.contract.as_ref().and_then(crate::contract::Contract::flaw) {
        Some(flaw) => Err(not_a_header(&flaw)),
        None if !(0.0..1.0).contains(&header.rho) => Err(not_a_header(&"rho must be from 0 to below 1")),
        None => Ok(header),
    }
}

/// Why a line is no event, and whether it merely stops too early.
struct Unparsed {
    what: String,
    eof: bool,
}

fn parse(bytes: &[u8]) -> Result<Event<'_>, Unparsed> {
    // Checked once a line: the parser would otherwise check each string by itself.
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Unparsed { what: error.to_string(), eof: error.error_len().is_none() })?;
    if let Some(event) = scan::event(text) {
        return Ok(event);
    }
    serde_json::from_str(text).map_err(|error| Unparsed { what: error.to_string(), eof: error.is_eof() })
}

/// One line, without its end.
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// It ended with a line end.
    pub(crate) whole: bool,
    /// Nothing follows.
    pub(crate) last: bool,
}

/// Lines of bounded length.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0 }
    }

    /// The next line; never more than [`LINE_BYTES_MAX`] bytes of it are read into memory.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        self.number += 1;
        let number = self.number;
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let io = |source| ReadError::Io { line: number, source };
        self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer).map_err(io)?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let whole = self.buffer.ends_with(b"\n");
        if !whole && self.buffer.len() > LINE_BYTES_MAX {
            return Err(ReadError::LineTooLong { line: number });
        }
        let last = self.reader.fill_buf().map_err(io)?.is_empty();
        let bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Ok(Some(Line { number, bytes, whole, last }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Result<Checked, ReadError> {
        check(text.as_bytes(), None)
    }

    fn message(text: &str) -> String {
        outcome(text).expect_err("must be refused").to_string()
    }

    const HEADER: &str = "{\"fencepost\":1}\n";
    const INVOKE: &str = r#"{"index":0,"time":1,"process":"c1","type":"invoke","f":"acquire","lock":"l"}"#;
    const OK: &str = r#"{"index":1,"time":2,"process":"c1","type":"ok","f":"acquire","lock":"l"}"#;

    #[test]
    fn what_is_no_history_is_refused_with_its_line() {
        assert!(message("").contains("empty"));
        assert!(message("hello\n").contains("line 1 is not a header"));
        assert!(message("{}\n").contains("no field \"fencepost\""));
        assert!(message("{\"fencepost\":7}\n").contains("format version 7"));
        assert!(message(&format!("{HEADER}hello\n{INVOKE}\n")).starts_with("line 2 is not an event"));
        assert!(message(&format!("{HEADER}{OK}\n")).contains("line 2: c1 completes acquire, which it never"));
        assert!(message(&format!("{HEADER}{INVOKE}\n{INVOKE}\n")).contains("of line 2 is open"));
        let late = INVOKE.replace("\"time\":1", "\"time\":9");
        assert!(message(&format!("{HEADER}{late}\n{OK}\n")).contains("from 9 to 2 ns"));
        let bent = OK.replace("\"lock\"", "\"start\":9,\"end\":3,\"lock\"");
        assert!(message(&format!("{HEADER}{INVOKE}\n{bent}\n")).contains("end 3 is before start 9"));
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_noted() {
        for torn in ["{\"index\":1,\"time\"", "{\"index\":1,\"time\":2,\"process\":\"c\u{fc}", "{\"index\"\n"]
        {
            let checked = outcome(&format!("{HEADER}{INVOKE}\n{torn}")).expect("readable");
            assert_eq!(checked.verdict.counts.events, 1);
            assert!(checked.notes[0].contains("line 3 is torn"), "{:?}", checked.notes);
        }
        let whole = outcome(&format!("{HEADER}{INVOKE}\n{OK}")).expect("readable");
        assert_eq!((whole.verdict.counts.events, whole.notes.len()), (2, 0));
        assert!(message(&format!("{HEADER}{INVOKE}\n{{\"index\"\n{OK}\n")).starts_with("line 3"));
    }

    /// Yields `left` bytes without a line end and counts what was taken.
    struct Endless {
        left: usize,
        taken: usize,
    }

    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(self.left);
            buffer[..length].fill(b'x');
            self.left -= length;
            self.taken += length;
            Ok(length)
        }
    }

    #[test]
    fn a_line_of_100_mb_is_not_read_into_memory() {
        let mut endless = Endless { left: 100_000_000, taken: 0 };
        let error = check(std::io::BufReader::new(HEADER.as_bytes().chain(&mut endless)), None);
        assert!(matches!(error, Err(ReadError::LineTooLong { line: 2 })), "{error:?}");
        assert!(endless.taken < LINE_BYTES_MAX + 1_000_000, "{} bytes read", endless.taken);
    }
}
