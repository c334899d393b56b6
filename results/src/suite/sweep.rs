//! Is any lease long enough? Findings by the ratio of pause and lease, where a suite's cells vary them.

use crate::{
    draw::{
        axis, font,
        legend::{self, Sign},
        paint,
        palette::Color,
        scene::{Align, Rect, Scene, Shape},
        signs::{self, Mark, RADIUS},
    },
    suite::{
        file::length,
        result::{CellResult, SuiteResult},
    },
};

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 18.0;
const PLOT: Rect = Rect { left: 80.0, top: 70.0, right: WIDTH - MARGIN - 14.0, bottom: 360.0 };
const TEXT_SIZE: f64 = 11.0;

/// Fewer ratios make no sweep.
const RATIOS_MIN: usize = 3;

/// The signs of the leases, in their order; further ones start over.
const MARKS: [Mark; 5] = [Mark::Write, Mark::Acquire, Mark::Read, Mark::Renew, Mark::Release];

/// A cell of a sweep.
#[derive(Debug, PartialEq)]
struct Sample {
    ttl_ms: f64,
    pause_ms: f64,
    /// Findings a fault.
    share: f64,
}

impl Sample {
    fn of(result: &CellResult) -> Option<Self> {
        let ms = |text: &str| length("ttl", text).ok().map(|length| length.as_secs_f64() * 1e3);
        let ttl_ms = ms(result.cell.ttl.as_deref()?)?;
        let [fault] = result.cell.nemeses.as_slice() else { return None };
        let (_, options) = fault.split_once('?')?;
        let pause = options.split('&').find_map(|option| option.strip_prefix("for="))?;
        let pause_ms = match pause.strip_suffix("ttl") {
            Some(times) => times.parse::<f64>().ok()? * ttl_ms,
            None => ms(pause)?,
        };
        let harm: u64 = ["stale-write", "lost-update"].iter().filter_map(|id| result.found.get(*id)).sum();
        (result.faults > 0).then(|| Self {
            ttl_ms,
            pause_ms,
            share: (harm as f64 / result.faults as f64).min(1.0),
        })
    }

    fn ratio(&self) -> f64 {
        self.pause_ms / self.ttl_ms
    }
}

/// The plot's files; none if the suite is no sweep.
pub(super) fn files(suite: &SuiteResult) -> Vec<(&'static str, Result<Vec<u8>, String>)> {
    let Some(scene) = scene(suite) else { return Vec::new() };
    let svg = paint::svg(&scene, TITLE).map(String::into_bytes).map_err(|error| error.to_string());
    vec![("sweep.svg", svg), ("sweep.png", paint::png(&scene).map_err(|error| error.to_string()))]
}

/// The plot, for a page.
pub(super) fn svg(suite: &SuiteResult) -> Option<String> {
    paint::svg(&scene(suite)?, TITLE).ok()
}

const TITLE: &str = "How often a pause harmed the data, by its length in leases";

