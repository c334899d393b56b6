//! Does every mistake meet a message that says what, why and what to do, and the documented exit code?

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::support::{Ended, fencepost, run};

/// Runs `fencepost run` with these words; it must end with this code and say all of these.
fn refused(words: &[&str], code: i32, says: &[&str]) {
    let store = tempfile::tempdir().unwrap();
    let ended: Ended =
        fencepost().arg("run").args(words).arg("--store").arg(store.path()).output().unwrap().into();
    assert_eq!(ended.code, code, "{words:?}: {ended:?}");
    for text in says {
        assert!(ended.stderr.contains(text), "{words:?}: '{text}' is not said: {}", ended.stderr);
    }
    let left: Vec<_> = fs::read_dir(store.path()).unwrap().flatten().collect();
    assert!(code != 64 || left.is_empty(), "a usage error leaves no run directory: {left:?}");
}

#[test]
fn unknown_names_are_met_with_the_nearest_known_one() {
    refused(&["--lock", "rediss"], 64, &["unknown lock 'rediss'", "did you mean 'redis'?"]);
    refused(&["--lock", "redis?relase=del"], 64, &["no option 'relase'", "did you mean 'release'?"]);
    refused(&["--lock", "redis?release=dell"], 64, &["cannot be 'dell'", "did you mean 'del'?"]);
    refused(&["--workload", "countr"], 64, &["unknown workload 'countr'", "did you mean 'counter'?"]);
    refused(&["--workload", "counter?check=heldd"], 64, &["did you mean 'held'?"]);
    refused(
        &["--nemesis", "pause-holdr"],
        64,
        &["unknown nemesis 'pause-holdr'", "did you mean 'pause-holder'?"],
    );
    refused(&["--fence", "tokn"], 64, &["unknown fence 'tokn'", "did you mean 'token'?"]);
    refused(&["--resource", "servce"], 64, &["unknown resource 'servce'", "did you mean 'service'?"]);
    refused(
        &["--forbid", "stale-writ"],
        64,
        &["unknown anomaly 'stale-writ'", "did you mean 'stale-write'?"],
    );
    refused(&["--loc", "redis"], 64, &["--lock"]);
}

#[test]
fn numbers_out_of_bounds() {
    refused(&["--ttl", "0"], 64, &["--ttl cannot be 0", "at least 1ms"]);
    refused(&["--ttl", "5"], 64, &["lacks its unit"]);
    refused(&["--clients", "0"], 64, &["--clients cannot be 0", "at least 1"]);
    refused(&["--actors", "0"], 64, &["--actors cannot be 0"]);
    refused(&["--keys", "0"], 64, &["--keys cannot be 0"]);
    refused(&["--time", "0"], 64, &["--time cannot be 0"]);
    refused(&["--hold", "60ms..20ms"], 64, &["ends before it begins"]);
    refused(&["--nemesis", "pause-holder?share=2"], 64, &["a share from 0 to 1"]);
    refused(&["--nemesis", "pause-holder?for=soon"], 64, &["a length of time"]);
}

#[test]
fn what_does_not_fit_together() {
    refused(&["--lock", "none", "--fence", "token"], 64, &["needs an ordered token", "use --fence owner"]);
    refused(&["--lock", "redis?token=none", "--fence", "token"], 64, &["needs an ordered token"]);
    refused(
        &["--workload", "daily-report", "--fence", "version"],
        64,
        &["needs a read", "--workload counter"],
    );
    refused(&["--lock", "sqlite", "--nemesis", "kill-server"], 64, &["no server process", "pause-holder"]);
    refused(
        &["--nemesis", "pause-holder?at=acquire.between"],
        64,
        &["no client of this run passes", "at=write"],
    );
    refused(&["--resource", "service?check=too-strict"], 64, &["--fence token"]);
    refused(&["--lock", "redis?owner=token"], 64, &["token=before"]);
    refused(&["--forbid", "stale-write", "--allow", "stale-write"], 64, &["both forbidden and allowed"]);
}

