//! A run directory, read: what every output is made from.

use std::{fs::File, io::BufReader};

use fencepost_checker::{
    history::Event,
    plan::{Expectation, Plan},
    readers,
    verdict::Verdict,
};

use crate::{
    expectation::{self, Judgement},
    recording::Recording,
    store::{RunDir, StoreError},
};

/// Why a run directory cannot be shown at all.
#[derive(Debug, thiserror::Error)]
pub enum FinishedError {
    /// A file of it is broken.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its history is no history.
    #[error("{path}: {error}")]
    History {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        error: readers::ReadError,
    },
}

/// A run directory, read.
pub(crate) struct Finished {
    pub(crate) plan: Option<Plan>,
    pub(crate) verdict: Verdict,
    /// There is no verdict yet: the run goes on, or was killed; this one was made for the look at it.
    pub(crate) unfinished: bool,
    pub(crate) judgement: Judgement,
    pub(crate) recording: Recording,
}

impl Finished {
    /// Reads a run directory.
    pub(crate) fn read(run: &RunDir) -> Result<Self, FinishedError> {
        let plan = run.read_plan()?;
        let failed = |error| FinishedError::History { path: run.history_path().display().to_string(), error };
        let recording = Recording::read(&run.history_path()).map_err(failed)?;
        let written = run.read_verdict()?;
        let unfinished = written.is_none();
        let verdict = match written {
            Some(verdict) => verdict,
            None => {
                let file = open(run).map_err(failed)?;
                readers::check(file, plan.as_ref()).map_err(failed)?.verdict
            }
        };
        let expectation = plan.as_ref().map_or_else(Expectation::default, |plan| plan.expectation.clone());
        let judgement = expectation::judge(&verdict, &expectation);
        Ok(Self { plan, verdict, unfinished, judgement, recording })
    }

    /// The test's name.
    pub(crate) fn name(&self) -> &str {
        match &self.plan {
            Some(plan) => &plan.name,
            None if self.recording.header.test.is_empty() => "history",
            None => &self.recording.header.test,
        }
    }
}

fn open(run: &RunDir) -> Result<BufReader<File>, readers::ReadError> {
    let file = File::open(run.history_path()).map_err(|source| readers::ReadError::Io { line: 1, source })?;
    Ok(BufReader::new(file))
}

/// Hands every event of a run's history to `sink`.
pub(crate) fn each_event(run: &RunDir, mut sink: impl FnMut(&Event<'_>)) -> Result<(), readers::ReadError> {
    readers::read(open(run)?, |_, event| sink(event)).map(|_| ())
}
