//! How long does it take from the start of a test until a planted bug is proven? The instant at which the promise was
//! broken, counted from the start of the run, servers' start included; of a bug that was sought more than once, the
//! runs before it count whole.
//!
//! `cargo bench --bench time_to_finding` prints the table of `docs/measurements.md`. Runs the suite `known-bad` three
//! times.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

const ROUNDS: usize = 3;

fn main() {
    let store = std::env::temp_dir().join(format!("fencepost-bench-{}", std::process::id()));
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let store = store.join(round.to_string());
        let status = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .args(["suite", "suites/known-bad.toml", "--store"])
            .arg(&store)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("fencepost runs");
        println!("round {}: the suite ended with {status}", round + 1);
        for cell in folders(&newest_suite(&store).join("runs")) {
            let (name, found) = time_of_cell(&cell);
            seconds.entry(name).or_default().push(found.unwrap_or(f64::INFINITY));
        }
    }
    let mut all = Vec::new();
    for (name, mut times) in seconds {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!("{median:>7.2} s  {name}");
        all.push(median);
    }
    all.sort_by(f64::total_cmp);
    println!("{:>7.2} s  median of all", all[all.len() / 2]);
    let _ = fs::remove_dir_all(&store);
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("a suite's directory").flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn newest_suite(store: &Path) -> PathBuf {
    let mut suites = folders(store).into_iter().filter(|path| path.display().to_string().contains("_suite_"));
    suites.next_back().expect("the suite left a directory")
}

/// The cell's test, and the seconds until the first of its required anomalies was proven.
fn time_of_cell(cell: &Path) -> (String, Option<f64>) {
    let (mut name, mut before) = (String::new(), 0.0);
    for run in folders(cell) {
        let json =
            |file: &str| -> Option<Value> { serde_json::from_slice(&fs::read(run.join(file)).ok()?).ok() };
        let (Some(plan), Some(verdict)) = (json("test.json"), json("verdict.json")) else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let required: Vec<_> =
            plan["expectation"]["require"].as_array().into_iter().flatten().map(text).collect();
        name = format!(
            "{}: {} {} {}",
            required.join(", "),
            text(&plan["lock"]),
            text(&plan["workload"]),
            plan["nemeses"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(" ")
        );
        let found = verdict["anomalies"].as_array().into_iter().flatten();
        let found = found.filter(|anomaly| required.contains(&text(&anomaly["id"])) && anomaly["count"] != 0);
        if let Some(at_ns) = found.filter_map(|anomaly| anomaly["at_ns"].as_f64()).min_by(f64::total_cmp) {
            return (name, Some(before + at_ns / 1e9));
        }
        before += plan["time_ms"].as_f64().unwrap_or(0.0) / 1e3;
    }
    (name, None)
}