/// A PATH on which `redis-server` is this script, or is missing.
fn path_with(script: Option<&str>) -> (tempfile::TempDir, std::ffi::OsString) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(script) = script {
        let program = folder.path().join("redis-server");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = folder.path().as_os_str().to_owned();
    (folder, path)
}

fn on_redis_with(script: &str, time: &str) -> Ended {
    let (_folder, mut path) = path_with(Some(script));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let store = tempfile::tempdir().unwrap();
    let mut command = fencepost();
    command.args(["run", "--lock", "redis", "--time", time, "--store"]).arg(store.path()).env("PATH", path);
    command.output().unwrap().into()
}

#[test]
fn a_server_that_is_not_installed() {
    // Root may hide the program from a process in a mount namespace of its own.
    let hide = "mount --bind /dev/null $(command -v redis-server) && exec \"$@\"";
    let store = tempfile::tempdir().unwrap();
    let hidden = |words: &[&str]| -> Ended {
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", hide, "sh", env!("CARGO_BIN_EXE_fencepost")]).args(words);
        command.output().unwrap().into()
    };
    if hidden(&["--version"]).code != 0 {
        eprintln!("not root: the program cannot be hidden, and nothing is tested here");
        return;
    }
    let ended =
        hidden(&["run", "--lock", "redis", "--time", "1s", "--store", store.path().to_str().unwrap()]);
    assert_eq!(ended.code, 69, "{ended:?}");
    assert!(ended.stderr.contains("redis-server is not installed"), "{}", ended.stderr);
    assert!(ended.stderr.contains("apt-get install redis-server"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0, "no run directory is left");
    let doctor = hidden(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.stdout.contains("apt-get install redis-server"), "{}", doctor.stdout);
}

#[test]
fn a_server_outside_of_path_is_found_where_distributions_put_it() {
    if !Path::new("/usr/bin/redis-server").exists() {
        return;
    }
    let store = tempfile::tempdir().unwrap();
    let mut command = fencepost();
    command.args(["run", "--lock", "redis", "--time", "500ms", "--allow", "*", "--store"]).arg(store.path());
    let ended: Ended = command.env("PATH", "/nowhere").output().unwrap().into();
    assert!(matches!(ended.code, 0 | 2), "{ended:?}");
}

#[test]
fn a_server_that_crashes_at_its_start_shows_its_last_words() {
    let ended = on_redis_with("#!/bin/sh\necho 'Fatal error, cannot allocate memory'\nexit 1\n", "1s");
    assert_eq!(ended.code, 69, "{ended:?}");
    for text in ["ended at its start", "Fatal error, cannot allocate memory", "redis.log"] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
}

#[test]
fn a_server_that_crashes_in_the_middle_shows_its_last_words_and_the_run_is_judged() {
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exec /usr/bin/redis-server --version\n\
                  /usr/bin/redis-server \"$@\" & server=$!\nsleep 1; kill $server; wait $server\nexit 3\n";
    let ended = on_redis_with(script, "10s");
    assert_eq!(ended.code, 69, "{ended:?}");
    for text in ["ended in the middle of the run", "Redis is now ready to exit"] {
        assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
    }
    assert!(ended.stdout.contains("acquires granted"), "{}", ended.stdout);
}

#[test]
fn a_store_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let ended = run(&["run", "--time", "1s", "--store", file.join("store").to_str().unwrap()]);
    assert_eq!(ended.code, 74, "{ended:?}");
    assert!(ended.stderr.contains("choose another place with --store DIR"), "{}", ended.stderr);
    let ended = run(&["run", "--time", "1s", "--store", "/proc/store"]);
    assert_eq!(ended.code, 74, "{ended:?}");
}

