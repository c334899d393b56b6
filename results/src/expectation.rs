//! Did a run end as expected? A verdict says what was found; an expectation says what that means.
//!
//! Violations are forbidden unless allowed, hazards and liveness findings allowed unless forbidden. An id
//! that is named outweighs `*`. Only certain findings count: what might be one neither breaks nor meets an
//! expectation.

use std::collections::BTreeSet;

use fencepost_checker::{
    anomalies::ANOMALIES,
    plan::Expectation,
    registry,
    verdict::{Anomaly, Severity, Valid, Verdict},
};
use serde::{Deserialize, Serialize};

/// The word that stands for every anomaly.
const ALL: &str = "*";

/// How a run ended, measured by its expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All as expected.
    Expected,
    /// A forbidden anomaly was found.
    Forbidden,
    /// A required anomaly is missing, or a threshold is breached.
    Missing,
    /// Nobody can say.
    Unknown,
}

impl Outcome {
    /// The worse of two: forbidden, then missing, then unknown, then expected.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Expected => 0,
            Self::Unknown => 1,
            Self::Missing => 2,
            Self::Forbidden => 3,
        }
    }
}

/// How a run ended, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// How it ended.
    pub outcome: Outcome,
    /// One phrase each; also those that a worse one outweighs.
    pub reasons: Vec<String>,
}

/// Why an expectation cannot be met. The texts are fragments that fit after "error: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpectationError {
    /// No anomaly of that id.
    #[error("unknown anomaly '{id}'{}; see: fencepost list anomalies", hint(.nearest))]
    Unknown {
        /// What was given.
        id: String,
        /// The id that is nearest.
        nearest: Option<String>,
    },
    /// Forbidden, and allowed or required.
    #[error("anomaly '{id}' is both forbidden and {other}: which is meant?")]
    Contradiction {
        /// The anomaly.
        id: String,
        /// `allowed` or `required`.
        other: &'static str,
    },
    /// Everything cannot be required.
    #[error("'*' cannot be required: name the anomalies")]
    RequireAll,
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

/// Checks that every id is that of an anomaly and none is both forbidden and allowed or required.
///
/// # Errors
/// [`ExpectationError`], for the first id that is wrong.
pub fn validate(expectation: &Expectation) -> Result<(), ExpectationError> {
    let known: Vec<_> = ANOMALIES.iter().map(|kind| kind.id()).collect();
    let Expectation { forbid, allow, require } = expectation;
    for id in forbid.iter().chain(allow).chain(require) {
        if id != ALL && !known.contains(&id.as_str()) {
            let nearest = registry::nearest(id, known.iter().copied());
            return Err(ExpectationError::Unknown { id: id.clone(), nearest });
        }
    }
    if require.iter().any(|id| id == ALL) {
        return Err(ExpectationError::RequireAll);
    }
    for (ids, other) in [(allow, "allowed"), (require, "required")] {
        if let Some(id) = ids.iter().find(|id| forbid.contains(id)) {
            return Err(ExpectationError::Contradiction { id: id.clone(), other });
        }
    }
    Ok(())
}

/// Judges a verdict by an expectation.
///
/// A forbidden finding outweighs a missing one, and that an unknown. Where all that was required was found,
/// doubts about the rest of the run do not matter: what it was to prove is proven.
#[must_use]
pub fn judge(verdict: &Verdict, expectation: &Expectation) -> Judgement {
    let mut judgement = Judgement { outcome: Outcome::Expected, reasons: Vec::new() };
    let mut add = |outcome, reason| {
        judgement.outcome = judgement.outcome.worse(outcome);
        judgement.reasons.push(reason);
    };
    for anomaly in verdict.anomalies.iter().filter(|anomaly| anomaly.count > 0) {
        if is_forbidden(anomaly, expectation) {
            let lock = anomaly.lock.as_ref().map(|lock| format!(" on {lock}")).unwrap_or_default();
            add(
                Outcome::Forbidden,
                format!("{}{lock} was found {} and is forbidden", anomaly.id, times(anomaly.count)),
            );
        }
    }
    let missing = missing(verdict, expectation);
    for id in &missing {
        add(Outcome::Missing, format!("{id} is required and was not found"));
    }
    let proven = !expectation.require.is_empty() && missing.is_empty();
    let doubtful = verdict.valid == Valid::Unknown || !verdict.unknown_because.is_empty();
    if doubtful && !proven {
        match verdict.unknown_because.as_slice() {
            [] => add(Outcome::Unknown, "the verdict is unknown".to_owned()),
            reasons => reasons.iter().for_each(|reason| add(Outcome::Unknown, reason.clone())),
        }
    }
    judgement
}

/// The required anomalies that were not found, without repetition.
#[must_use]
pub fn missing<'e>(verdict: &Verdict, expectation: &'e Expectation) -> BTreeSet<&'e str> {
    let found = |id: &str| verdict.anomalies.iter().any(|anomaly| anomaly.id == id && anomaly.count > 0);
    expectation.require.iter().map(String::as_str).filter(|id| !found(id)).collect()
}

