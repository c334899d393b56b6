//! Histories judged by a model, from outside: ours and Jepsen's, within budgets, and back.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use assert_cmd::Command;
use serde_json::Value;

fn fencepost(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fencepost").expect("the command is built");
    command.args(arguments).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn stdout_of(command: &mut Command, code: i32) -> String {
    text(&command.assert().code(code).get_output().stdout)
}

fn stderr_of(command: &mut Command, code: i32) -> String {
    text(&command.assert().code(code).get_output().stderr)
}

fn verdict_of(arguments: &[&str], history: &str, code: i32) -> Value {
    let mut command = fencepost(&["check", "-", "--json"]);
    command.args(arguments).write_stdin(history);
    serde_json::from_str(&stdout_of(&mut command, code)).expect("JSON and nothing else")
}

fn labelled() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("checker/testdata/models");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("it").path()).collect();
    files.sort();
    files
}

/// What a labelled history says of itself.
fn label(history: &str) -> (String, bool) {
    let header: Value = serde_json::from_str(history.lines().next().expect("a header")).expect("JSON");
    let broken = !header["findings"]["non-linearizable"].is_null();
    (header["model"].as_str().expect("a model").to_owned(), broken)
}

fn finding(verdict: &Value) -> Option<&Value> {
    let anomalies = verdict["anomalies"].as_array().expect("a list");
    anomalies.iter().find(|anomaly| anomaly["id"] == "non-linearizable")
}

