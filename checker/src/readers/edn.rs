//! How is a history of Jepsen read, and one of ours written for its tools? EDN, one operation a map.
//!
//! Known operations: `:acquire` and `:lock`, `:release` and `:unlock`, `:renew`, `:read`, `:write`, `:cas`. The value of
//! a lock's operation may be a map with `:client` (the owner), `:fence` or `:token`, `:permits`, `:shared`. With
//! `keyed`, values are `[key value]`, as of Jepsen's `independent`, and each key is a lock or register of its own.
//! A history that was written by us carries each event whole under `:fencepost`, and is read back as it was.

use std::{
    collections::HashMap,
    fmt::Write as _,
    hash::{Hash, Hasher},
    io::{BufRead, Write},
};

use serde_json::{Map, Value as Json, json};

use super::{ReadError, read};
use crate::{
    history::{Event, FORMAT_VERSION, Function, Kind},
    models::register::ZERO,
    names::WordHasher,
};

/// Why a text is no history in EDN.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdnError {
    /// The text is broken.
    #[error("line {line} is not EDN: {what}")]
    Syntax {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A form that is no operation.
    #[error("operation {number} {what}; each is a map with :type, :f, :process and :value")]
    Operation {
        /// Its number, from 0.
        number: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Nothing in it is known.
    #[error(
        "there is no operation of a lock or register in it (known are :acquire, :release, :renew, :read, :write, :cas; is it a history of another workload?)"
    )]
    Nothing,
}

/// One EDN form.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    Nil,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// A keyword without its colon, or a symbol.
    Name(String),
    Seq(Vec<Form>),
    Map(Vec<(Form, Form)>),
}

/// Does a text that begins like this hold EDN, rather than JSON lines?
#[must_use]
pub fn is_edn(begin: &[u8]) -> bool {
    let mut signs = begin.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b',');
    match (signs.next(), signs.next()) {
        (Some(b'{'), second) => second.is_some_and(|byte| *byte == b':'),
        (Some(b'[' | b'(' | b';' | b'#'), _) => true,
        _ => false,
    }
}

/// Turns a history of Jepsen into lines of ours.
///
/// # Errors
/// [`EdnError`] if it is none.
pub fn from_edn(text: &str, keyed: bool) -> Result<String, EdnError> {
    let header = text.lines().next().and_then(|line| line.strip_prefix(";; "));
    let header = header.filter(|header| header.starts_with("{\"fencepost\""));
    let mut out = match header {
        Some(header) => format!("{header}\n"),
        None => format!("{{\"fencepost\":{FORMAT_VERSION},\"test\":\"jepsen\"}}\n"),
    };
    let mut converter = Converter { keyed, number: 0, time: 0, known: 0 };
    let mut parser = Parser { text, at: 0 };
    while let Some(form) = parser.next()? {
        match form {
            Form::Seq(forms) => {
                for form in forms {
                    converter.operation(&form, &mut out)?;
                }
            }
            form => converter.operation(&form, &mut out)?,
        }
    }
    if converter.known == 0 && converter.number > 0 {
        return Err(EdnError::Nothing);
    }
    Ok(out)
}

