//! Compares with other checkers of linearizability, on the same generated histories of locks: time, peak memory, and
//! whether they answer within a limit.
//!
//! `peers [LIMIT_S [OPERATIONS ...]]` prints a table, e.g. `peers 10 100 1000`. Each cell runs in a process of its own:
//! some of the others recurse once an operation, and fall over. The others get the operations parsed; for Fencepost
//! reading counts, too.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::File,
    io::{BufReader, BufWriter, Write},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use fencepost_checker::{
    check::Checker,
    history::{Function, Kind},
    readers,
    registry::Choice,
    search::Budget,
    verdict::Valid,
};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use todc_utils::{
    Action::{Call, Response},
    History, Specification, WGLChecker,
};

#[path = "../benches/generator/mod.rs"]
mod generator;

const TOOLS: [&str; 4] = ["fencepost", "fencepost mutex", "stateright", "todc-utils"];

/// On which lock, by which attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Op {
    Acquire(u64, u64),
    Release(u64, u64),
    /// Nobody knows whether it did.
    MayRelease(u64, u64),
}

/// Who holds which lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Locks(BTreeMap<u64, u64>);

impl Locks {
    fn apply(&mut self, op: Op) -> bool {
        match op {
            Op::Acquire(lock, attempt) => self.0.insert(lock, attempt).is_none(),
            Op::Release(lock, attempt) => self.0.remove(&lock) == Some(attempt),
            Op::MayRelease(lock, attempt) => {
                if self.0.get(&lock) == Some(&attempt) {
                    self.0.remove(&lock);
                }
                true
            }
        }
    }
}

impl SequentialSpec for Locks {
    type Op = Op;
    type Ret = bool;

    fn invoke(&mut self, op: &Op) -> bool {
        self.apply(*op)
    }
}

struct Mutexes;

impl Specification for Mutexes {
    type State = Locks;
    type Operation = Op;

    fn init() -> Locks {
        Locks::default()
    }

    fn apply(op: &Op, state: &Locks) -> (bool, Locks) {
        let mut next = state.clone();
        let allowed = next.apply(*op);
        (allowed, next)
    }
}

/// Calls and returns in time: when, whether it is a call, the operation's number, the operation; `None`: nobody knows
/// when it returned.
fn operations(path: &Path) -> Result<Vec<(u64, bool, usize, Op)>, readers::ReadError> {
    let mut open: BTreeMap<(String, u64), (u64, usize)> = BTreeMap::new();
    let (mut moments, mut count) = (Vec::new(), 0);
    let file = File::open(path).map_err(|source| readers::ReadError::Io { line: 0, source })?;
    readers::read(BufReader::new(file), |_, event| {
        let attempt = event.attempt.unwrap_or(0);
        let lock = event.lock.as_deref().and_then(|lock| lock[1..].parse().ok()).unwrap_or(0);
        let key = (event.f.name().to_owned(), attempt);
        if event.kind == Kind::Invoke {
            open.insert(key, (event.called_at(), count));
            count += 1;
        } else if let Some((start, number)) = open.remove(&key) {
            let op = match (&event.f, event.kind) {
                (Function::Acquire, _) => Op::Acquire(lock, attempt),
                (_, Kind::Ok) => Op::Release(lock, attempt),
                _ => Op::MayRelease(lock, attempt),
            };
            moments.push((start, true, number, op));
            let known = event.kind == Kind::Ok;
            moments.push((if known { event.returned_at() } else { u64::MAX }, false, number, op));
        }
    })?;
    moments.sort_by_key(|(at, call, ..)| (*at, !*call));
    Ok(moments)
}

/// Judges a history with one tool: valid or not, and the seconds that it took.
fn judge(tool: &str, path: &Path) -> Result<(bool, f64), Box<dyn Error>> {
    let timed = |begin: Instant, valid| (valid, begin.elapsed().as_secs_f64());
    if let Some(model) = tool.strip_prefix("fencepost") {
        let begin = Instant::now();
        let model: Option<Choice> = (!model.is_empty()).then(|| model.trim().parse()).transpose()?;
        let new = |header| match &model {
            Some(model) => Checker::new(header).with_model(model, Budget::default()).expect("a model"),
            None => Checker::new(header),
        };
        let file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let verdict = readers::check_with(file, None, new)?.verdict;
        return Ok(timed(begin, verdict.valid == Valid::True));
    }
    let moments = operations(path)?;
    let begin = Instant::now();
    if tool == "stateright" {
        let mut tester = LinearizabilityTester::new(Locks::default());
        for (at, call, number, op) in moments {
            let told = match (call, at) {
                (true, _) => tester.on_invoke(number, op).map(|_| ()),
                (false, u64::MAX) => Ok(()),
                (false, _) => tester.on_return(number, true).map(|_| ()),
            };
            told.map_err(|error| error.to_string())?;
        }
        return Ok(timed(begin, tester.is_consistent()));
    }
    let actions = moments
        .into_iter()
        .map(|(_, call, number, op)| (number, if call { Call(op) } else { Response(op) }))
        .collect();
    Ok(timed(begin, WGLChecker::<Mutexes>::is_linearizable(History::from_actions(actions))))
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// One cell, in a process of its own.
fn cell(tool: &str, path: &Path, valid: bool, limit: Duration) -> Result<String, Box<dyn Error>> {
    let begin = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .arg("one")
        .arg(tool)
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(format!("none in {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let output = child.wait_with_output()?.stdout;
    let output = String::from_utf8_lossy(&output).into_owned();
    match output.split_whitespace().collect::<Vec<_>>()[..] {
        [answer, seconds, mib] if status.success() => {
            let wrong = if (answer == "true") == valid { "" } else { " WRONG" };
            let (seconds, mib): (f64, f64) = (seconds.parse()?, mib.parse()?);
            Ok(format!("{seconds:.3} s, {mib:.0} MiB{wrong}"))
        }
        _ => Ok("crashes".to_owned()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, tool, path] = arguments.as_slice()
        && one == "one"
    {
        let (valid, seconds) = judge(tool, Path::new(path))?;
        println!("{valid} {seconds} {}", peak_mib());
        return Ok(());
    }
    let limit = Duration::from_secs(arguments.first().map_or(Ok(10), |limit| limit.parse())?);
    let mut sizes: Vec<u64> = arguments.iter().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![100, 1_000, 10_000];
    }
    let path = std::env::temp_dir().join(format!("fencepost-peers-{}.jsonl", std::process::id()));
    println!("| operations | locks | clients | unknown | double grant | {} |", TOOLS.join(" | "));
    println!("|{}", "---|".repeat(5 + TOOLS.len()));
    for operations in sizes {
        for (keys, clients, percent, double_grant) in [
            (1, 5, 0, false),
            (1, 20, 1, false),
            (1, 100, 5, false),
            (1, 100, 5, true),
            (100, 5, 0, false),
            (100, 20, 1, true),
            (100, 100, 5, false),
        ] {
            let indeterminate = f64::from(percent) / 100.0;
            let settings =
                generator::Settings { operations, clients, keys, indeterminate, double_grant, seed: 7 };
            let mut file = BufWriter::new(File::create(&path)?);
            generator::generate(&settings, &mut file)?;
            file.flush()?;
            let cells = TOOLS.map(|tool| cell(tool, &path, !double_grant, limit));
            let cells: Vec<String> = cells.into_iter().collect::<Result<_, _>>()?;
            let grant = if double_grant { "one" } else { "none" };
            println!("| {operations} | {keys} | {clients} | {percent} % | {grant} | {} |", cells.join(" | "));
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
