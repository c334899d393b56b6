//! How often is a cell run? Until it is judged: a required anomaly is sought until its budget is spent, an
//! unknown verdict is tried again, a forbidden finding is final at once.

use std::time::Duration;

use fencepost_checker::{plan::Expectation, verdict::Verdict};
use fencepost_results::{
    expectation::{self, Outcome},
    suite::{
        file::OnUnknown,
        result::{CellResult, CellState},
    },
};

use super::child::{Once, Runner};
use crate::exit::Exit;

/// So many opportunities without the required anomaly, and nobody can call it bad luck any more.
const OPPORTUNITIES_ENOUGH: u64 = 20;

/// Runs cells until they are judged.
pub(super) struct Seeker<'s> {
    pub(super) runner: &'s Runner,
    pub(super) no_skip: bool,
    pub(super) on_unknown: OnUnknown,
    pub(super) retries: u32,
}

impl Seeker<'_> {
    /// Runs a cell until it is judged. True: it was interrupted, and is as if it had not been run.
    pub(super) fn seek(&self, result: &mut CellResult) -> anyhow::Result<bool> {
        let mut unknown_left = if self.on_unknown == OnUnknown::Retry { self.retries } else { 0 };
        loop {
            if self.again(result)? {
                *result = CellResult::new(result.number, result.cell.clone());
                return Ok(true);
            }
            let CellState::Judged { outcome } = result.state else { return Ok(false) };
            let within_budget =
                Duration::from_millis(result.took_ms()) + result.cell.time <= result.cell.budget;
            match outcome {
                Outcome::Expected | Outcome::Forbidden => return Ok(false),
                Outcome::Missing if result.opportunities >= OPPORTUNITIES_ENOUGH => return Ok(false),
                Outcome::Missing | Outcome::Unknown if self.seeks(result) && within_budget => {}
                Outcome::Missing => {
                    self.give_up(result);
                    return Ok(false);
                }
                Outcome::Unknown if unknown_left > 0 => unknown_left -= 1,
                Outcome::Unknown => {
                    result.tolerated = self.on_unknown == OnUnknown::Warn;
                    return Ok(false);
                }
            }
        }
    }

    fn seeks(&self, result: &CellResult) -> bool {
        !result.cell.expectation.require.is_empty()
    }

    /// The budget is spent, and there were too few occasions to say that the anomaly does not occur.
    fn give_up(&self, result: &mut CellResult) {
        let opportunities = match result.opportunities {
            1 => "1 opportunity".to_owned(),
            count => format!("{count} opportunities"),
        };
        let text = format!(
            "its budget is spent after {opportunities}: fewer than {OPPORTUNITIES_ENOUGH} tell nothing"
        );
        result.reasons.push(text);
        result.state = CellState::Judged { outcome: Outcome::Unknown };
        result.tolerated = self.on_unknown == OnUnknown::Warn;
    }

    /// Runs a cell once more and judges it by all of its runs. True: it was interrupted.
    pub(super) fn again(&self, result: &mut CellResult) -> anyhow::Result<bool> {
        let seed = result.cell.seed + result.attempts.len() as u64;
        let once = self.runner.once(result, seed)?;
        if once.attempt.code == Exit::Interrupted as u8 {
            return Ok(true);
        }
        self.take(result, once);
        Ok(false)
    }

    fn take(&self, result: &mut CellResult, once: Once) {
        let code = once.attempt.code;
        let started = once.attempt.run.is_some();
        result.attempts.push(once.attempt);
        match once.verdict {
            Some(verdict) if code <= Exit::Missing as u8 => judge(result, &verdict),
            _ => {
                result.state = without_verdict(code, started, result.cell.skip_if_impossible, self.no_skip);
                result.reasons = vec![once.error];
            }
        }
    }
}

/// A cell that this machine, or nobody, can run is skipped; all else is broken.
fn without_verdict(code: u8, started: bool, skip_if_impossible: bool, no_skip: bool) -> CellState {
    let cannot = code == Exit::Rights as u8 || (code == Exit::Backend as u8 && !started);
    let impossible = code == Exit::Usage as u8 && skip_if_impossible;
    if impossible || (cannot && !no_skip) { CellState::Skipped } else { CellState::Broken { code } }
}