#[test]
fn a_disk_that_fills_up() {
    // A small file system of its own needs root; the limit on file sizes is the same error to a writer.
    let store = tempfile::tempdir().unwrap();
    let script = format!(
        "ulimit -f 20000; trap '' XFSZ; exec {} run --lock none --workload mutex --hold 0 --think 0 --time 5s --store {}",
        env!("CARGO_BIN_EXE_fencepost"),
        store.path().display()
    );
    let ended: Ended = std::process::Command::new("bash").args(["-c", &script]).output().unwrap().into();
    assert_eq!(ended.code, 74, "{ended:?}");
    assert!(ended.stderr.contains("cannot write"), "{}", ended.stderr);
    let history = crate::support::only_run(store.path()).join("history.jsonl");
    let ended = run(&["check", history.to_str().unwrap()]);
    assert!(ended.stdout.contains("double-grant"), "what was recorded before is kept: {ended:?}");
}

const HEADER: &str = r#"{"fencepost":1,"test":"t","seed":1}"#;

fn check(history: &[u8]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("history.jsonl");
    fs::write(&path, history).unwrap();
    run(&["check", path.to_str().unwrap()])
}

fn event(time: u64, process: &str, kind: &str, f: &str, attempt: u64) -> String {
    format!(
        r#"{{"time":{time},"process":"{process}","type":"{kind}","f":"{f}","lock":"l","attempt":{attempt},"start":{time},"end":{time},"value":{{}}}}"#
    )
}

fn malformed(lines: &[&str], says: &[&str]) {
    let ended = check((lines.join("\n") + "\n").as_bytes());
    assert_eq!(ended.code, 65, "{ended:?}");
    for text in says {
        assert!(ended.stderr.contains(text), "'{text}' is not said: {}", ended.stderr);
    }
}

#[test]
fn histories_that_are_none() {
    malformed(&[""], &["line 1 is not a header"]);
    assert_eq!(check(b"").code, 65);
    malformed(&["hello"], &["line 1"]);
    malformed(&[r#"{"fencepost":9,"test":"t"}"#], &["version 9"]);
    malformed(&[HEADER, "{nonsense}", &event(2, "c1", "invoke", "acquire", 1)], &["line 2"]);
    malformed(&[HEADER, &event(1, "c1", "ok", "acquire", 1)], &["line 2", "never invoked"]);
    let first = event(1, "c1", "invoke", "acquire", 1);
    malformed(&[HEADER, &first, &event(2, "c1", "invoke", "acquire", 2)], &["line 3", "c1"]);
    malformed(
        &[HEADER, &event(5, "c1", "invoke", "acquire", 1), &event(4, "c1", "ok", "acquire", 1)],
        &["line 3", "back"],
    );
    let missing = run(&["check", "/nowhere/history.jsonl"]);
    assert_eq!(missing.code, 64, "{missing:?}");
}

#[test]
fn a_torn_last_line_is_dropped_and_said_so() {
    let first = event(1, "c1", "invoke", "acquire", 1);
    let torn = format!("{HEADER}\n{first}\n{{\"time\":2,\"proc");
    let ended = check(torn.as_bytes());
    assert!(!matches!(ended.code, 64..), "{ended:?}");
    assert!(ended.stderr.contains("torn") || ended.stderr.contains("dropped"), "{}", ended.stderr);
}

#[test]
fn a_line_of_100_mb_is_refused_without_reading_it_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let mut bytes = format!("{HEADER}\n").into_bytes();
    bytes.resize(100 << 20, b'x');
    fs::write(&path, &bytes).unwrap();
    // A limit on memory far below the line's length: it must not be needed.
    let script =
        format!("ulimit -v 60000; exec {} check {}", env!("CARGO_BIN_EXE_fencepost"), path.display());
    let ended: Ended = std::process::Command::new("bash").args(["-c", &script]).output().unwrap().into();
    assert_eq!(ended.code, 65, "{ended:?}");
    assert!(ended.stderr.contains("line 2"), "{}", ended.stderr);
}
