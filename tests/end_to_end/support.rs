//! How do the tests run the binary, and what do they read of it?

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

/// A command of the built binary, without colours.
pub(crate) fn fencepost() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.env("NO_COLOR", "1");
    command
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the binary with these words.
pub(crate) fn run(words: &[&str]) -> Ended {
    fencepost().args(words).output().unwrap().into()
}

/// One finished test of a lock.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) code: i32,
    pub(crate) verdict: Value,
    pub(crate) stderr: String,
    _store: tempfile::TempDir,
}

impl Test {
    /// `fencepost run` with these words, into a store of its own.
    pub(crate) fn run(words: &[&str]) -> Self {
        let store = tempfile::tempdir().unwrap();
        let output = fencepost()
            .arg("run")
            .args(words)
            .arg("--json")
            .arg("--store")
            .arg(store.path())
            .output()
            .unwrap();
        let ended = Ended::from(output);
        let verdict = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("no verdict ({error}), code {}: {}", ended.code, ended.stderr));
        Self { code: ended.code, verdict, stderr: ended.stderr, _store: store }
    }

    /// Certain findings of this kind.
    pub(crate) fn found(&self, id: &str) -> u64 {
        let anomalies = self.verdict["anomalies"].as_array().unwrap();
        anomalies
            .iter()
            .filter(|anomaly| anomaly["id"] == id)
            .map(|anomaly| anomaly["count"].as_u64().unwrap())
            .sum()
    }

    /// A number of the verdict's counts.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.verdict["counts"][name].as_u64().unwrap()
    }

    /// Ids of all certain findings.
    pub(crate) fn all_found(&self) -> Vec<&str> {
        let anomalies = self.verdict["anomalies"].as_array().unwrap();
        let certain = anomalies.iter().filter(|anomaly| anomaly["count"].as_u64().unwrap() > 0);
        certain.map(|anomaly| anomaly["id"].as_str().unwrap()).collect()
    }
}

/// The only run directory of a store.
pub(crate) fn only_run(store: &Path) -> PathBuf {
    store.join("latest").canonicalize().unwrap()
}