/// Writes a history of ours in EDN.
///
/// A process that got no answer goes on under a new number, as Jepsen has it.
///
/// # Errors
/// [`super::CopyError`] if the history cannot be read or the EDN not written.
pub fn to_edn<R: BufRead, W: Write>(
    history: R,
    keyed: bool,
    out: &mut W,
) -> Result<super::Finished, super::CopyError> {
    let mut numbers: HashMap<String, (u64, bool)> = HashMap::new();
    let mut next = 0;
    let mut headed = false;
    let mut failed = None;
    let finished = read(history, |header, event| {
        let mut text = String::new();
        if !std::mem::replace(&mut headed, true) {
            let header = serde_json::to_string(header).unwrap_or_default();
            let _ = writeln!(text, ";; {header}");
        }
        operation_to_edn(event, keyed, &mut numbers, &mut next, &mut text);
        if failed.is_none() {
            failed = out.write_all(text.as_bytes()).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if !headed {
        let header = serde_json::to_string(&finished.header).unwrap_or_default();
        writeln!(out, ";; {header}")?;
    }
    out.flush()?;
    Ok(finished)
}

fn operation_to_edn(
    event: &Event<'_>,
    keyed: bool,
    numbers: &mut HashMap<String, (u64, bool)>,
    next: &mut u64,
    text: &mut String,
) {
    let process = event.process.as_ref();
    let open = numbers.get(process).is_some_and(|(_, open)| *open);
    let client = event.f.is_operation() && (event.kind == Kind::Invoke || open);
    let name = if client {
        let slot = numbers.entry(process.to_owned()).or_insert_with(|| {
            *next += 1;
            (*next - 1, false)
        });
        slot.1 = event.kind == Kind::Invoke;
        let number = slot.0;
        if event.kind == Kind::Info {
            numbers.remove(process);
        }
        number.to_string()
    } else {
        ":nemesis".to_owned()
    };
    let value = value_to_edn(event);
    let value = match event.lock.as_ref().filter(|_| !is_access(&event.f)).or(event.key.as_ref()) {
        Some(key) if keyed => format!("[{} {value}]", Json::from(key.as_ref())),
        _ => value,
    };
    let kind = if client { event.kind.name() } else { "info" };
    let _ = write!(
        text,
        "{{:index {}, :time {}, :process {name}, :type :{kind}, :f :{}, :value {value}, :fencepost ",
        event.index,
        event.time,
        event.f.name(),
    );
    json_to_edn(&serde_json::to_value(event).unwrap_or(Json::Null), text);
    text.push_str("}\n");
}

fn is_access(f: &Function) -> bool {
    matches!(f, Function::Read | Function::Write)
}

fn value_to_edn(event: &Event<'_>) -> String {
    let id = |id: Option<u64>| id.filter(|id| *id > 0).map_or("nil".to_owned(), |id| id.to_string());
    match (&event.f, event.value.token) {
        (Function::Read, _) if event.kind != Kind::Ok => "nil".to_owned(),
        (Function::Read | Function::Write, _) => id(event.value.write_id),
        (Function::Acquire, Some(token)) => {
            let owner = event.value.owner.as_ref().unwrap_or(&event.process);
            format!("{{:client {}, :fence {token}}}", Json::from(owner.as_ref()))
        }
        _ => "nil".to_owned(),
    }
}

/// What is told of a value that is still to be written.
enum Rest<'a> {
    Value(&'a Json),
    Text(&'a str),
    Key(&'a str),
}

/// Without recursion: a stack of what is still to be written.
fn json_to_edn(json: &Json, text: &mut String) {
    let mut rest = vec![Rest::Value(json)];
    while let Some(next) = rest.pop() {
        match next {
            Rest::Text(sign) => text.push_str(sign),
            Rest::Key(key) => {
                let _ = write!(text, ":{key} ");
            }
            Rest::Value(Json::Null) => text.push_str("nil"),
            Rest::Value(Json::Array(items)) => {
                text.push('[');
                rest.push(Rest::Text("]"));
                for item in items.iter().rev() {
                    rest.extend([Rest::Text(" "), Rest::Value(item)]);
                }
            }
            Rest::Value(Json::Object(fields)) => {
                text.push('{');
                rest.push(Rest::Text("}"));
                let fields: Vec<_> = fields.iter().collect();
                for (key, value) in fields.into_iter().rev() {
                    rest.extend([Rest::Text(" "), Rest::Value(value), Rest::Key(key)]);
                }
            }
            Rest::Value(plain) => {
                let _ = write!(text, "{plain}");
            }
        }
    }
}

/// Jepsen's operations as lines of ours.
struct Converter {
    keyed: bool,
    number: u64,
    time: u64,
    known: u64,
}

impl Converter {
    fn operation(&mut self, form: &Form, out: &mut String) -> Result<(), EdnError> {
        let number = self.number;
        self.number += 1;
        let wrong = |what| EdnError::Operation { number, what };
        let Form::Map(fields) = form else { return Err(wrong("is no map")) };
        let field = |name: &str| fields.iter().find(|(key, _)| *key == Form::Name(name.to_owned()));
        let field = |name: &str| field(name).map(|(_, value)| value);
        if let Some(whole) = field("fencepost") {
            self.known += 1;
            let _ = writeln!(out, "{}", to_json(whole));
            return Ok(());
        }
        let name = |form: Option<&Form>| match form {
            Some(Form::Name(name) | Form::Text(name)) => Some(name.clone()),
            _ => None,
        };
        let f = name(field("f")).ok_or_else(|| wrong("has no :f"))?;
        let kind = name(field("type")).ok_or_else(|| wrong("has no :type"))?;
        if !["invoke", "ok", "fail", "info"].contains(&kind.as_str()) {
            return Err(wrong("has another :type than :invoke, :ok, :fail or :info"));
        }
        let process = match field("process") {
            Some(Form::Int(number)) => format!("p{number}"),
            Some(Form::Name(name) | Form::Text(name)) => name.clone(),
            _ => return Err(wrong("has no :process")),
        };
        let client = matches!(field("process"), Some(Form::Int(_)));
        if let Some(Form::Int(time)) = field("time") {
            self.time = self.time.max(u64::try_from(*time).unwrap_or(0));
        } else {
            self.time = self.time.max(number * 1_000);
        }
        let (key, value) = match field("value") {
            Some(Form::Seq(pair)) if self.keyed && pair.len() == 2 => (Some(plain(&pair[0])), &pair[1]),
            Some(value) => (None, value),
            None => (None, &Form::Nil),
        };
        let mut line = Map::new();
        let mut put = |name: &str, value: Json| line.insert(name.to_owned(), value);
        put("index", number.into());
        put("time", self.time.into());
        put("process", process.into());
        let Some((f, value)) = known(&f, &kind, value).filter(|_| client) else {
            put("type", "info".into());
            put("f", format!("jepsen-{f}").into());
            let _ = writeln!(out, "{}", Json::Object(line));
            return Ok(());
        };
        self.known += 1;
        let access = matches!(f, "read" | "write");
        let key = key.unwrap_or_else(|| if access { "register" } else { "lock" }.to_owned());
        put("type", kind.into());
        put("f", f.into());
        put(if access { "key" } else { "lock" }, key.into());
        put("value", value);
        let _ = writeln!(out, "{}", Json::Object(line));
        Ok(())
    }
}

/// Our name for an operation, and its value.
fn known(f: &str, kind: &str, value: &Form) -> Option<(&'static str, Json)> {
    let ok = kind == "ok";
    Some(match f {
        "acquire" | "lock" => {
            let mut told = lock_value(value);
            if kind == "invoke" {
                // What Jepsen calls an acquire waits until it is granted, or gives up.
                told.insert("wait_ms".to_owned(), 1.into());
            }
            ("acquire", told.into())
        }
        "release" | "unlock" => {
            let mut told = lock_value(value);
            if ok {
                told.insert("released".to_owned(), true.into());
            }
            ("release", told.into())
        }
        "renew" => ("renew", lock_value(value).into()),
        "read" if ok && *value == Form::Nil => ("read", json!({ "position": 0 })),
        "read" if ok => ("read", json!({ "write_id": id(value) })),
        "read" => ("read", json!({})),
        "write" => ("write", json!({ "write_id": id(value) })),
        "cas" => match value {
            Form::Seq(pair) if pair.len() == 2 => {
                ("write", json!({ "write_id": id(&pair[1]), "replaced": id(&pair[0]) }))
            }
            _ => return None,
        },
        _ => return None,
    })
}

fn lock_value(value: &Form) -> Map<String, Json> {
    let mut told = Map::new();
    let Form::Map(fields) = value else { return told };
    for (key, value) in fields {
        let Form::Name(key) = key else { continue };
        let told_as = match (key.as_str(), value) {
            ("client" | "owner", value) => ("owner", plain(value).into()),
            ("fence" | "token", Form::Int(token)) => ("token", u64::try_from(*token).unwrap_or(0).into()),
            ("permits", Form::Int(permits)) => ("permits", u64::try_from(*permits).unwrap_or(1).into()),
            ("shared", Form::Bool(shared)) => ("shared", (*shared).into()),
            _ => continue,
        };
        told.insert(told_as.0.to_owned(), told_as.1);
    }
    told
}

/// The number that stands for a value; 0 for none.
fn id(value: &Form) -> u64 {
    match value {
        Form::Nil => 0,
        Form::Int(0) => ZERO,
        Form::Int(number) if (1..i128::from(ZERO)).contains(number) => *number as u64,
        other => {
            let mut hasher = WordHasher::default();
            plain(other).hash(&mut hasher);
            ZERO * 2 + hasher.finish() % ZERO
        }
    }
}

fn plain(form: &Form) -> String {
    match form {
        Form::Text(text) | Form::Name(text) => text.clone(),
        other => to_json(other).to_string(),
    }
}

/// A form as JSON. Depth is bounded by the parser.
fn to_json(form: &Form) -> Json {
    match form {
        Form::Nil => Json::Null,
        Form::Bool(bool) => (*bool).into(),
        Form::Int(number) => u64::try_from(*number)
            .map(Json::from)
            .or_else(|_| i64::try_from(*number).map(Json::from))
            .unwrap_or(Json::Null),
        Form::Float(number) => (*number).into(),
        Form::Text(text) | Form::Name(text) => text.clone().into(),
        Form::Seq(forms) => forms.iter().map(to_json).collect(),
        Form::Map(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (plain(key), to_json(value))).collect())
        }
    }
}

/// No operation nests deeper.
const DEPTH_MAX: usize = 64;

/// Reads form after form, with a stack of the open ones.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: &'static str) -> EdnError {
        let end = self.at.min(self.text.len());
        let line = 1 + self.text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        EdnError::Syntax { line, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b';' => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                b',' => self.at += 1,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    /// The next form of the outermost level; `None` at the end.
    fn next(&mut self) -> Result<Option<Form>, EdnError> {
        let mut open: Vec<(u8, Vec<Form>)> = Vec::new();
        loop {
            self.skip_blanks();
            let Some(byte) = self.peek() else {
                return if open.is_empty() { Ok(None) } else { Err(self.error("it ends inside a form")) };
            };
            let form = match byte {
                b'(' | b'[' | b'{' => {
                    self.at += 1;
                    let close = [b')', b']', b'}'][usize::from(byte > b'(') + usize::from(byte > b'[')];
                    open.push((close, Vec::new()));
                    if open.len() > DEPTH_MAX {
                        return Err(self.error("it is nested too deep"));
                    }
                    continue;
                }
                b')' | b']' | b'}' => {
                    let Some((close, forms)) = open.pop().filter(|(close, _)| *close == byte || *close == 0)
                    else {
                        return Err(self.error("a bracket closes what is not open"));
                    };
                    self.at += 1;
                    if close == b'}' { self.map(forms)? } else { Form::Seq(forms) }
                }
                b'#' => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'{') => {
                            self.at += 1;
                            open.push((0, Vec::new()));
                        }
                        Some(b'_') => return Err(self.error("a discarded form (#_) is not understood")),
                        // A tag says of which type the next form is; the form says enough.
                        _ => {
                            self.word();
                        }
                    }
                    continue;
                }
                _ => self.atom()?,
            };
            match open.last_mut() {
                Some((_, forms)) => forms.push(form),
                None => return Ok(Some(form)),
            }
        }
    }

    fn map(&self, forms: Vec<Form>) -> Result<Form, EdnError> {
        if !forms.len().is_multiple_of(2) {
            return Err(self.error("a map holds a key without a value"));
        }
        let mut fields = Vec::with_capacity(forms.len() / 2);
        let mut forms = forms.into_iter();
        while let (Some(key), Some(value)) = (forms.next(), forms.next()) {
            fields.push((key, value));
        }
        Ok(Form::Map(fields))
    }

    fn word(&mut self) -> String {
        let rest = &self.text.as_bytes()[self.at..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"()[]{},;\"".contains(byte);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let word = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length;
        word
    }

    fn atom(&mut self) -> Result<Form, EdnError> {
        if self.peek() == Some(b'"') {
            return self.string();
        }
        let word = self.word();
        if let Some(keyword) = word.strip_prefix(':') {
            return Ok(Form::Name(keyword.to_owned()));
        }
        Ok(match word.as_str() {
            "" => return Err(self.error("a sign that stands for nothing")),
            "nil" => Form::Nil,
            "true" => Form::Bool(true),
            "false" => Form::Bool(false),
            word => {
                if let Ok(number) = word.trim_end_matches('N').parse::<i128>() {
                    Form::Int(number)
                } else if let Ok(number) = word.trim_end_matches('M').parse::<f64>() {
                    Form::Float(number)
                } else {
                    Form::Name(word.to_owned())
                }
            }
        })
    }

    fn string(&mut self) -> Result<Form, EdnError> {
        let begin = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => {
                    // The escapes are those of JSON; a line break may stand for itself.
                    let text = self.text.get(begin..self.at).unwrap_or("").replace('\n', "\\n");
                    let text = serde_json::from_str(&text.replace('\t', "\\t").replace('\r', "\\r"));
                    return text.map(Form::Text).map_err(|_| self.error("a string with an unknown escape"));
                }
                _ => {}
            }
        }
        Err(self.error("a string without an end"))
    }
}

