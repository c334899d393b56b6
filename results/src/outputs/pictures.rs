//! `timeline`, `latency`, `rate`, `tokens`: the pictures, as SVG and PNG.

use super::{Output, item, write_file};
use crate::{
    draw::{paint, scene::Scene},
    finished::Finished,
    plots::PLOTS,
    render::Warning,
    store::RunDir,
    timeline,
};

pub(super) const OUTPUT: Output = Output {
    item: item(
        "pictures",
        "the timeline, and plots of latency, rate and tokens, as SVG and PNG",
        "The timeline shows the window round the first finding; the plots show the whole run with its faults shaded. \
         The SVGs follow the reader's light or dark theme. A plot without anything to show is left out.",
    ),
    write,
};

fn write(run: &RunDir, finished: &Finished) -> Vec<Warning> {
    let test = finished.name();
    let timeline = timeline::scene(&finished.recording, Some(&finished.verdict));
    let mut warnings = paint_files(run, "timeline", &format!("Timeline of {test}"), &timeline);
    for plot in PLOTS {
        match (plot.scene)(&finished.recording, Some(&finished.verdict)) {
            Some(scene) => {
                warnings.extend(paint_files(run, plot.name, &format!("{} of {test}", plot.title), &scene))
            }
            None => remove_files(run, plot.name),
        }
    }
    warnings
}

fn paint_files(run: &RunDir, name: &str, title: &str, scene: &Scene) -> Vec<Warning> {
    let svg = paint::svg(scene, title).map(String::into_bytes).map_err(|error| error.to_string());
    let png = paint::png(scene).map_err(|error| error.to_string());
    let mut warnings = write_file(run, &format!("{name}.svg"), svg);
    warnings.extend(write_file(run, &format!("{name}.png"), png));
    warnings
}

/// Removes a picture of an earlier rendering that has nothing to show any more.
fn remove_files(run: &RunDir, name: &str) {
    for ending in ["svg", "png"] {
        // Mostly there is none.
        let _ = std::fs::remove_file(run.path().join(format!("{name}.{ending}")));
    }
}