#[test]
fn models_are_listed_with_their_options() {
    let json = stdout_of(&mut fencepost(&["list", "models", "--json"]), 0);
    let items: Vec<Value> = serde_json::from_str(&json).expect("JSON");
    let names: Vec<&str> = items.iter().map(|item| item["name"].as_str().expect("a name")).collect();
    for name in [
        "mutex",
        "unowned-mutex",
        "lease-mutex",
        "fenced-mutex",
        "reentrant-mutex",
        "reentrant-fenced-mutex",
        "semaphore",
        "read-write-lock",
        "fifo-lock",
        "register",
        "cas-register",
        "fenced-register",
        "multi-register",
        "kv",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert!(stdout_of(&mut fencepost(&["list", "models"]), 0).contains("?permits="));
}

#[test]
fn every_labelled_history_is_judged_the_same_as_it_is_and_as_edn() {
    for path in labelled() {
        let history = fs::read_to_string(&path).expect("a history");
        let (model, broken) = label(&history);
        let code = i32::from(broken);
        let verdict = verdict_of(&["--model", &model], &history, code);
        assert_eq!(finding(&verdict).is_some(), broken, "{}", path.display());
        let edn =
            stdout_of(&mut fencepost(&["check", &path.display().to_string(), "--to", "edn", "--keyed"]), 0);
        assert!(edn.lines().skip(1).all(|line| line.starts_with("{:index ")), "{edn}");
        assert_eq!(verdict_of(&["--model", &model], &edn, code), verdict, "{}", path.display());
    }
}

#[test]
fn the_witness_of_a_finding_is_a_history_with_that_finding() {
    for path in labelled() {
        let history = fs::read_to_string(&path).expect("a history");
        let (model, broken) = label(&history);
        if !broken {
            continue;
        }
        let verdict = verdict_of(&["--model", &model], &history, 1);
        let found = finding(&verdict).expect("a finding");
        let wanted: Vec<u64> = serde_json::from_value(found["witness"].clone()).expect("numbers");
        let mut witness = history.lines().next().expect("a header").to_owned();
        for line in history.lines().skip(1) {
            let event: Value = serde_json::from_str(line).expect("JSON");
            if wanted.contains(&event["index"].as_u64().expect("a number")) {
                witness.push('\n');
                witness.push_str(line);
            }
        }
        let again = verdict_of(&["--model", &model], &witness, 1);
        assert_eq!(finding(&again).expect("the same")["text"], found["text"], "{}", path.display());
    }
}

const JEPSEN: &str = "
{:type :invoke, :f :acquire, :value nil, :process 0, :time 1000000, :index 0}
{:type :ok, :f :acquire, :value nil, :process 0, :time 2000000, :index 1}
{:type :invoke, :f :acquire, :value nil, :process 1, :time 3000000, :index 2}
{:type :info, :f :start-partition, :value nil, :process :nemesis, :time 3500000, :index 3}
{:type :ok, :f :acquire, :value nil, :process 1, :time 4000000, :index 4}
{:type :invoke, :f :release, :value nil, :process 0, :time 5000000, :index 5}
{:type :ok, :f :release, :value nil, :process 0, :time 6000000, :index 6}
";

#[test]
fn a_history_of_jepsen_is_judged_by_key() {
    let verdict = verdict_of(&["--model", "mutex"], JEPSEN, 1);
    let said = finding(&verdict).expect("two holders")["text"].as_str().expect("text").to_owned();
    assert!(said.contains("p1's acquire") && said.contains("held by attempt"), "{said}");
    // On two locks it is no double grant.
    let keyed: String = JEPSEN
        .lines()
        .map(|line| {
            let key = if line.contains(":process 1") { "b" } else { "a" };
            line.replace(":value nil", &format!(":value [:{key} nil]")) + "\n"
        })
        .collect();
    assert!(finding(&verdict_of(&["--model", "mutex", "--keyed"], &keyed, 0)).is_none());
}

#[test]
fn wrong_usage_is_64_and_broken_edn_65() {
    let said = stderr_of(fencepost(&["check", "-", "--model", "mutx"]).write_stdin(JEPSEN), 64);
    assert!(said.contains("did you mean 'mutex'?"), "{said}");
    let said =
        stderr_of(fencepost(&["check", "-", "--model", "semaphore?permits=0"]).write_stdin(JEPSEN), 64);
    assert!(said.contains("a number from 1"), "{said}");
    let said = stderr_of(fencepost(&["check", "-"]).write_stdin("{:type :ok"), 65);
    assert!(said.contains("standard input: line 1 is not EDN"), "{said}");
}

/// Many writes at once, of which one value is written twice, and a read of what nobody wrote.
fn hard() -> String {
    let mut history = String::new();
    for (process, kind) in (0..40).flat_map(|process| [(process, "invoke")]).chain((0..40).map(|p| (p, "ok")))
    {
        let time = if kind == "invoke" { 1_000 } else { 9_000 };
        let value = process % 39 + 1;
        history.push_str(&format!(
            "{{:type :{kind}, :f :write, :value {value}, :process {process}, :time {time}}}\n"
        ));
    }
    history.push_str("{:type :invoke, :f :read, :value nil, :process 0, :time 10000}\n");
    history.push_str("{:type :ok, :f :read, :value 77, :process 0, :time 11000}\n");
    history
}

#[test]
fn a_search_keeps_to_its_budget_and_says_where_it_was() {
    for limit in [["--budget", "50000"], ["--memory", "1"], ["--limit", "200ms"]] {
        let begun = Instant::now();
        let mut arguments = vec!["--model", "register"];
        arguments.extend(limit);
        let verdict = verdict_of(&arguments, &hard(), 2);
        assert_eq!(verdict["valid"], "unknown");
        let reason = verdict["unknown_because"][0].as_str().expect("a reason").to_owned();
        for part in ["key \"register\"", "gave up between", "operations open", "configurations"] {
            assert!(reason.contains(part), "{reason}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{limit:?}: {:?}", begun.elapsed());
    }
}

fn ended_within(child: &mut Child, time: Duration) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    None
}

#[test]
fn ctrl_c_during_a_search_is_unknown_and_no_hang() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hard.edn");
    fs::write(&file, hard()).expect("written");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("fencepost"))
        .args(["check", &file.display().to_string(), "--model", "register", "--memory", "100000"])
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    std::thread::sleep(Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signalled");
    assert_eq!(ended_within(&mut child, Duration::from_secs(10)), Some(2));
}