fn scene(suite: &SuiteResult) -> Option<Scene> {
    let samples: Vec<_> = suite.cells.iter().filter_map(Sample::of).collect();
    let mut ratios: Vec<f64> = samples.iter().map(Sample::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.dedup_by(|a, b| (*a - *b).abs() < 0.01);
    if ratios.len() < RATIOS_MIN {
        return None;
    }
    let mut ttls: Vec<f64> = samples.iter().map(|sample| sample.ttl_ms).collect();
    ttls.sort_by(f64::total_cmp);
    ttls.dedup();
    let most = ratios.last().copied().unwrap_or(1.0) * 1.05;
    let names: Vec<String> = ttls.iter().map(|ttl| format!("lease {} ms", axis::number(*ttl))).collect();
    let entry = |(place, name): (usize, &'_ String)| {
        (Sign::Mark(MARKS[place % MARKS.len()], Color::Finding), name.clone())
    };
    let entries: Vec<_> = names.iter().enumerate().map(entry).collect();
    let entries: Vec<(Sign, &str)> = entries.iter().map(|(sign, name)| (*sign, name.as_str())).collect();
    let legend_width = WIDTH - 2.0 * MARGIN;
    let legend_top = PLOT.bottom + 54.0;
    let mut scene = Scene::new(WIDTH, legend_top + legend::height(&entries, legend_width) + MARGIN);
    draw_frame(&mut scene, most);
    for (place, ttl) in ttls.iter().enumerate() {
        let mut line: Vec<_> = samples.iter().filter(|sample| sample.ttl_ms == *ttl).collect();
        line.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let points: Vec<_> = line.iter().map(|sample| at(sample.ratio(), sample.share, most)).collect();
        scene.add(Shape::Line { points: points.clone(), color: Color::Finding, stroke: 1, alpha: 0.5 });
        points.iter().for_each(|point| {
            signs::draw_mark(&mut scene, MARKS[place % MARKS.len()], *point, Color::Finding)
        });
    }
    legend::draw(&mut scene, &entries, (MARGIN, legend_top), legend_width);
    Some(scene)
}

fn at(ratio: f64, share: f64, most: f64) -> (f64, f64) {
    let inner = Rect { top: PLOT.top + RADIUS + 2.0, bottom: PLOT.bottom - RADIUS - 2.0, ..PLOT };
    (PLOT.left + ratio / most * PLOT.width(), inner.bottom - share * inner.height())
}

fn draw_frame(scene: &mut Scene, most: f64) {
    scene.label((MARGIN, MARGIN + 8.0), Align::Left, TITLE, 15.0, Color::Ink);
    let hint = "pauses (of holders) that led to a stale write or a lost update, in per cent";
    scene.label((PLOT.left, PLOT.top - 12.0), Align::Left, hint, TEXT_SIZE, Color::Muted);
    scene.fill(PLOT, Color::Lane, 1.0);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (_, y) = at(0.0, share, most);
        scene.line(&[(PLOT.left, y), (PLOT.right, y)], Color::Grid, 1);
        scene.label(
            (PLOT.left - 8.0, y),
            Align::Right,
            &format!("{:.0} %", share * 100.0),
            TEXT_SIZE,
            Color::Muted,
        );
    }
    for ratio in axis::ticks(0.0, most, 8) {
        let (x, _) = at(ratio, 0.0, most);
        scene.line(&[(x, PLOT.bottom), (x, PLOT.bottom + 4.0)], Color::Grid, 1);
        scene.label((x, PLOT.bottom + 14.0), Align::Center, &axis::number(ratio), TEXT_SIZE, Color::Muted);
    }
    let (x, _) = at(1.0, 0.0, most);
    scene.line(&[(x, PLOT.top), (x, PLOT.bottom)], Color::Ink, 1);
    let text = "pause as long as the lease";
    let left = x + 6.0 + font::width(text, TEXT_SIZE) <= PLOT.right;
    let (align, x) = if left { (Align::Left, x + 6.0) } else { (Align::Right, x - 6.0) };
    scene.label((x, PLOT.bottom - 12.0), align, text, TEXT_SIZE, Color::Muted);
    let below = (f64::midpoint(PLOT.left, PLOT.right), PLOT.bottom + 34.0);
    scene.label(below, Align::Center, "length of the pause, in leases", TEXT_SIZE, Color::Ink);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{draw::scene::tests::assert_tidy, samples};

    #[test]
    fn a_sweep_is_plotted_and_other_suites_are_not() {
        assert!(files(&samples::suite()).is_empty());
        let suite = samples::sweep();
        let scene = scene(&suite).unwrap();
        assert_tidy(&scene);
        if let Some(dir) = std::env::var_os("FENCEPOST_PICTURES") {
            std::fs::write(std::path::PathBuf::from(dir).join("sweep.png"), paint::png(&scene).unwrap())
                .unwrap();
        }
        assert_eq!(files(&suite).len(), 2);
    }

    #[test]
    fn a_sample_counts_pauses_in_leases() {
        let suite = samples::sweep();
        let sample = Sample::of(&suite.cells[0]).unwrap();
        assert!((sample.ratio() - 0.5).abs() < 1e-9 && sample.share == 0.0, "{sample:?}");
    }
}
