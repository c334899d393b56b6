//! How are a million lines read quickly? By a scanner for lines as recorders write them. Whatever looks unusual
//! (an escape, a fraction, a list, a field it does not know) it leaves to the general parser.
//!
//! The two never disagree: where the scanner gives an event, the general parser gives the same one.

use std::borrow::Cow;

use crate::history::{Cause, Event, Function, Kind, OperationError, Released, Source, Value};

/// The event of a usual line; `None`: ask the general parser.
pub(super) fn event(line: &str) -> Option<Event<'_>> {
    let mut scan = Scan { text: line, bytes: line.as_bytes(), at: 0 };
    let mut event = Event {
        index: 0,
        time: 0,
        process: Cow::Borrowed(""),
        kind: Kind::Info,
        f: Function::Acquire,
        lock: None,
        attempt: None,
        attempts: Vec::new(),
        key: None,
        fault: None,
        start: None,
        end: None,
        value: Value::default(),
    };
    let mut seen = Seen(0);
    scan.byte(b'{')?;
    loop {
        let key = scan.string()?;
        scan.byte(b':')?;
        match key {
            "index" => event.index = seen.first(0, scan.number()?)?,
            "time" => event.time = seen.first(1, scan.number()?)?,
            "process" => event.process = Cow::Borrowed(seen.first(2, scan.string()?)?),
            "type" => event.kind = seen.first(3, kind(scan.string()?)?)?,
            "f" => event.f = seen.first(4, Function::from(scan.string()?))?,
            "value" => seen.first(5, scan.value(&mut event.value)?)?,
            "lock" => once(&mut event.lock, Cow::Borrowed(scan.string()?))?,
            "attempt" => once(&mut event.attempt, scan.number()?)?,
            "key" => once(&mut event.key, Cow::Borrowed(scan.string()?))?,
            "fault" => once(&mut event.fault, scan.number()?)?,
            "start" => once(&mut event.start, scan.number()?)?,
            "end" => once(&mut event.end, scan.number()?)?,
            _ => return None,
        }
        if !scan.more()? {
            break;
        }
    }
    const REQUIRED: u32 = 0b1_1110;
    (scan.at == scan.bytes.len() && seen.0 & REQUIRED == REQUIRED).then_some(event)
}

/// Which fields without an absent state were seen: a field that comes twice is left to the general parser.
struct Seen(u32);

