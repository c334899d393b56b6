//! Is the same test run again?

use serde_json::Value;

use crate::support::{Ended, fencepost, only_run, run};

fn plan(store: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(only_run(store).join("test.json")).unwrap()).unwrap()
}

#[test]
fn a_run_is_run_again_with_its_plan_and_seed() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words = [
        "run",
        "--workload",
        "mutex",
        "--nemesis",
        "pause-holder?share=0.3",
        "--ttl",
        "300ms",
        "--time",
        "2s",
    ];
    let ended: Ended = fencepost().args(words).arg("--store").arg(first.path()).output().unwrap().into();
    assert_eq!(ended.code, 0, "{ended:?}");
    let directory = only_run(first.path());
    let mut replay = fencepost();
    replay.arg("replay").arg(&directory).arg("--store").arg(second.path());
    let ended: Ended = replay.output().unwrap().into();
    assert_eq!(ended.code, 0, "{ended:?}");
    let (recorded, again) = (plan(first.path()), plan(second.path()));
    for setting in
        ["seed", "lock", "workload", "nemeses", "fence", "clients", "ttl_ms", "time_ms", "hold", "command"]
    {
        assert_eq!(recorded[setting], again[setting], "{setting}");
    }
    assert_ne!(only_run(second.path()), directory);
}

#[test]
fn what_cannot_be_run_again() {
    let missing = run(&["replay", "/nowhere"]);
    assert_eq!(missing.code, 64, "{missing:?}");
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("history.jsonl"), "{\"fencepost\":1}\n").unwrap();
    let ended = run(&["replay", empty.path().to_str().unwrap()]);
    assert_eq!(ended.code, 64, "{ended:?}");
    assert!(ended.stderr.contains("no test.json"), "{}", ended.stderr);
}
