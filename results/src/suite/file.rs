//! What does a suite file say? TOML, read with an eye for slips: an unknown key is a warning that names the
//! nearest known one.

use std::{collections::BTreeMap, time::Duration};

use fencepost_checker::{plan::Expectation, registry};
use serde::Deserialize;
use toml::{Table, Value};

use super::threshold::Threshold;
use crate::expectation::{self, ExpectationError};

/// Settings of `run` that a suite may give to all cells, to a block of them, or both.
pub const SETTINGS: &[&str] = &[
    "actors",
    "clients",
    "drive",
    "grace",
    "hold",
    "isolation",
    "keys",
    "on-lost",
    "retry",
    "stop-on-violation",
    "think",
    "time",
    "ttl",
    "wait",
];

const FILE_KEYS: &[&str] = &[
    "cells",
    "defaults",
    "description",
    "expect",
    "name",
    "retries",
    "seeds",
    "thresholds",
    "total",
    "unknown",
];

const BLOCK_KEYS: &[&str] = &[
    "allow",
    "budget",
    "fences",
    "forbid",
    "impossible",
    "locks",
    "nemeses",
    "quarantine",
    "repeats",
    "require",
    "resources",
    "seeds",
    "settings",
    "ttls",
    "workloads",
];

const EXPECT_KEYS: &[&str] = &["allow", "cells", "forbid", "quarantine", "require"];

const THRESHOLD_KEYS: &[&str] =
    &["at-least", "at-least-times", "at-most", "at-most-times", "baseline", "cells", "metric"];

/// Why a suite file cannot be used. The texts are fragments that fit after "error: ".
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// It is not TOML, or a value is of another kind than it must be.
    #[error("{0}")]
    Toml(String),
    /// A length of time is none.
    #[error("{key} = \"{value}\" is no length of time such as 500ms, 10s or 2m")]
    Length {
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
    },
    /// An expectation names what is not there, or contradicts itself.
    #[error("{place}: {error}")]
    Expectation {
        /// Where it stands.
        place: String,
        /// What is wrong.
        error: ExpectationError,
    },
    /// It has no cells.
    #[error("the suite has no cells: add a block [[cells]] with locks, workloads, nemeses and fences")]
    Empty,
    /// More cells than anybody means.
    #[error("the suite has more than {max} cells: take fewer values a block")]
    TooMany {
        /// The most that are allowed.
        max: usize,
    },
    /// A pattern that was meant for cells and matches none: what it says would never be looked at.
    #[error("{place} matches no cell; the nearest is '{nearest}'")]
    NoCell {
        /// Which pattern, and where it stands.
        place: String,
        /// The cell whose name comes nearest.
        nearest: String,
    },
    /// A threshold on what nothing measures.
    #[error("the threshold on '{metric}' is on no metric{hint}; there is: {}", known.join(", "))]
    UnknownMetric {
        /// What was given.
        metric: String,
        /// The nearest that there is, as a question.
        hint: String,
        /// All that there are.
        known: Vec<String>,
    },
    /// A threshold that says nothing.
    #[error(
        "the threshold on {metric} has no bound: give at-least, at-most, at-least-times or at-most-times"
    )]
    Unbounded {
        /// Its metric.
        metric: String,
    },
    /// A threshold relative to nothing.
    #[error("the threshold on {metric} is in times of a baseline and names none")]
    NoBaseline {
        /// Its metric.
        metric: String,
    },
}

/// What an `unknown` verdict means for the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    /// The cell is unknown, and the suite with it.
    Fail,
    /// It is reported and does not count.
    Warn,
    /// It is run again with another seed, then as `fail`.
    #[default]
    Retry,
}

/// What a cell that cannot be put together means: a token fence on a lock without tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnImpossible {
    /// A slip in the suite.
    #[default]
    Fail,
    /// The cell is skipped with the reason.
    Skip,
}

