//! What did the cells come to? `suite.json`, written after every cell, so that a suite that was interrupted goes
//! on where it was.

use std::path::Path;

use fencepost_checker::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use crate::{
    expectation::Outcome,
    store::{StoreError, read_json, write_json},
    words,
};

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum CellState {
    /// It was run and judged.
    Judged {
        /// How.
        outcome: Outcome,
    },
    /// This machine cannot run it.
    Skipped,
    /// Its run failed for a reason of its own: a server that did not start, a full disk.
    Broken {
        /// The exit code of the run.
        code: u8,
    },
    /// The suite ended before it was its turn.
    NotRun,
}

/// One run of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its seed.
    pub seed: u64,
    /// Its directory, relative to the suite's; nothing if it did not get that far.
    pub run: Option<String>,
    /// The exit code.
    pub code: u8,
    /// How long it took, milliseconds.
    pub took_ms: u64,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellResult {
    /// Its number in the suite file, from 1.
    pub number: usize,
    /// The cell.
    pub cell: Cell,
    /// How it ended.
    pub state: CellState,
    /// Why, one phrase each.
    pub reasons: Vec<String>,
    /// Its runs.
    pub attempts: Vec<Attempt>,
    /// Anomalies found, by id, with their counts, over all runs.
    pub found: std::collections::BTreeMap<String, u64>,
    /// Holds, over all runs.
    pub holds: u64,
    /// Faults that struck, over all runs.
    pub faults: u64,
    /// Opportunities, over all runs.
    pub opportunities: u64,
    /// It is unknown, and the suite only warns about that.
    pub tolerated: bool,
}

impl CellResult {
    /// A cell that has not been run.
    #[must_use]
    pub fn new(number: usize, cell: Cell) -> Self {
        Self {
            number,
            cell,
            state: CellState::NotRun,
            reasons: Vec::new(),
            attempts: Vec::new(),
            found: Default::default(),
            holds: 0,
            faults: 0,
            opportunities: 0,
            tolerated: false,
        }
    }

    /// Adds what a run saw and found.
    pub fn add(&mut self, verdict: &Verdict) {
        self.holds += verdict.counts.holds;
        self.faults += verdict.counts.faults;
        self.opportunities += verdict.counts.opportunities;
        for anomaly in verdict.anomalies.iter().filter(|anomaly| anomaly.count > 0) {
            *self.found.entry(anomaly.id.clone()).or_insert(0) += anomaly.count;
        }
    }

    /// Does it end the suite with another code than 0? Those in quarantine and those skipped do not.
    #[must_use]
    pub fn counts(&self) -> bool {
        let tolerated = self.tolerated || self.cell.quarantine.is_some();
        !tolerated
            && !matches!(self.state, CellState::Skipped | CellState::Judged { outcome: Outcome::Expected })
    }

    /// Its state in a word; what went wrong in quarantine is no more than that.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.is_quarantined() { "quarantined" } else { self.came_to() }
    }

    /// It is not as it should be, and in quarantine.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        let fine = matches!(
            self.state,
            CellState::Judged { outcome: Outcome::Expected } | CellState::Skipped | CellState::NotRun
        );
        self.cell.quarantine.is_some() && !fine
    }

    /// Its state in a word, whether it counts or not.
    #[must_use]
    pub fn came_to(&self) -> &'static str {
        match self.state {
            CellState::Judged { outcome: Outcome::Expected } => "passed",
            CellState::Judged { outcome: Outcome::Forbidden } => "failed",
            CellState::Judged { outcome: Outcome::Missing } => "missing",
            CellState::Judged { outcome: Outcome::Unknown } => "unknown",
            CellState::Skipped => "skipped",
            CellState::Broken { .. } => "broken",
            CellState::NotRun => "not run",
        }
    }

    /// What it says beside its state: why, or what was found, or how much a clean run proves.
    #[must_use]
    pub fn remark(&self) -> String {
        if !self.reasons.is_empty() {
            return self.reasons.join("; ");
        }
        let found: Vec<_> = self.found.iter().map(|(id, count)| format!("{count} {id}")).collect();
        if found.is_empty() { words::bound(self.holds).unwrap_or_default() } else { found.join(", ") }
    }

    /// The directory of its last run, relative to the suite's.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        self.attempts.iter().rev().find_map(|attempt| attempt.run.as_deref())
    }

    /// How long all its runs took, milliseconds.
    #[must_use]
    pub fn took_ms(&self) -> u64 {
        self.attempts.iter().map(|attempt| attempt.took_ms).sum()
    }
}

/// What a suite came to so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// The format's version.
    pub fencepost: u32,
    /// The suite's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The command line that runs it again.
    pub command: String,
    /// Every cell, in the order of the file.
    pub cells: Vec<CellResult>,
}

impl SuiteResult {
    /// The file's name in the suite's directory.
    pub const FILE: &str = "suite.json";

    /// Writes it into the suite's directory.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn write(&self, dir: &Path) -> Result<(), StoreError> {
        write_json(&dir.join(Self::FILE), self)
    }

    /// Reads that of an earlier or interrupted suite; nothing if there is none.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Malformed`].
    pub fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        read_json(&dir.join(Self::FILE))
    }

    /// Takes over what an earlier run of the suite came to, for the cells that are the same still. Those that were
    /// not run, broken or skipped are run again.
    pub fn take_over(&mut self, earlier: &Self) {
        for result in &mut self.cells {
            let same = earlier
                .cells
                .iter()
                .find(|other| other.cell == result.cell && matches!(other.state, CellState::Judged { .. }));
            if let Some(same) = same {
                result.clone_from(same);
            }
        }
    }

    /// The exit code: that of the worst cell, by the order 1, 3, any other failure, 2.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.cells
            .iter()
            .filter(|cell| cell.counts())
            .map(|cell| code_of(&cell.state))
            .max_by_key(|(rank, _)| *rank)
            .map_or(0, |(_, code)| code)
    }

    /// How many cells are in this state, by its word.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        self.cells.iter().filter(|cell| cell.word() == word).count()
    }

    /// The counts of all states in one line.
    #[must_use]
    pub fn totals(&self) -> String {
        let words = ["passed", "failed", "missing", "unknown", "broken", "not run", "quarantined", "skipped"];
        let counts = words.iter().map(|word| (self.count(word), word)).filter(|(count, _)| *count > 0);
        let text = counts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
        format!("{}: {text}", words::number_of(self.cells.len() as u64, "cell"))
    }
}

/// A state's rank among those that count, and its code.
fn code_of(state: &CellState) -> (u8, u8) {
    match state {
        CellState::Judged { outcome: Outcome::Forbidden } => (4, 1),
        CellState::Judged { outcome: Outcome::Missing } => (3, 3),
        CellState::Broken { code } => (2, *code),
        CellState::Judged { outcome: Outcome::Unknown } | CellState::NotRun => (1, 2),
        CellState::Judged { outcome: Outcome::Expected } | CellState::Skipped => (0, 0),
    }
}
