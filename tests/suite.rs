//! Suites, from outside: small ones on locks that need no server.

use std::{fs, path::Path, process::Output};

use assert_cmd::Command;
use tempfile::TempDir;

struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new(suite: &str) -> Self {
        let bench = Self { dir: tempfile::tempdir().expect("a directory") };
        bench.write(suite);
        bench
    }

    fn write(&self, suite: &str) {
        fs::write(self.dir.path().join("suite.toml"), suite).expect("written");
    }

    fn run(&self, more: &[&str], code: i32) -> (String, String) {
        let mut command = Command::cargo_bin("fencepost").expect("the command is built");
        command.current_dir(self.dir.path()).env("NO_COLOR", "1");
        command.args(["suite", "suite.toml", "--store", "store"]).args(more);
        let output: Output = command.assert().code(code).get_output().clone();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    }

    fn latest(&self, file: &str) -> String {
        let path = self.dir.path().join("store/latest").join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn suite(&self) -> serde_json::Value {
        serde_json::from_str(&self.latest("suite.json")).expect("JSON")
    }
}

const TEETH: &str = "name = 'teeth'\n[defaults]\ntime = '700ms'\n\
    [[cells]]\nlocks = ['none']\nworkloads = ['mutex']\nrequire = ['double-grant']\n";

#[test]
fn what_is_required_is_found_and_all_files_are_written() {
    let bench = Bench::new(TEETH);
    let (out, _) = bench.run(&[], 0);
    assert!(out.contains("1 cell: 1 passed"), "{out}");
    for file in ["junit.xml", "summary.md", "matrix.html"] {
        assert!(bench.latest(file).contains("teeth"), "{file}");
    }
    let run = bench.suite()["cells"][0]["attempts"][0]["run"].as_str().expect("a run").to_owned();
    assert!(bench.dir.path().join("store/latest").join(run).join("report.html").is_file());
}

#[test]
fn the_worst_cell_decides_and_the_others_are_run() {
    let bench = Bench::new(
        "name = 'mixed'\nunknown = 'warn'\n[defaults]\ntime = '700ms'\n\
         [[cells]]\nlocks = ['none', 'sqlite']\nworkloads = ['mutex']\n\
         [[cells]]\nlocks = ['none']\nworkloads = ['counter']\nquarantine = 'known to be broken'\n\
         [[cells]]\nlocks = ['none']\nworkloads = ['counter']\nfences = ['token']\nimpossible = 'skip'\n",
    );
    let (out, err) = bench.run(&[], 1);
    assert!(out.contains("failed: none/mutex/none/none: double-grant on "), "{out}{err}");
    assert!(!out.contains("broken"), "{out}");
    assert!(err.contains("none/counter/none/token: skipped"), "{err}");
    assert!(err.contains("none/counter/none/none: quarantined in "), "{err}");
    assert!(err.contains(": known to be broken; failed: "), "{err}");
    assert!(out.contains("1 quarantined") && out.matches("failed").count() == 3, "{out}");
    let suite = bench.suite();
    let states: Vec<_> =
        suite["cells"].as_array().expect("cells").iter().map(|cell| &cell["state"]["is"]).collect();
    assert_eq!(states, ["judged", "judged", "judged", "skipped"]);
    let junit = bench.latest("junit.xml");
    assert!(
        junit.contains("in quarantine: known to be broken") && junit.contains("failures=\"1\""),
        "{junit}"
    );
}

#[test]
fn a_suite_goes_on_where_it_was() {
    let bench = Bench::new(TEETH);
    bench.run(&[], 0);
    bench.write(&format!("{TEETH}[[cells]]\nlocks = ['none']\nworkloads = ['counter']\nallow = ['*']\n"));
    let (out, err) = bench.run(&["--resume", "store/latest"], 0);
    assert!(err.contains("[1/2] none/mutex/none/none: passed (earlier)"), "{err}");
    assert!(out.contains("2 cells: 2 passed"), "{out}");
    let suites = fs::read_dir(bench.dir.path().join("store")).expect("a store").count();
    assert_eq!(suites, 2, "one directory, and latest");
}

#[test]
fn a_dry_run_shows_the_cells_and_runs_nothing() {
    let bench =
        Bench::new("name = 'x'\ntotl = '1m'\n[[cells]]\nlocks = ['*', '!redis']\nworkloads = ['counter']\n");
    let (out, err) = bench.run(&["--dry-run"], 0);
    assert!(out.contains("sqlite/counter/none/none\n    fencepost run --lock sqlite"), "{out}");
    assert!(err.contains("unknown key 'totl' in the suite is ignored (did you mean 'total'?)"), "{err}");
    assert!(!Path::new(&bench.dir.path().join("store")).exists());
    let (out, _) = bench.run(&["--dry-run", "--only", "none/*"], 0);
    assert!(out.contains("x: 1 cell, about "), "{out}");
}