impl From<EdnError> for ReadError {
    fn from(error: EdnError) -> Self {
        Self::Edn(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check::Checker, readers::check_with, registry::Choice, search::Budget, verdict::Verdict};

    fn judged(text: &str, model: &str, keyed: bool) -> Verdict {
        let lines = from_edn(text, keyed).expect("EDN");
        let choice: Choice = model.parse().expect("a choice");
        let new = |header| Checker::new(header).with_model(&choice, Budget::default()).expect("a model");
        check_with(lines.as_bytes(), None, new).expect("a history").verdict
    }

    fn answer(text: &str, model: &str, keyed: bool) -> crate::verdict::Valid {
        judged(text, model, keyed).analyses["linearizable"]
    }

    use crate::verdict::Valid;

    #[test]
    fn a_mutex_of_jepsen_is_judged() {
        let text = r#"
{:type :invoke, :f :acquire, :value nil, :process 0, :time 10, :index 0}
{:type :ok, :f :acquire, :value nil, :process 0, :time 20, :index 1}
#jepsen.history.Op{:index 2 :time 21 :type :info :process :nemesis :f :start-partition, :value [:isolated {"n1" #{"n2"}}]}
{:type :invoke, :f :acquire, :process 1, :time 30}
{:type :ok, :f :acquire, :process 1, :time 40} ; too early
{:type :invoke, :f :release, :process 0, :time 50}
{:type :ok, :f :release, :process 0, :time 60}
"#;
        assert_eq!(answer(text, "mutex", false), Valid::False);
        let vector = format!("[{text}]");
        assert_eq!(answer(&vector, "mutex", false), Valid::False);
        let healthy: Vec<&str> = text.lines().filter(|line| !line.contains(":process 1")).collect();
        assert_eq!(answer(&healthy.join("\n"), "mutex", false), Valid::True);
        assert!(is_edn(text.as_bytes()) && !is_edn(b"{\"fencepost\":1}"));
    }

    #[test]
    fn values_that_are_written_twice_are_searched_for() {
        let ops = |read: &str| {
            format!(
                r#"
{{:type :invoke, :f :write, :value [:x 1], :process 0, :time 10}}
{{:type :ok, :f :write, :value [:x 1], :process 0, :time 20}}
{{:type :invoke, :f :cas, :value [:x [1 0]], :process 0, :time 30}}
{{:type :ok, :f :cas, :value [:x [1 0]], :process 0, :time 40}}
{{:type :invoke, :f :write, :value [:x 1], :process 0, :time 50}}
{{:type :ok, :f :write, :value [:x 1], :process 0, :time 60}}
{{:type :invoke, :f :read, :value [:y nil], :process 1, :time 70}}
{{:type :ok, :f :read, :value [:y nil], :process 1, :time 80}}
{{:type :invoke, :f :read, :value [:x nil], :process 1, :time 90}}
{{:type :ok, :f :read, :value [:x {read}], :process 1, :time 95}}"#
            )
        };
        for model in ["register", "cas-register", "kv"] {
            assert_eq!(answer(&ops("1"), model, true), Valid::True, "{model}");
            assert_eq!(answer(&ops("0"), model, true), Valid::False, "{model}");
        }
    }

    #[test]
    fn what_is_no_edn_is_refused_with_its_line() {
        let error = |text: &str| from_edn(text, false).expect_err("refused").to_string();
        assert!(error("{:type :ok\n").contains("ends inside a form"));
        assert!(error("{:type :ok]\n").contains("line 1"));
        assert!(error("{:type}").contains("key without a value"));
        assert!(error("[1 2]").contains("operation 0 is no map"));
        assert!(error("{:type :ok :f :txn :process 1 :value nil}").contains("no operation of a lock"));
        assert!(error(&"[".repeat(100_000)).contains("nested too deep"));
    }

    #[test]
    fn ours_is_read_back_as_it_was() {
        let history = "{\"fencepost\":1,\"rho\":0.5}\n\
            {\"index\":0,\"time\":1,\"process\":\"c1\",\"type\":\"invoke\",\"f\":\"acquire\",\"lock\":\"l \\\"1\\\"\",\"attempt\":18446744073709551615,\"value\":{\"targets\":[\"a\",\"b\"]}}\n\
            {\"index\":1,\"time\":5,\"process\":\"c1\",\"type\":\"info\",\"f\":\"acquire\",\"value\":{}}\n";
        let mut edn = Vec::new();
        to_edn(history.as_bytes(), true, &mut edn).expect("written");
        let edn = String::from_utf8(edn).expect("text");
        assert!(edn.contains(":process 0, :type :info, :f :acquire"), "{edn}");
        let back = from_edn(&edn, false).expect("EDN");
        let events = |text: &str| {
            let mut all = Vec::new();
            read(text.as_bytes(), |header, event| {
                all.push((header.clone(), event.clone().into_owned()));
            })
            .expect("a history");
            all
        };
        assert_eq!(events(&back), events(history));
    }
}