/// A fault, or several at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Faults {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// A suite file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SuiteFile {
    /// The suite's name, also of its directory.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// When to stop starting cells.
    #[serde(default)]
    pub total: Option<String>,
    /// What an unknown verdict means.
    #[serde(default)]
    pub unknown: OnUnknown,
    /// How often a cell that is unknown, or breaches a threshold, is run again.
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// The seeds of blocks that name none.
    #[serde(default = "default_seeds")]
    pub seeds: Vec<u64>,
    /// Settings of every cell, as of the command line.
    #[serde(default)]
    pub defaults: BTreeMap<String, Value>,
    /// Blocks of cells.
    #[serde(default)]
    pub cells: Vec<Block>,
    /// Expectations of cells by pattern, added to those of their blocks.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Bounds on what is measured.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
}

fn default_retries() -> u32 {
    2
}

fn default_seeds() -> Vec<u64> {
    vec![1]
}

/// A block of cells: every combination of its values.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Block {
    /// Locks, with options; `*` for all, `!NAME` to leave one out.
    pub locks: Vec<String>,
    /// Workloads, with options.
    pub workloads: Vec<String>,
    /// Faults; a list in the list for several at once.
    #[serde(default = "no_fault")]
    pub nemeses: Vec<Faults>,
    /// Fences.
    #[serde(default = "no_fence")]
    pub fences: Vec<String>,
    /// Protected resources.
    #[serde(default)]
    pub resources: Vec<String>,
    /// Lengths of the lease.
    #[serde(default)]
    pub ttls: Vec<String>,
    /// Seeds.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// How often each is run; every repeat has a seed of its own.
    #[serde(default = "once")]
    pub repeats: u64,
    /// Settings of these cells, as of the command line.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// What the cells must not, may and must find.
    #[serde(flatten)]
    pub expectation: Expectation,
    /// How long a required anomaly is sought.
    #[serde(default)]
    pub budget: Option<String>,
    /// Why the cells' outcome does not count.
    #[serde(default)]
    pub quarantine: Option<String>,
    /// What a cell means that cannot be put together.
    #[serde(default)]
    pub impossible: OnImpossible,
}

fn no_fault() -> Vec<Faults> {
    vec![Faults::One("none".to_owned())]
}

fn no_fence() -> Vec<String> {
    vec!["none".to_owned()]
}

fn once() -> u64 {
    1
}

/// Expectations of the cells that a pattern matches.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expect {
    /// The pattern.
    pub cells: String,
    /// What is added to the cells' expectation.
    #[serde(flatten)]
    pub expectation: Expectation,
    /// Why the cells' outcome does not count.
    #[serde(default)]
    pub quarantine: Option<String>,
}

impl SuiteFile {
    /// Reads a suite file. The texts returned beside it are warnings.
    ///
    /// # Errors
    /// [`SuiteError`].
    pub fn parse(text: &str) -> Result<(Self, Vec<String>), SuiteError> {
        let table: Table = toml::from_str(text).map_err(|error| SuiteError::Toml(error.to_string()))?;
        let warnings = unknown_keys(&table);
        let file: Self = toml::from_str(text).map_err(|error| SuiteError::Toml(error.to_string()))?;
        file.check()?;
        Ok((file, warnings))
    }

    fn check(&self) -> Result<(), SuiteError> {
        if self.cells.is_empty() {
            return Err(SuiteError::Empty);
        }
        for (number, block) in (1..).zip(&self.cells) {
            check_expectation(&block.expectation, || format!("block {number} of cells"))?;
        }
        for expect in &self.expect {
            check_expectation(&expect.expectation, || format!("expectation of '{}'", expect.cells))?;
        }
        self.thresholds.iter().try_for_each(Threshold::check)
    }

    /// When to stop starting cells.
    ///
    /// # Errors
    /// [`SuiteError::Length`].
    pub fn total(&self) -> Result<Option<Duration>, SuiteError> {
        self.total.as_deref().map(|text| length("total", text)).transpose()
    }
}

fn check_expectation(expectation: &Expectation, place: impl Fn() -> String) -> Result<(), SuiteError> {
    expectation::validate(expectation).map_err(|error| SuiteError::Expectation { place: place(), error })
}

