//! What does a suite's directory show? `junit.xml`, `summary.md`, `matrix.html`, and the plot of a sweep.

use std::{path::Path, time::Duration};

use askama::Template;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus};

use super::{
    matrix::Matrix,
    result::{CellResult, CellState, SuiteResult},
    sweep,
};
use crate::{
    expectation::{Judgement, Outcome},
    outputs::{junit, summary::escape},
    render::Warning,
    store::write_atomically,
    words,
};

/// Writes all of them; those that could not be written are returned.
#[must_use]
pub fn write(suite: &SuiteResult, dir: &Path) -> Vec<Warning> {
    let mut files = vec![
        ("junit.xml", junit_xml(suite)),
        ("summary.md", Ok(markdown(suite).into_bytes())),
        ("matrix.html", html(suite)),
    ];
    files.extend(sweep::files(suite));
    let write = |(file, content): (&str, Result<Vec<u8>, String>)| {
        let written =
            content.and_then(|bytes| write_atomically(&dir.join(file), &bytes).map_err(|e| e.to_string()));
        written.err().map(|why| Warning { file: file.to_owned(), why })
    };
    files.into_iter().filter_map(write).collect()
}

fn junit_xml(suite: &SuiteResult) -> Result<Vec<u8>, String> {
    let case = |result: &CellResult| {
        let mut case = TestCase::new(result.cell.name.as_str(), status(result));
        case.set_classname(suite.name.as_str()).set_time(Duration::from_millis(result.took_ms()));
        case
    };
    junit::document(&suite.name, suite.cells.iter().map(case).collect())
}

fn status(result: &CellResult) -> TestCaseStatus {
    let mut status = match (&result.state, &result.cell.quarantine) {
        (CellState::Judged { outcome: Outcome::Expected }, _) => return TestCaseStatus::success(),
        (CellState::Skipped, _) => TestCaseStatus::skipped(),
        (_, Some(reason)) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("in quarantine: {reason}; {}: {}", result.came_to(), result.remark()));
            return status;
        }
        (CellState::Judged { outcome }, None) => {
            let judgement = Judgement { outcome: *outcome, reasons: result.reasons.clone() };
            return junit::status(
                &judgement,
                &result.run().map(|run| format!("see {run}")).unwrap_or_default(),
            );
        }
        (CellState::Broken { .. } | CellState::NotRun, None) => {
            TestCaseStatus::non_success(NonSuccessKind::Error)
        }
    };
    status.set_message(result.remark());
    status
}

fn markdown(suite: &SuiteResult) -> String {
    let mut text =
        format!("### {}\n\n{}\n\n{}\n", escape(&suite.name), escape(&suite.description), suite.totals());
    let (clean, other): (Vec<_>, Vec<_>) = suite.cells.iter().partition(|cell| cell.word() == "passed");
    if !other.is_empty() {
        text += "\n| cell | came to | why |\n|---|---|---|\n";
        other.iter().for_each(|result| text += &row(result));
    }
    if !clean.is_empty() {
        text += "\n<details><summary>Passed</summary>\n\n| cell | came to | found, or how much it proves |\n|---|---|---|\n";
        clean.iter().for_each(|result| text += &row(result));
        text += "\n</details>\n";
    }
    text
}

fn row(result: &CellResult) -> String {
    let quarantine = if result.cell.quarantine.is_some() { " (in quarantine)" } else { "" };
    format!(
        "| {} | {}{quarantine} | {} |\n",
        escape(&result.cell.name),
        result.came_to(),
        escape(&result.remark())
    )
}

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'s> {
    style: &'static str,
    suite: &'s SuiteResult,
    totals: String,
    matrix: Matrix<'s>,
    sweep: Option<String>,
    version: &'static str,
}

impl Page<'_> {
    /// The class by which a cell's colour is chosen.
    fn class(&self, result: &CellResult) -> &'static str {
        match result.word() {
            "passed" => "valid",
            "failed" | "missing" | "broken" => "not-valid",
            "unknown" | "not run" => "unknown",
            _ => "skipped",
        }
    }

    /// What tells the cell from others in its place: ttl, seed.
    fn apart(&self, result: &CellResult) -> String {
        result.cell.name.split_once(' ').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    }

    /// A link to the report of the cell's last run, if there is one.
    fn link(&self, result: &CellResult) -> Option<String> {
        result.run().map(|run| format!("{}/report.html", percent_encoded(run)))
    }

    fn bound(&self, result: &CellResult) -> String {
        let clean = result.found.is_empty() && result.word() == "passed";
        if clean { words::bound(result.holds).unwrap_or_default() } else { result.remark() }
    }
}

/// A relative path as a link.
fn percent_encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn html(suite: &SuiteResult) -> Result<Vec<u8>, String> {
    let page = Page {
        style: include_str!("../../assets/page.css"),
        suite,
        totals: suite.totals(),
        matrix: Matrix::new(suite),
        sweep: sweep::svg(suite),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().map(String::into_bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_suite_is_written_for_people_and_machines() {
        let dir = tempfile::tempdir().unwrap();
        let suite = samples::suite();
        assert_eq!(write(&suite, dir.path()), []);
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let junit = read("junit.xml");
        for expected in [
            "tests=\"5\"",
            "failures=\"1\"",
            "errors=\"1\"",
            "skipped=\"1\"",
            "redis-server is not installed",
        ] {
            assert!(junit.contains(expected), "{expected}: {junit}");
        }
        let summary = read("summary.md");
        assert!(summary.contains("5 cells: 2 passed, 1 failed, 1 unknown, 1 skipped"), "{summary}");
        assert!(
            summary.contains("| redis/counter/none/none | passed | 300 holds without a violation"),
            "{summary}"
        );
        assert!(read("matrix.html").contains("runs/redis_counter/latest/report.html"));
    }

    #[test]
    fn names_with_markup_do_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let mut suite = samples::suite();
        suite.name = "<script>".to_owned();
        suite.cells[0].cell.lock = "exec:<img src=x>".to_owned();
        suite.cells[0].cell.name = "exec:<img src=x>/a b\u{1}".to_owned();
        suite.cells[0].attempts[0].run = Some("runs/\"><script>".to_owned());
        assert_eq!(write(&suite, dir.path()), []);
        for file in ["junit.xml", "summary.md", "matrix.html"] {
            let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
            assert!(!text.contains("<script") && !text.contains("<img"), "{file}: {text}");
        }
    }
}