impl Seen {
    fn first<T>(&mut self, field: u32, value: T) -> Option<T> {
        let twice = self.0 & (1 << field) != 0;
        self.0 |= 1 << field;
        (!twice).then_some(value)
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

fn kind(name: &str) -> Option<Kind> {
    match name {
        "invoke" => Some(Kind::Invoke),
        "ok" => Some(Kind::Ok),
        "fail" => Some(Kind::Fail),
        "info" => Some(Kind::Info),
        _ => None,
    }
}

fn cause(name: &str) -> Option<Cause> {
    match name {
        "busy" => Some(Cause::Busy),
        "not-held" => Some(Cause::NotHeld),
        "refused" => Some(Cause::Refused),
        "timeout" => Some(Cause::Timeout),
        "unavailable" => Some(Cause::Unavailable),
        _ => None,
    }
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// This byte, with space around it.
    fn byte(&mut self, wanted: u8) -> Option<()> {
        self.space();
        let found = self.peek()? == wanted;
        self.at += 1;
        self.space();
        found.then_some(())
    }

    /// Does another field follow in this object?
    fn more(&mut self) -> Option<bool> {
        self.space();
        let next = self.peek()?;
        self.at += 1;
        self.space();
        match next {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        if self.peek()? != b'"' {
            return None;
        }
        let from = self.at + 1;
        let length =
            self.bytes.get(from..)?.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        self.at = from + length + 1;
        (self.bytes[from + length] == b'"').then(|| self.text.get(from..from + length)).flatten()
    }

    /// A whole number from 0, as short as it can be.
    fn number(&mut self) -> Option<u64> {
        let from = self.at;
        let mut number = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        let digits = self.at - from;
        let plain = digits > 0 && (digits == 1 || self.bytes[from] != b'0');
        (plain && !matches!(self.peek(), Some(b'.' | b'e' | b'E'))).then_some(number)
    }

    fn signed(&mut self) -> Option<i64> {
        if self.peek()? == b'-' {
            self.at += 1;
            let number = i64::try_from(self.number()?).ok()?;
            // Minus nothing is a fraction to the general parser.
            return (number != 0).then_some(-number);
        }
        i64::try_from(self.number()?).ok()
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.bytes.get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(())
    }

    fn truth(&mut self) -> Option<bool> {
        if self.peek()? == b't' {
            self.word("true").map(|()| true)
        } else {
            self.word("false").map(|()| false)
        }
    }

    fn released(&mut self) -> Option<Released> {
        if self.peek()? == b'"' {
            return self.string().map(|_| Released::Unknown);
        }
        self.truth().map(|freed| if freed { Released::Yes } else { Released::No })
    }

    /// The fields of `value`, as far as they are common.
    fn value(&mut self, value: &mut Value<'a>) -> Option<()> {
        self.byte(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.byte(b':')?;
            match key {
                "ttl_ms" => once(&mut value.ttl_ms, self.number()?)?,
                "wait_ms" => once(&mut value.wait_ms, self.number()?)?,
                "token" => once(&mut value.token, self.number()?)?,
                "validity_ms" => once(&mut value.validity_ms, self.signed()?)?,
                "granted_after" => once(&mut value.granted_after, self.number()?)?,
                "granted_by" => once(&mut value.granted_by, self.number()?)?,
                "owner" => once(&mut value.owner, Cow::Borrowed(self.string()?))?,
                "released" => once(&mut value.released, self.released()?)?,
                "held" => once(&mut value.held, self.truth()?)?,
                "content" => once(&mut value.content, Cow::Borrowed(self.string()?))?,
                "write_id" => once(&mut value.write_id, self.number()?)?,
                "position" => once(&mut value.position, self.number()?)?,
                "replaced" => once(&mut value.replaced, self.number()?)?,
                "highest_token_before" => once(&mut value.highest_token_before, self.number()?)?,
                "incarnation" => once(&mut value.incarnation, Cow::Borrowed(self.string()?))?,
                "error" => once(&mut value.error, self.error()?)?,
                _ => return None,
            }
            if !self.more()? {
                return Some(());
            }
        }
    }

    fn error(&mut self) -> Option<OperationError<'a>> {
        self.byte(b'{')?;
        let (mut found, mut text, mut source) = (None, None, None);
        loop {
            let key = self.string()?;
            self.byte(b':')?;
            match key {
                "cause" => once(&mut found, cause(self.string()?)?)?,
                "text" => once(&mut text, self.string()?)?,
                "source" if self.text[self.at..].starts_with("\"server\"") => {
                    self.string()?;
                    once(&mut source, Source::Server)?;
                }
                _ => return None,
            }
            if !self.more()? {
                let text = Cow::Borrowed(text.unwrap_or(""));
                return Some(OperationError { cause: found?, text, source });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINES: [&str; 7] = [
        r#"{"index":1,"time":2,"process":"c1","type":"invoke","f":"acquire","lock":"l","attempt":1,"start":10,"value":{"ttl_ms":1000,"wait_ms":0}}"#,
        r#"{"index":1,"time":2,"process":"c1/t1","type":"ok","f":"acquire","lock":"ö","attempt":1,"start":1,"end":2,"value":{"token":1,"validity_ms":-3,"granted_after":1,"granted_by":2,"owner":"u"}}"#,
        r#"{ "time": 2, "process" : "c1", "type":"fail", "f":"write", "key":"k","value":{"highest_token_before":3,"error":{"cause":"refused","text":"no","source":"server"}} }"#,
        r#"{"index":1,"time":2,"process":"c1","type":"ok","f":"release","value":{"released":true}}"#,
        r#"{"index":1,"time":2,"process":"c1","type":"ok","f":"release","value":{"released":"unknown"}}"#,
        r#"{"index":1,"time":2,"process":"c1","type":"ok","f":"held","value":{"held":false}}"#,
        r#"{"index":9,"time":2,"process":"nemesis","type":"info","f":"pause","fault":1,"value":{}}"#,
    ];

    #[test]
    fn usual_lines_are_scanned() {
        for line in LINES {
            let general: Event<'_> = serde_json::from_str(line).unwrap();
            assert_eq!(event(line), Some(general), "{line}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_scanner_never_disagrees_with_the_general_parser(
            line in 0usize..LINES.len(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, "[ -~]{0,3}"), 0..3),
        ) {
            let mut text: Vec<char> = LINES[line].chars().collect();
            for (place, what, new) in edits {
                let at = place.index(text.len() + 1);
                let until = (at + usize::from(what)).min(text.len());
                text.splice(at..until, new.chars());
            }
            let text: String = text.into_iter().collect();
            if let Some(scanned) = event(&text) {
                let general: Result<Event<'_>, _> = serde_json::from_str(&text);
                prop_assert_eq!(general.ok(), Some(scanned), "{}", text);
            }
        }
    }
}