/// Reads a length of time: `500ms`, `1.5s`, `2m`, `1h`.
pub(super) fn length(key: &'static str, text: &str) -> Result<Duration, SuiteError> {
    let wrong = || SuiteError::Length { key, value: text.to_owned() };
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let number: f64 = text[..digits].trim().parse().map_err(|_| wrong())?;
    let unit_s = match &text[digits..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())
}

/// Warnings about keys that nothing reads.
fn unknown_keys(table: &Table) -> Vec<String> {
    let mut warnings = Vec::new();
    check_keys(table, FILE_KEYS, "the suite", &mut warnings);
    if let Some(Value::Table(defaults)) = table.get("defaults") {
        check_keys(defaults, SETTINGS, "[defaults]", &mut warnings);
    }
    for (name, known) in [("cells", BLOCK_KEYS), ("expect", EXPECT_KEYS), ("thresholds", THRESHOLD_KEYS)] {
        let Some(Value::Array(blocks)) = table.get(name) else { continue };
        for (number, block) in (1..).zip(blocks) {
            let Value::Table(block) = block else { continue };
            check_keys(block, known, &format!("[[{name}]] {number}"), &mut warnings);
            if let Some(Value::Table(settings)) = block.get("settings") {
                check_keys(settings, SETTINGS, &format!("[cells.settings] {number}"), &mut warnings);
            }
        }
    }
    warnings
}

fn check_keys(table: &Table, known: &[&str], place: &str, warnings: &mut Vec<String>) {
    for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
        let nearest = registry::nearest(key, known.iter().copied());
        let hint = match nearest {
            Some(nearest) => format!(" (did you mean '{nearest}'?)"),
            None => format!("; there is: {}", known.join(", ")),
        };
        warnings.push(format!("unknown key '{key}' in {place} is ignored{hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "name = 'small'\n[[cells]]\nlocks = ['redis']\nworkloads = ['counter']\n";

    #[test]
    fn a_small_file_has_defaults() {
        let (file, warnings) = SuiteFile::parse(SMALL).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!((file.unknown, file.retries, file.seeds.as_slice()), (OnUnknown::Retry, 2, &[1][..]));
        assert_eq!(file.cells[0].fences, ["none"]);
        assert_eq!(file.cells[0].nemeses, [Faults::One("none".to_owned())]);
    }

    #[test]
    fn unknown_keys_are_warned_about_with_the_nearest() {
        let text = format!(
            "{SMALL}nemesis = ['none']\nbogus = 1\n[cells.settings]\nclientss = 3\n[defaults]\ntime = '1s'\n"
        );
        let (_, warnings) = SuiteFile::parse(&text).unwrap();
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("did you mean 'nemeses'?")), "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("did you mean 'clients'?")), "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("'bogus'") && warning.contains("there is:")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("name = 'x'", "no cells"),
            ("name = 3", "invalid type"),
            ("name = ", "TOML"),
            (&format!("{SMALL}require = ['stale-wirte']"), "did you mean 'stale-write'?"),
            (
                &format!("{SMALL}[[expect]]\ncells = '*'\nforbid = ['nope']"),
                "expectation of '*': unknown anomaly",
            ),
            (&format!("{SMALL}[[thresholds]]\ncells = '*'\nmetric = 'acquire_ms.p99'"), "has no bound"),
            (
                &format!("{SMALL}[[thresholds]]\ncells = '*'\nmetric = 'acquire_ms.p9'\nat-most = 1.0"),
                "the threshold on 'acquire_ms.p9' is on no metric (did you mean 'acquire_ms.p99'?); there is: acquires_per_s",
            ),
            (
                &format!("{SMALL}[[thresholds]]\ncells = '*'\nmetric = 'acquire_ms'\nat-most = 1.0"),
                "the threshold on 'acquire_ms' is on no metric",
            ),
        ] {
            let error = SuiteFile::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn lengths_of_time() {
        assert_eq!(length("total", "1.5s").unwrap(), Duration::from_millis(1_500));
        assert_eq!(length("total", "2m").unwrap(), Duration::from_secs(120));
        for text in ["", "5", "fast", "-1s", "5 parsecs"] {
            assert!(length("total", text).is_err(), "{text}");
        }
    }
}
