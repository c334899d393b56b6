//! The built command, from outside: what it prints, and the codes with which it ends.

use std::{fs, path::Path};

use assert_cmd::Command;

fn fencepost(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fencepost").expect("the command is built");
    command.args(arguments).env("NO_COLOR", "1");
    command
}

fn stdout_of(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().stdout.clone();
    String::from_utf8(output).expect("text")
}

fn stderr_of(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().stderr.clone();
    String::from_utf8(output).expect("text")
}

const QUIET: &str = "{\"fencepost\":1}\n";

#[test]
fn help_and_version_are_no_errors_and_wrong_usage_is_64() {
    assert!(stdout_of(&mut fencepost(&["--help"]), 0).contains("Exit codes:"));
    assert!(stdout_of(&mut fencepost(&["--version"]), 0).starts_with("fencepost "));
    for command in ["check", "list", "doctor"] {
        assert!(stdout_of(&mut fencepost(&[command, "--help"]), 0).contains("Examples:"), "{command}");
    }
    for wrong in [&[][..], &["chekc"], &["check"], &["check", "--jsno", "x"], &["list", "lokcs"]] {
        let said = stderr_of(&mut fencepost(wrong), 64);
        assert!(said.contains("--help") || said.contains("Usage:"), "{wrong:?}: {said}");
    }
}

#[test]
fn a_history_is_checked_from_file_and_standard_input() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("history.jsonl");
    fs::write(&file, QUIET).expect("written");
    let path = file.to_str().expect("a name");
    assert!(stdout_of(&mut fencepost(&["check", path]), 0).starts_with("Valid: "));
    assert!(stdout_of(fencepost(&["check", "-"]).write_stdin(QUIET), 0).starts_with("Valid: "));
    let json = stdout_of(&mut fencepost(&["check", path, "--json"]), 0);
    let verdict: serde_json::Value = serde_json::from_str(&json).expect("JSON and nothing else");
    assert_eq!(verdict["valid"], true);
}

#[test]
fn what_is_not_there_is_64_and_what_is_broken_65() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("a name").to_owned();
    let said = stderr_of(&mut fencepost(&["check", &path("gone")]), 64);
    assert!(said.starts_with("error: cannot read "), "{said}");
    let said = stderr_of(&mut fencepost(&["check", &path("")]), 64);
    assert!(said.contains("not a run directory"), "{said}");
    for (text, expected) in [
        ("", "the history is empty"),
        ("hello\n", "line 1 is not a header"),
        ("{\"fencepost\":99}\n", "version 99"),
        ("{\"fencepost\":1}\n{\n{\n", "line 2 is not an event"),
    ] {
        let said = stderr_of(fencepost(&["check", "-"]).write_stdin(text), 65);
        assert!(said.starts_with("error: standard input: ") && said.contains(expected), "{said}");
    }
}

#[test]
fn a_run_directory_is_judged_by_its_plan_and_only_ours_is_written_to() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("history.jsonl"), QUIET).expect("written");
    let path = dir.path().to_str().expect("a name");
    stdout_of(&mut fencepost(&["check", path]), 0);
    assert!(!dir.path().join("verdict.json").exists(), "a directory without a plan is none of ours");
    fs::write(dir.path().join("test.json"), "{").expect("written");
    let said = stderr_of(&mut fencepost(&["check", path]), 65);
    assert!(said.contains("test.json is not valid"), "{said}");
}

#[test]
fn what_there_is_can_be_listed() {
    assert!(stdout_of(&mut fencepost(&["list", "anomalies"]), 0).contains("stale-write"));
    for kind in ["locks", "resources", "fences", "workloads", "nemeses", "anomalies"] {
        let json = stdout_of(&mut fencepost(&["list", kind, "--json"]), 0);
        let items: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        for item in items {
            assert!(item["name"].is_string() && item["summary"].is_string() && item["options"].is_array());
        }
    }
}

#[test]
fn the_doctor_names_what_is_there() {
    assert!(stdout_of(&mut fencepost(&["doctor"]), 0).contains("sqlite"));
    let json = stdout_of(&mut fencepost(&["doctor", "--json"]), 0);
    let findings: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    for finding in findings {
        let there = finding["there"].as_bool().expect("yes or no");
        assert!(there || finding["detail"].is_string(), "{finding}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let program = assert_cmd::cargo::cargo_bin("fencepost");
    let piped = format!("'{}' list anomalies --json; echo code $? >&2", program.display());
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("( {piped} ) | true")])
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("code 0") && !said.contains("panicked"), "{said}");
    assert!(Path::new(&program).is_file());
}