/// Judges a cell by its last run; what is required may have been found by any of its runs.
fn judge(result: &mut CellResult, verdict: &Verdict) {
    result.add(verdict);
    let Expectation { forbid, allow, require } = result.cell.expectation.clone();
    let (found, missing): (Vec<_>, Vec<_>) =
        require.into_iter().partition(|id| result.found.contains_key(id));
    let allow = allow.into_iter().chain(found).collect();
    let everything_found = missing.is_empty() && !result.cell.expectation.require.is_empty();
    let judgement = expectation::judge(verdict, &Expectation { forbid, allow, require: missing });
    let doubtful_only = judgement.outcome == Outcome::Unknown && everything_found;
    let outcome = if doubtful_only { Outcome::Expected } else { judgement.outcome };
    result.reasons = if outcome == Outcome::Expected { Vec::new() } else { judgement.reasons };
    result.state = CellState::Judged { outcome };
}

#[cfg(test)]
mod tests {
    use fencepost_checker::verdict::{Anomaly, Severity, Valid};
    use fencepost_results::suite::{cell, file::SuiteFile};

    use super::*;

    fn result(more: &str) -> CellResult {
        let text = format!("name = 'x'\n[[cells]]\nlocks = ['none']\nworkloads = ['counter']\n{more}");
        let (file, _) = SuiteFile::parse(&text).unwrap();
        CellResult::new(1, cell::expand(&file, &[]).unwrap().remove(0))
    }

    fn verdict(ids: &[&str]) -> Verdict {
        let anomaly = |id: &&str| Anomaly {
            id: (*id).to_owned(),
            severity: Severity::Violation,
            lock: None,
            count: 1,
            possible: 0,
            text: String::new(),
            witness: Vec::new(),
            intervals: Vec::new(),
            at_ns: 0,
            during: Vec::new(),
            assumes: Vec::new(),
        };
        let valid = if ids.is_empty() { Valid::True } else { Valid::False };
        Verdict { valid, anomalies: ids.iter().map(anomaly).collect(), ..Verdict::empty() }
    }

    fn outcome(result: &CellResult) -> Outcome {
        match result.state {
            CellState::Judged { outcome } => outcome,
            _ => panic!("not judged"),
        }
    }

    #[test]
    fn what_is_required_may_be_found_by_any_run() {
        let mut result = result("require = ['double-grant', 'lost-update']");
        judge(&mut result, &verdict(&["double-grant"]));
        assert_eq!(outcome(&result), Outcome::Missing);
        assert_eq!(result.reasons, ["lost-update is required and was not found"]);
        judge(&mut result, &verdict(&["lost-update"]));
        assert_eq!(outcome(&result), Outcome::Expected);
        assert!(result.reasons.is_empty());
    }

    #[test]
    fn what_this_machine_cannot_run_is_skipped_and_what_fails_is_not() {
        let (backend, rights, usage) = (Exit::Backend as u8, Exit::Rights as u8, Exit::Usage as u8);
        let broken = |code| CellState::Broken { code };
        for (code, started, impossible, no_skip, state) in [
            (backend, false, false, false, CellState::Skipped),
            (backend, true, false, false, broken(backend)),
            (backend, false, false, true, broken(backend)),
            (rights, true, false, false, CellState::Skipped),
            (rights, true, false, true, broken(rights)),
            (usage, false, true, true, CellState::Skipped),
            (usage, false, false, false, broken(usage)),
        ] {
            assert_eq!(without_verdict(code, started, impossible, no_skip), state, "{code} {started}");
        }
    }

    #[test]
    fn a_forbidden_finding_is_final() {
        let mut result = result("require = ['lost-update']");
        judge(&mut result, &verdict(&["lost-update", "double-grant"]));
        assert_eq!(outcome(&result), Outcome::Forbidden);
    }
}