#[test]
fn what_is_wrong_with_a_suite_is_said() {
    let bench = Bench::new("name = 'x'\n");
    let (_, err) = bench.run(&[], 64);
    assert!(err.contains("suite.toml: the suite has no cells"), "{err}");
    bench.write("name = ");
    assert!(bench.run(&[], 64).1.contains("TOML parse error"));
    bench.write(TEETH);
    assert!(bench.run(&["--only", "redlock"], 64).1.contains("--only redlock matches no cell"));
    assert!(bench.run(&["--resume", "nowhere"], 64).1.contains("cannot resume nowhere"));
    bench.write(&TEETH.replace("'none'", "'noone'"));
    let (out, _) = bench.run(&[], 64);
    assert!(
        out.contains("broken: noone/mutex/none/none: unknown lock 'noone' (did you mean 'none'?)"),
        "{out}"
    );
}

#[test]
fn thresholds_compare_with_a_baseline_of_the_same_suite() {
    let bench = Bench::new(
        "name = 'speed'\nretries = 0\n[defaults]\ntime = '1s'\n\
         [[cells]]\nlocks = ['none', 'sqlite']\nworkloads = ['mutex']\nallow = ['*']\n\
         [[thresholds]]\ncells = 'sqlite/*'\nmetric = 'acquires_per_s'\nat-least-times = 100.0\nbaseline = 'none/*'\n",
    );
    let (out, _) = bench.run(&[], 3);
    assert!(out.contains("missing: sqlite/mutex/none/none: acquires_per_s is "), "{out}");
}

const LONG: &str = "name = 'long'\n[defaults]\ntime = '60s'\n\
    [[cells]]\nlocks = ['sqlite']\nworkloads = ['mutex']\nseeds = [1, 2]\n";

/// Starts a suite and waits until its first run is under way.
fn begun(bench: &Bench) -> std::process::Child {
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("fencepost"))
        .current_dir(bench.dir.path())
        .args(["suite", "suite.toml", "--store", "store"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("started");
    wait_until("a run begins", || processes_in(bench.dir.path()) >= 2 && history_grows(bench.dir.path()));
    child
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..200 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("waited in vain until {what}");
}

fn history_grows(dir: &Path) -> bool {
    let Ok(cells) = fs::read_dir(dir.join("store/latest/runs")) else { return false };
    let history = |cell: fs::DirEntry| cell.path().join("latest/history.jsonl").metadata();
    cells.flatten().filter_map(|cell| history(cell).ok()).any(|history| history.len() > 2_000)
}

/// How many processes work in this directory, which is this test's alone.
fn processes_in(dir: &Path) -> usize {
    let works_here =
        |process: &fs::DirEntry| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == dir);
    fs::read_dir("/proc").expect("/proc").flatten().filter(works_here).count()
}

fn signal(child: &std::process::Child, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn an_interrupted_suite_heals_keeps_what_it_has_and_goes_on() {
    let bench = Bench::new(LONG);
    let mut child = begun(&bench);
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("ended").code(), Some(130));
    wait_until("all processes are gone", || processes_in(bench.dir.path()) == 0);
    let suite = bench.suite();
    assert_eq!(suite["cells"][0]["state"]["is"], "not-run");
    assert_eq!(suite["cells"][0]["reasons"][0], "interrupted in the middle of its run");
    assert_eq!(suite["cells"][1]["reasons"][0], "the suite was interrupted before its turn");
    bench.write(&LONG.replace("60s", "1s"));
    let (out, _) = bench.run(&["--resume", "store/latest"], 0);
    assert!(out.contains("2 cells: 2 passed"), "{out}");
}

#[test]
fn a_killed_suite_takes_its_run_with_it() {
    let bench = Bench::new(LONG);
    let mut child = begun(&bench);
    signal(&child, "-KILL");
    child.wait().expect("ended");
    wait_until("all processes are gone", || processes_in(bench.dir.path()) == 0);
}

#[test]
fn the_shipped_suites_are_sound() {
    for suite in ["known-bad", "smoke", "sweep"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites").join(suite).with_extension("toml");
        let mut command = Command::cargo_bin("fencepost").expect("the command is built");
        let output = command.arg("suite").arg(path).arg("--dry-run").assert().code(0).get_output().clone();
        assert!(output.stderr.is_empty(), "{suite}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