fn is_forbidden(anomaly: &Anomaly, expectation: &Expectation) -> bool {
    let named = |ids: &[String], id: &str| ids.iter().any(|named| named == id);
    let Expectation { forbid, allow, require } = expectation;
    if named(forbid, &anomaly.id) {
        return true;
    }
    if named(allow, &anomaly.id) || named(require, &anomaly.id) {
        return false;
    }
    named(forbid, ALL) || (anomaly.severity == Severity::Violation && !named(allow, ALL))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anomaly(id: &str, severity: Severity, count: u64) -> Anomaly {
        Anomaly {
            id: id.to_owned(),
            severity,
            lock: Some("daily-report".to_owned()),
            count,
            possible: 1,
            text: String::new(),
            witness: Vec::new(),
            intervals: Vec::new(),
            at_ns: 0,
            during: Vec::new(),
            assumes: Vec::new(),
        }
    }

    fn verdict(anomalies: Vec<Anomaly>, unknown_because: &[&str]) -> Verdict {
        let violated = anomalies.iter().any(|a| a.severity == Severity::Violation && a.count > 0);
        let valid = match (violated, unknown_because.is_empty()) {
            (true, _) => Valid::False,
            (false, false) => Valid::Unknown,
            (false, true) => Valid::True,
        };
        let unknown_because = unknown_because.iter().map(|&reason| reason.to_owned()).collect();
        Verdict { valid, anomalies, unknown_because, ..Verdict::empty() }
    }

    fn expectation(forbid: &[&str], allow: &[&str], require: &[&str]) -> Expectation {
        let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        Expectation { forbid: owned(forbid), allow: owned(allow), require: owned(require) }
    }

    fn stale() -> Anomaly {
        anomaly("stale-write", Severity::Violation, 2)
    }

    fn overlap() -> Anomaly {
        anomaly("belief-overlap", Severity::Hazard, 1)
    }

    #[test]
    fn violations_are_forbidden_and_hazards_allowed_by_default() {
        let default = Expectation::default();
        assert_eq!(judge(&verdict(vec![], &[]), &default).outcome, Outcome::Expected);
        assert_eq!(judge(&verdict(vec![overlap()], &[]), &default).outcome, Outcome::Expected);
        let judged = judge(&verdict(vec![stale(), overlap()], &[]), &default);
        assert_eq!(judged.outcome, Outcome::Forbidden);
        assert_eq!(judged.reasons, ["stale-write on daily-report was found twice and is forbidden"]);
    }

    #[test]
    fn a_named_id_outweighs_the_star() {
        let both = || verdict(vec![stale(), overlap()], &[]);
        for (expectation, outcome) in [
            (expectation(&[], &["*"], &[]), Outcome::Expected),
            (expectation(&["stale-write"], &["*"], &[]), Outcome::Forbidden),
            (expectation(&["*"], &["stale-write"], &[]), Outcome::Forbidden),
            (expectation(&["*"], &["stale-write", "belief-overlap"], &[]), Outcome::Expected),
            (expectation(&["belief-overlap"], &["stale-write"], &[]), Outcome::Forbidden),
            (expectation(&[], &[], &["stale-write"]), Outcome::Expected),
        ] {
            assert_eq!(judge(&both(), &expectation).outcome, outcome, "{expectation:?}");
        }
    }

    #[test]
    fn what_only_might_be_one_does_not_count() {
        let possible = || verdict(vec![anomaly("stale-write", Severity::Violation, 0)], &[]);
        assert_eq!(judge(&possible(), &Expectation::default()).outcome, Outcome::Expected);
        let required = expectation(&[], &[], &["stale-write"]);
        assert_eq!(judge(&possible(), &required).outcome, Outcome::Missing);
    }

    #[test]
    fn forbidden_outweighs_missing_and_missing_unknown() {
        let required = expectation(&[], &[], &["double-grant"]);
        assert_eq!(judge(&verdict(vec![stale()], &["vacuous"]), &required).outcome, Outcome::Forbidden);
        let judged = judge(&verdict(vec![], &["vacuous"]), &required);
        assert_eq!(judged.outcome, Outcome::Missing);
        assert_eq!(judged.reasons, ["double-grant is required and was not found", "vacuous"]);
        assert_eq!(judge(&verdict(vec![], &["vacuous"]), &Expectation::default()).outcome, Outcome::Unknown);
    }

    #[test]
    fn what_was_required_and_found_outweighs_doubts() {
        let doubtful = || verdict(vec![overlap()], &["vacuous"]);
        assert_eq!(
            judge(&doubtful(), &expectation(&[], &[], &["belief-overlap"])).outcome,
            Outcome::Expected
        );
        assert_eq!(judge(&doubtful(), &expectation(&[], &[], &[])).outcome, Outcome::Unknown);
        let doubtful = || verdict(vec![stale()], &["vacuous"]);
        assert_eq!(judge(&doubtful(), &expectation(&[], &[], &["stale-write"])).outcome, Outcome::Expected);
        assert_eq!(judge(&doubtful(), &expectation(&[], &["stale-write"], &[])).outcome, Outcome::Unknown);
    }

    #[test]
    fn ids_are_checked_against_what_is_known() {
        assert_eq!(validate(&expectation(&["*"], &["stale-write"], &["double-grant"])), Ok(()));
        let error = validate(&expectation(&["stale-wirte"], &[], &[])).unwrap_err().to_string();
        assert!(error.contains("did you mean 'stale-write'?"), "{error}");
        let error = validate(&expectation(&["stale-write"], &[], &["stale-write"])).unwrap_err();
        assert!(error.to_string().contains("both forbidden and required"), "{error}");
        assert_eq!(validate(&expectation(&[], &[], &["*"])), Err(ExpectationError::RequireAll));
    }
}
