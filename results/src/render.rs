//! What does a finished run directory show? Everything that is drawn from it, file by file.

use std::fmt;

use crate::{finished::Finished, store::RunDir};
pub use crate::{
    finished::FinishedError,
    outputs::{OUTPUTS, Output},
};

/// A file that could not be drawn. It never changes a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file's name within the run directory.
    pub file: String,
    /// Why it is missing.
    pub why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not drawn: {}", self.file, self.why)
    }
}

/// Draws all that a finished run directory shows, each file for itself: one that fails does not keep the
/// others from being drawn.
#[must_use]
pub fn render(run: &RunDir) -> Vec<Warning> {
    match try_render(run, OUTPUTS) {
        Ok(warnings) => warnings,
        Err(error) => vec![Warning { file: "everything".to_owned(), why: error.to_string() }],
    }
}

/// Draws some of the outputs, for a command that was asked for them.
///
/// # Errors
/// [`FinishedError`] if the run directory is so broken that nothing can be drawn.
pub fn try_render<'o>(
    run: &RunDir,
    outputs: impl IntoIterator<Item = &'o Output>,
) -> Result<Vec<Warning>, FinishedError> {
    let finished = Finished::read(run)?;
    Ok(outputs.into_iter().flat_map(|output| output.write(run, &finished)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{samples, store::Store};

    fn run_with(history: &str) -> (tempfile::TempDir, RunDir) {
        let dir = tempfile::tempdir().unwrap();
        let run = Store::open(dir.path()).unwrap().create_run(&samples::plan()).unwrap();
        std::fs::write(run.history_path(), history).unwrap();
        (dir, run)
    }

    #[test]
    fn a_finished_run_gets_its_pictures_and_witnesses() {
        let (_dir, run) = run_with(&samples::stale_write());
        run.write_verdict(&samples::stale_write_verdict()).unwrap();
        assert_eq!(render(&run), []);
        let witness = std::fs::read_to_string(run.path().join("witness-1.jsonl")).unwrap();
        assert_eq!(witness.lines().count(), 3, "the header and two events: {witness}");
        for file in ["timeline.svg", "timeline.png", "latency.svg", "rate.png", "tokens.svg", "report.html"] {
            assert!(run.path().join(file).metadata().unwrap().len() > 1_000, "{file}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_a_warning() {
        let (_dir, run) = run_with("not a history");
        let warnings = render(&run);
        assert_eq!(warnings.len(), 1);
        let text = warnings[0].to_string();
        assert!(text.starts_with("everything was not drawn: ") && text.contains("line 1"), "{text}");
        std::fs::write(run.history_path(), samples::stale_write()).unwrap();
        std::fs::write(run.path().join("verdict.json"), "{").unwrap();
        assert!(render(&run)[0].why.contains("verdict.json is not valid"));
    }

    #[test]
    fn names_with_markup_do_no_harm() {
        let history = samples::stale_write().replace("daily-sales", "<script>alert(1)</script>");
        let (_dir, run) = run_with(&history);
        let mut plan = samples::plan();
        plan.name = "<img src=x onerror=alert(2)>".to_owned();
        plan.command = "fencepost run --lock 'exec:</code><script>'".to_owned();
        run.write_plan(&plan).unwrap();
        let mut verdict = samples::stale_write_verdict();
        verdict.anomalies[0].lock = Some("<script>alert(3)</script>".to_owned());
        verdict.anomalies[0].text = "\u{1}<b>]]>".to_owned();
        run.write_verdict(&verdict).unwrap();
        assert_eq!(render(&run), []);
        for file in ["report.html", "timeline.svg", "latency.svg", "junit.xml", "summary.md"] {
            let text = std::fs::read_to_string(run.path().join(file)).unwrap();
            // Within a Markdown code block markup is text.
            let text = text.split("```").next().unwrap();
            for harm in ["<script", "<img", "<b>"] {
                assert!(!text.contains(harm), "{harm} in {file}");
            }
        }
    }

    #[test]
    fn a_run_without_a_verdict_can_be_looked_at() {
        let (_dir, run) = run_with(&samples::stale_write());
        assert_eq!(render(&run), []);
        let page = std::fs::read_to_string(run.path().join("report.html")).unwrap();
        assert!(page.contains("no verdict yet") && page.contains("Unfinished</span> so far "), "{page}");
        assert!(!page.contains("Judged:") && !page.contains("as expected"), "it is not judged");
        let summary = std::fs::read_to_string(run.path().join("summary.md")).unwrap();
        assert!(summary.contains("unfinished, so far ") && !summary.contains("As expected"), "{summary}");
        let junit = std::fs::read_to_string(run.path().join("junit.xml")).unwrap();
        assert!(junit.contains("errors=\"1\"") && junit.contains("no verdict yet"), "{junit}");
        assert!(!run.path().join("verdict.json").exists(), "drawing makes no verdict");
    }

    #[test]
    fn the_page_loads_nothing() {
        let (_dir, run) = run_with(&samples::busy_run(50, 3));
        assert_eq!(render(&run), []);
        let page = std::fs::read_to_string(run.path().join("report.html")).unwrap();
        for from_elsewhere in ["src=", "<link", "@import", "url(", "<script"] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
    }

    #[test]
    fn a_place_that_is_taken_is_a_warning() {
        let (_dir, run) = run_with(&samples::stale_write());
        std::fs::create_dir(run.path().join("timeline.svg")).unwrap();
        let warnings = render(&run);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(run.path().join("timeline.png").is_file());
    }
}
