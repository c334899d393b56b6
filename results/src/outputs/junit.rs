//! `junit.xml`: a run as a test case, for CI servers.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Output, item, write_file};
use crate::{
    expectation::{Judgement, Outcome},
    finished::Finished,
    render::Warning,
    store::RunDir,
    words,
};

pub(super) const OUTPUT: Output = Output {
    item: item(
        "junit",
        "the run as a test case, for CI servers",
        "A forbidden or missing anomaly is a failure, an unknown verdict or none yet an error.",
    ),
    write,
};

fn write(run: &RunDir, finished: &Finished) -> Vec<Warning> {
    let status = if finished.unfinished {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status
            .set_message("it has no verdict yet: it goes on, or was killed")
            .set_description(text(finished));
        status
    } else {
        status(&finished.judgement, &text(finished))
    };
    let mut case = TestCase::new(finished.name(), status);
    case.set_classname("fencepost").set_time(Duration::from_nanos(finished.recording.end));
    write_file(run, "junit.xml", document("fencepost", vec![case]))
}

/// A whole document of one test suite.
pub(crate) fn document(name: &str, cases: Vec<TestCase>) -> Result<Vec<u8>, String> {
    let mut suite = TestSuite::new(name);
    suite.add_test_cases(cases);
    let mut report = Report::new("fencepost");
    report.add_test_suite(suite);
    report.to_string().map(String::into_bytes).map_err(|error| error.to_string())
}

/// How a judgement stands in JUnit.
pub(crate) fn status(judgement: &Judgement, text: &str) -> TestCaseStatus {
    let kind = match judgement.outcome {
        Outcome::Expected => return TestCaseStatus::success(),
        Outcome::Forbidden | Outcome::Missing => NonSuccessKind::Failure,
        Outcome::Unknown => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(judgement.reasons.join("; ")).set_description(text);
    status
}

/// The findings, one paragraph each.
fn text(finished: &Finished) -> String {
    let findings =
        finished.verdict.anomalies.iter().map(|anomaly| format!("{}: {}", anomaly.id, anomaly.text));
    let mut lines: Vec<_> = std::iter::once(finished.verdict.summary.clone()).chain(findings).collect();
    lines.extend(finished.plan.as_ref().map(|plan| format!("Again: {}", words::command(&plan.command))));
    lines.join("\n\n")
}
