//! Does everything run that is listed? Every lock, workload, fence, fault and resource, with every value of every
//! option.

use serde_json::Value;

use crate::support::{Test, run};

fn listed(kind: &str) -> Vec<Value> {
    let ended = run(&["list", kind, "--json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The names of a registry, plain and with each value of each option.
fn choices(kind: &str) -> Vec<String> {
    let mut choices = Vec::new();
    for item in listed(kind) {
        let name = item["name"].as_str().unwrap();
        assert!(!item["summary"].as_str().unwrap().is_empty(), "{name} has no summary");
        choices.push(name.to_owned());
        for option in item["options"].as_array().unwrap() {
            let values = option["values"].as_array().unwrap().iter().chain([&option["default"]]);
            let option = option["name"].as_str().unwrap();
            choices.extend(values.map(|value| format!("{name}?{option}={}", value.as_str().unwrap())));
        }
    }
    choices.dedup();
    choices
}

/// Runs for a moment; whatever the verdict, clients must have worked.
fn works(words: &[&str]) {
    let pace =
        ["--time", "700ms", "--ttl", "300ms", "--hold", "2ms..5ms", "--retry", "5ms", "--clients", "3"];
    let test = Test::run(&[words, &pace].concat());
    assert!(matches!(test.code, 0..=3), "{words:?}: {}", test.stderr);
    assert!(test.count("acquires_ok") >= 2, "{words:?}: {}", test.stderr);
}

#[test]
fn every_lock() {
    for lock in choices("locks") {
        // The one option that needs another one.
        let lock = lock.replace("owner=token", "owner=token&token=before");
        works(&["--lock", &lock]);
    }
}

#[test]
fn every_workload_by_worker_and_by_runner() {
    for workload in choices("workloads") {
        for drive in ["free", "stepwise"] {
            works(&["--workload", &workload, "--drive", drive]);
        }
    }
}

#[test]
fn every_fence_and_resource() {
    for fence in choices("fences") {
        works(&["--fence", &fence]);
    }
    for resource in choices("resources") {
        works(&["--resource", &resource, "--fence", "token"]);
    }
}

#[test]
fn every_fault() {
    for nemesis in choices("nemeses") {
        // Defaults written as options: `at=write` is there in this workload, and `gap`, `for` and the rest parse.
        works(&["--lock", "redis", "--nemesis", &nemesis]);
    }
}

#[test]
fn several_actors_keys_and_faults_at_once() {
    for drive in ["free", "stepwise"] {
        let words =
            ["--lock", "redis", "--actors", "3", "--keys", "4", "--nemesis", "pause-holder?share=0.1"];
        let more = ["--nemesis", "kill-holder?share=0.05", "--nemesis", "kill-server", "--fence", "token"];
        let pace = ["--ttl", "300ms", "--time", "4s", "--drive", drive];
        let test = Test::run(&[&words[..], &more, &pace].concat());
        assert!(test.count("acquires_ok") > 50, "{drive}: {}", test.stderr);
        assert!(test.count("faults") >= 3, "{drive}: {}", test.stderr);
        let locks =
            test.verdict["anomalies"].as_array().unwrap().iter().filter_map(|found| found["lock"].as_str());
        assert!(locks.clone().all(|lock| lock.starts_with("counter-")), "{:?}", locks.collect::<Vec<_>>());
    }
}

#[test]
fn a_waiting_acquire_waits() {
    let words = ["--lock", "sqlite", "--workload", "mutex", "--wait", "5s", "--hold", "30ms", "--time", "2s"];
    let test = Test::run(&words);
    assert_eq!(test.code, 0, "{}", test.stderr);
    assert_eq!(
        test.count("acquires_busy"),
        0,
        "polling is unfair, but not for five seconds: {}",
        test.stderr
    );
}

#[test]
fn a_run_ends_at_the_first_violation_if_asked() {
    let begin = std::time::Instant::now();
    let test = Test::run(&["--lock", "none", "--workload", "mutex", "--time", "30s", "--stop-on-violation"]);
    assert_eq!(test.code, 1, "{}", test.stderr);
    assert!(begin.elapsed().as_secs() < 10, "it went on for {:?}", begin.elapsed());
    let begin = std::time::Instant::now();
    let hazard = ["--workload", "mutex", "--nemesis", "pause-holder", "--ttl", "300ms", "--time", "3s"];
    let test = Test::run(&[&hazard[..], &["--stop-on-violation"]].concat());
    assert!(test.found("belief-overlap") > 0, "{}", test.stderr);
    assert!(begin.elapsed().as_secs() >= 3, "a hazard is no violation: it ended after {:?}", begin.elapsed());
}

#[test]
fn expectations_decide_on_the_exit_code() {
    let broken = ["--lock", "none", "--workload", "mutex", "--time", "1s"];
    let code = |more: &[&str]| Test::run(&[&broken[..], more].concat()).code;
    assert_eq!(code(&[]), 1);
    assert_eq!(code(&["--allow", "double-grant"]), 0);
    assert_eq!(code(&["--allow", "*"]), 0);
    assert_eq!(code(&["--require", "double-grant"]), 0);
    assert_eq!(code(&["--require", "stale-write", "--allow", "*"]), 3);
    assert_eq!(code(&["--require", "stale-write"]), 1, "a forbidden finding outweighs a missing one");
    let vacuous = Test::run(&["--lock", "sqlite", "--clients", "1", "--time", "1s"]);
    assert_eq!(vacuous.code, 2, "one client meets no rival: {}", vacuous.stderr);
    let hazard =
        ["--nemesis", "pause-holder?share=1", "--workload", "mutex", "--ttl", "300ms", "--time", "2s"];
    let hazard = |more: &[&str]| Test::run(&[&hazard[..], more].concat()).code;
    assert_eq!(hazard(&[]), 0, "a hazard is allowed unless it is forbidden");
    assert_eq!(hazard(&["--forbid", "belief-overlap"]), 1);
}

#[test]
fn a_dry_run_starts_nothing() {
    let store = tempfile::tempdir().unwrap();
    let words = [
        "run",
        "--lock",
        "redis",
        "--nemesis",
        "kill-server",
        "--dry-run",
        "--store",
        store.path().to_str().unwrap(),
    ];
    let ended = run(&words);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("kill-server: kill 1 lock server"), "{}", ended.stdout);
    assert_eq!(std::fs::read_dir(store.path()).unwrap().count(), 0);
}
