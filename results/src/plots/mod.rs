//! How did a run go over time? Latency, rate and tokens, one file each, with the faults shaded.

mod chart;
pub(crate) mod latency;
pub(crate) mod rate;
pub(crate) mod tokens;

use fencepost_checker::verdict::Verdict;

use crate::{draw::scene::Scene, recording::Recording};

/// A plot: its file's name without the ending, what it shows, and how it is laid out; nothing where a run
/// has nothing to show.
pub(crate) struct Plot {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) scene: fn(&Recording, Option<&Verdict>) -> Option<Scene>,
}

/// All plots.
pub(crate) const PLOTS: &[Plot] = &[latency::PLOT, rate::PLOT, tokens::PLOT];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        draw::{paint, scene::tests::assert_tidy},
        samples,
    };

    #[test]
    fn every_plot_of_every_kind_of_run_is_tidy_and_bounded() {
        let runs = [
            ("story", samples::stale_write()),
            ("none", samples::busy_run(0, 1)),
            ("one", samples::busy_run(1, 1)),
            ("many", samples::busy_run(5_000, 6)),
        ];
        for (run, text) in runs {
            let recording = Recording::parse(text.as_bytes()).unwrap();
            for plot in PLOTS {
                let Some(scene) = (plot.scene)(&recording, Some(&samples::stale_write_verdict())) else {
                    assert_eq!(run, "none");
                    continue;
                };
                if let Some(dir) = std::env::var_os("FENCEPOST_PICTURES") {
                    let path = std::path::PathBuf::from(dir).join(format!("{}-{run}.png", plot.name));
                    std::fs::write(path, paint::png(&scene).unwrap()).unwrap();
                }
                assert_tidy(&scene);
                assert!(scene.marks() <= 2_500, "{} of {run}: {} marks", plot.name, scene.marks());
            }
        }
    }
}
