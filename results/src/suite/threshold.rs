//! Is what was measured within bounds? Absolute ones, or in times of another cell of the same suite, which ran
//! on the same machine.

use fencepost_checker::{registry, verdict::Verdict};
use serde::Deserialize;
use serde_json::Value;

use super::{file::SuiteError, pattern};

/// Metrics that are a number.
const NUMBERS: &[&str] = &["acquires_per_s", "leaked_ms", "bypass_max", "available"];

/// Metrics that are spread out.
const SPREADS: &[&str] = &["acquire_ms", "handover_ms", "notice_ms", "recovery_ms"];

/// What is told of a spread.
const OF_A_SPREAD: &[&str] = &["p50", "p99", "max"];

/// All that a threshold can bind, with dots into it.
fn known_metrics() -> Vec<String> {
    let of_spreads =
        SPREADS.iter().flat_map(|spread| OF_A_SPREAD.iter().map(move |part| format!("{spread}.{part}")));
    NUMBERS.iter().map(|&number| number.to_owned()).chain(of_spreads).collect()
}

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Threshold {
    /// The cells that it binds, as a pattern.
    pub cells: String,
    /// The metric, with dots into it: `acquire_ms.p99`.
    pub metric: String,
    /// The cell to compare with, as a pattern: the first that matches.
    #[serde(default)]
    pub baseline: Option<String>,
    /// The least that it may be.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The most that it may be.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The least, in times of the baseline.
    #[serde(default)]
    pub at_least_times: Option<f64>,
    /// The most, in times of the baseline.
    #[serde(default)]
    pub at_most_times: Option<f64>,
}

impl Threshold {
    /// Checks that it says something.
    pub(super) fn check(&self) -> Result<(), SuiteError> {
        let relative = self.at_least_times.is_some() || self.at_most_times.is_some();
        let metric = self.metric.clone();
        let known = known_metrics();
        if !known.contains(&metric) {
            let nearest = registry::nearest(&metric, known.iter().map(String::as_str));
            let hint = nearest.map(|nearest| format!(" (did you mean '{nearest}'?)")).unwrap_or_default();
            return Err(SuiteError::UnknownMetric { metric, hint, known });
        }
        match (&self.baseline, relative) {
            (None, true) => Err(SuiteError::NoBaseline { metric }),
            (_, false) if self.at_least.is_none() && self.at_most.is_none() => {
                Err(SuiteError::Unbounded { metric })
            }
            _ => Ok(()),
        }
    }

    /// Does it bind this cell?
    #[must_use]
    pub fn binds(&self, cell: &str) -> bool {
        pattern::matches(&self.cells, cell)
    }

    /// What is breached, in words; nothing if all is within bounds. `baseline` is the verdict to compare with.
    #[must_use]
    pub fn breach(&self, verdict: &Verdict, baseline: Option<&Verdict>) -> Option<String> {
        let Some(value) = metric(verdict, &self.metric) else {
            return Some(format!("{} was not measured", self.metric));
        };
        let of_baseline = baseline.and_then(|verdict| metric(verdict, &self.metric));
        let times = |factor: Option<f64>| Some(factor? * of_baseline?);
        if of_baseline.is_none() && (self.at_least_times.is_some() || self.at_most_times.is_some()) {
            let baseline = self.baseline.as_deref().unwrap_or_default();
            return Some(format!("{} of the baseline '{baseline}' was not measured", self.metric));
        }
        let least = [self.at_least, times(self.at_least_times)]
            .into_iter()
            .flatten()
            .fold(f64::NEG_INFINITY, f64::max);
        let most =
            [self.at_most, times(self.at_most_times)].into_iter().flatten().fold(f64::INFINITY, f64::min);
        if value < least {
            Some(format!("{} is {value:.3}, less than {least:.3}", self.metric))
        } else if value > most {
            Some(format!("{} is {value:.3}, more than {most:.3}", self.metric))
        } else {
            None
        }
    }
}

/// A metric of a verdict, with dots into it.
fn metric(verdict: &Verdict, path: &str) -> Option<f64> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let mut value = verdict.metrics.get(first).or_else(|| verdict.workload.get(first))?;
    for part in parts {
        value = value.get(part)?;
    }
    Value::as_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(p99: f64) -> Verdict {
        let mut verdict = Verdict::empty();
        verdict.metrics.insert("acquire_ms".to_owned(), serde_json::json!({ "p99": p99 }));
        verdict
    }

    fn threshold(text: &str) -> Threshold {
        toml::from_str(&format!("cells = '*'\nmetric = 'acquire_ms.p99'\n{text}")).unwrap()
    }

    #[test]
    fn what_the_checker_measures_is_known() {
        let run = crate::samples::busy_run(20, 3);
        let measured = fencepost_checker::readers::check(run.as_bytes(), None).unwrap().verdict.metrics;
        let known: std::collections::BTreeSet<_> = NUMBERS.iter().chain(SPREADS).copied().collect();
        assert_eq!(measured.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), known);
        let parts = measured["acquire_ms"].as_object().unwrap();
        assert_eq!(parts.len(), OF_A_SPREAD.len());
        assert!(OF_A_SPREAD.iter().all(|part| parts.contains_key(*part)), "{parts:?}");
    }

    #[test]
    fn bounds_are_absolute_or_in_times_of_a_baseline() {
        assert_eq!(threshold("at-most = 2.0").breach(&verdict(1.9), None), None);
        let breach = threshold("at-most = 2.0").breach(&verdict(2.1), None).unwrap();
        assert_eq!(breach, "acquire_ms.p99 is 2.100, more than 2.000");
        let relative = threshold("at-most-times = 3.0\nbaseline = 'x'");
        assert_eq!(relative.breach(&verdict(2.9), Some(&verdict(1.0))), None);
        assert!(relative.breach(&verdict(3.1), Some(&verdict(1.0))).is_some());
        assert!(relative.breach(&verdict(3.1), None).unwrap().contains("baseline 'x' was not measured"));
        assert!(
            threshold("at-least = 1.0").breach(&Verdict::empty(), None).unwrap().contains("not measured")
        );
    }
}
