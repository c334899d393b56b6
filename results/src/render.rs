//! What does a finished run directory show? Everything that is drawn from it, file by file.

use std::fmt;

use fencepost_checker::verdict::Verdict;

use crate::{
    draw::{paint, scene::Scene},
    outputs,
    plots::PLOTS,
    recording::Recording,
    store::RunDir,
    timeline,
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
    let mut warnings = Vec::new();
    let verdict = match run.read_verdict() {
        Ok(verdict) => verdict,
        Err(error) => {
            warnings.push(Warning { file: RunDir::VERDICT.to_owned(), why: error.to_string() });
            None
        }
    };
    if let Some(verdict) = &verdict {
        warnings.extend(outputs::witness::write(run, verdict));
    }
    match Recording::read(&run.history_path()) {
        Ok(recording) => warnings.extend(draw(run, &recording, verdict.as_ref())),
        Err(error) => warnings.push(Warning { file: "timeline.svg".to_owned(), why: error.to_string() }),
    }
    warnings
}

/// Draws the pictures, as SVG and PNG.
fn draw(run: &RunDir, recording: &Recording, verdict: Option<&Verdict>) -> Vec<Warning> {
    let test = &recording.header.test;
    let timeline = timeline::scene(recording, verdict);
    let mut warnings = paint_files(run, "timeline", &format!("Timeline of {test}"), &timeline);
    for plot in PLOTS {
        match (plot.scene)(recording, verdict) {
            Some(scene) => {
                warnings.extend(paint_files(run, plot.name, &format!("{} of {test}", plot.title), &scene))
            }
            None => remove_files(run, plot.name),
        }
    }
    warnings
}

fn paint_files(run: &RunDir, name: &str, title: &str, scene: &Scene) -> Vec<Warning> {
    let svg = paint::svg(scene, title).map(String::into_bytes);
    let mut warnings = Vec::new();
    for (ending, painted) in [("svg", svg), ("png", paint::png(scene))] {
        let file = format!("{name}.{ending}");
        let written = painted
            .map_err(|error| error.to_string())
            .and_then(|bytes| run.write_file(&file, &bytes).map_err(|error| error.to_string()));
        warnings.extend(written.err().map(|why| Warning { file, why }));
    }
    warnings
}

/// Removes a picture of an earlier rendering that has nothing to show any more.
fn remove_files(run: &RunDir, name: &str) {
    for ending in ["svg", "png"] {
        // Mostly there is none.
        let _ = std::fs::remove_file(run.path().join(format!("{name}.{ending}")));
    }
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
        for file in ["timeline.svg", "timeline.png", "latency.svg", "rate.png", "tokens.svg"] {
            assert!(run.path().join(file).metadata().unwrap().len() > 1_000, "{file}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_a_warning() {
        let (_dir, run) = run_with("not a history");
        let warnings = render(&run);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].to_string().starts_with("timeline.svg was not drawn: line 1"), "{warnings:?}");
        std::fs::write(run.path().join("verdict.json"), "{").unwrap();
        assert_eq!(render(&run)[0].file, "verdict.json");
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
