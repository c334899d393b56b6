//! Is anything left behind? However a run ends: no process, no mount, no temporary file; and what it recorded
//! can still be judged.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::support::{Ended, fencepost, only_run, run};

/// A run marked by an environment variable that all its processes inherit.
struct Marked {
    child: Child,
    mark: String,
    temporary: tempfile::TempDir,
    store: tempfile::TempDir,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Marked {
    fn start(words: &[&str]) -> Self {
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (temporary, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = fencepost();
        command.args(words).arg("--store").arg(store.path());
        command.env("FENCEPOST_TEST_MARK", &mark).env("TMPDIR", temporary.path());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child, mark, temporary, store }
    }

    fn signal(&self, signal: &str) {
        let status = std::process::Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end, then sees that nothing is left.
    fn end(self) -> (Ended, tempfile::TempDir) {
        let ended: Ended = self.child.wait_with_output().unwrap().into();
        let deadline = Instant::now() + Duration::from_secs(3);
        loop {
            let left = marked_processes(&self.mark);
            let files: Vec<_> =
                fs::read_dir(self.temporary.path()).unwrap().flatten().map(|e| e.path()).collect();
            if left.is_empty() && files.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?} {files:?}; {ended:?}");
            sleep(Duration::from_millis(10));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains("fencepost"), "{mounts}");
        (ended, self.store)
    }
}

fn marked_processes(mark: &str) -> Vec<String> {
    let wanted = format!("FENCEPOST_TEST_MARK={mark}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let marked = processes.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    });
    marked.map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default()).collect()
}

/// A healthy lock without data to be harmed: whatever its record says, it says of no violation.
const BUSY: &[&str] = &["run", "--lock", "redis?aof=always", "--workload", "mutex", "--time", "20s"];
const FAULTS: &[&str] = &["--nemesis", "pause-holder", "--nemesis", "kill-server"];

fn busy(isolation: &'static str) -> Vec<&'static str> {
    [BUSY, FAULTS, &["--isolation", isolation]].concat()
}

/// Moments spread over start, work and faults, different in every run of the tests.
fn random_moments(count: u32) -> impl Iterator<Item = Duration> {
    let noise = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    (0..count).map(move |n| Duration::from_millis(u64::from((noise / 1000 + n * 377) % 1500)))
}

/// What a killed run recorded is a history; nothing in it is a violation of a healthy lock.
fn still_checks(store: &Path) {
    if !store.join("latest").exists() {
        return;
    }
    let history = only_run(store).join("history.jsonl");
    if fs::metadata(&history).is_ok_and(|file| file.len() > 0) {
        let ended = run(&["check", history.to_str().unwrap()]);
        assert!(matches!(ended.code, 0 | 2), "{ended:?}");
    }
}

#[test]
fn after_success() {
    for isolation in ["auto", "reaper"] {
        let (ended, _) =
            Marked::start(&["run", "--time", "1s", "--allow", "*", "--isolation", isolation]).end();
        assert!(matches!(ended.code, 0 | 2), "{ended:?}");
    }
}

#[test]
fn after_failure() {
    for isolation in ["auto", "reaper"] {
        let words =
            ["run", "--lock", "none", "--workload", "mutex", "--time", "1s", "--isolation", isolation];
        let (ended, _) = Marked::start(&words).end();
        assert_eq!(ended.code, 1, "{ended:?}");
    }
}

#[test]
fn after_kill_9_at_random_moments() {
    for isolation in ["auto", "reaper"] {
        for moment in random_moments(6) {
            let marked = Marked::start(&busy(isolation));
            sleep(moment);
            marked.signal("-KILL");
            let (_, store) = marked.end();
            still_checks(store.path());
        }
    }
}

#[test]
fn after_ctrl_c_and_termination_at_random_moments() {
    for isolation in ["auto", "reaper"] {
        for (moment, signal) in random_moments(6).zip(["-INT", "-TERM", "-HUP"].into_iter().cycle()) {
            let marked = Marked::start(&busy(isolation));
            sleep(moment + Duration::from_millis(100));
            marked.signal(signal);
            let (ended, store) = marked.end();
            assert_eq!(ended.code, 130, "{signal} after {moment:?}: {ended:?}");
            assert!(ended.stderr.contains("faults are healed"), "{ended:?}");
            still_checks(store.path());
        }
    }
}

#[test]
fn after_the_runner_alone_is_killed() {
    let marked = Marked::start(&busy("auto"));
    sleep(Duration::from_millis(900));
    let inner =
        std::process::Command::new("pgrep").args(["-P", &marked.child.id().to_string()]).output().unwrap();
    let init: String = String::from_utf8(inner.stdout).unwrap().trim().to_owned();
    let runner = std::process::Command::new("pgrep").args(["-P", &init]).output().unwrap();
    let runner = String::from_utf8(runner.stdout).unwrap().lines().next().unwrap().to_owned();
    assert!(std::process::Command::new("kill").args(["-KILL", &runner]).status().unwrap().success());
    let (ended, store) = marked.end();
    assert_eq!(ended.code, 70, "{ended:?}");
    assert!(ended.stderr.contains("killed by signal 9"), "{ended:?}");
    still_checks(store.path());
}

#[test]
fn after_a_demo_was_interrupted() {
    let marked = Marked::start(&["demo", "--lock", "redis"]);
    sleep(Duration::from_millis(700));
    marked.signal("-INT");
    let (ended, _) = marked.end();
    assert_eq!(ended.code, 130, "{ended:?}");
}

#[test]
fn after_a_panic_at_random_moments() {
    for isolation in ["auto", "reaper"] {
        for moment in random_moments(3) {
            let after = format!("{}ms", moment.as_millis());
            let words = [&busy(isolation)[..], &["--panic-after", &after]].concat();
            let (ended, store) = Marked::start(&words).end();
            assert_eq!(ended.code, 70, "after {after}: {ended:?}");
            assert!(ended.stderr.contains("internal error"), "{ended:?}");
            still_checks(store.path());
        }
    }
}

/// A killed run stops between any two lines: no such stump of a healthy run may look like a violation, although
/// one client's release may be missing where another one's next grant is there.
#[test]
fn every_stump_of_a_healthy_history_is_healthy() {
    const STUMPS: usize = 60;
    let store = tempfile::tempdir().unwrap();
    let words =
        ["run", "--lock", "redis", "--workload", "mutex", "--hold", "0", "--think", "0", "--retry", "0"];
    let whole: Ended = fencepost()
        .args(words)
        .args(["--clients", "4", "--time", "400ms", "--store"])
        .arg(store.path())
        .output()
        .unwrap()
        .into();
    assert_eq!(whole.code, 0, "{whole:?}");
    let history = fs::read_to_string(only_run(store.path()).join("history.jsonl")).unwrap();
    let lines: Vec<_> = history.split_inclusive('\n').collect();
    let stump = store.path().join("stump.jsonl");
    for number in 1..=STUMPS {
        let length = 20 + number * lines.len().min(6000) / (STUMPS + 1);
        fs::write(&stump, lines[..length].concat()).unwrap();
        let ended = run(&["check", stump.to_str().unwrap()]);
        assert_eq!(ended.code, 0, "the first {length} lines: {ended:?}");
    }
}
