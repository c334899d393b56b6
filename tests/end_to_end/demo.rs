//! Is the demo the story that the README tells?

use crate::support::{Ended, fencepost, only_run};

fn demo(words: &[&str]) -> (Ended, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    let ended: Ended =
        fencepost().arg("demo").args(words).arg("--store").arg(store.path()).output().unwrap().into();
    (ended, store)
}

fn count(text: &str, word: &str) -> usize {
    text.matches(word).count()
}

fn tells_the_story(words: &[&str]) {
    let (ended, store) = demo(words);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(count(&ended.stdout, "ACCEPTED"), 3, "{}", ended.stdout);
    assert_eq!(count(&ended.stdout, "REJECTED"), 1, "{}", ended.stdout);
    assert_eq!(count(&ended.stdout, "released:false"), 2, "{}", ended.stdout);
    assert!(ended.stdout.contains("the stale report of c1 stands at the end"), "{}", ended.stdout);
    assert!(ended.stdout.contains("the report of c2 stands at the end"), "{}", ended.stdout);
    let run = only_run(store.path());
    for file in ["history.jsonl", "test.json", "verdict.json", "timeline.svg"] {
        assert!(run.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_stopped_holder_on_sqlite() {
    tells_the_story(&[]);
}

#[test]
fn a_stopped_holder_on_redis() {
    tells_the_story(&["--lock", "redis"]);
}

#[test]
fn a_pause_shorter_than_the_lease_harms_nobody() {
    let (ended, _store) = demo(&["--pause", "800ms"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(count(&ended.stdout, "ACCEPTED"), 4, "{}", ended.stdout);
    assert_eq!(count(&ended.stdout, "nothing is lost"), 2, "{}", ended.stdout);
}

#[test]
fn by_step_it_waits_for_enter() {
    use std::{io::Write as _, process::Stdio};
    let store = tempfile::tempdir().unwrap();
    let mut command = fencepost();
    command.args(["demo", "--step", "--store"]).arg(store.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it must wait for Enter");
    child.stdin.take().unwrap().write_all(&[b'\n'; 6]).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(count(&ended.stdout, "Enter:"), 6, "{}", ended.stdout);
    assert_eq!(count(&ended.stdout, "REJECTED"), 1, "{}", ended.stdout);
}
