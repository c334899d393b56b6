//! How is a plot laid out? Panels above each other on one time axis, faults shaded across them, the legend
//! below.

use crate::{
    draw::{
        axis, font,
        legend::{self, Entries},
        palette::Color,
        scene::{Align, Rect, Scene, Shape},
        signs::{self, FAULT_ALPHA, Mark, RADIUS},
    },
    recording::{Fault, Recording},
};

const WIDTH: f64 = 1_200.0;
const MARGIN: f64 = 18.0;
const GUTTER: f64 = 78.0;
const TITLE_ROW: f64 = 40.0;
const FAULT_ROW: f64 = 18.0;
/// Above a panel, for its title.
const PANEL_TITLE: f64 = 28.0;
const PANEL: f64 = 130.0;
const AXIS_ROW: f64 = 34.0;
const TEXT_SIZE: f64 = 11.0;
const FAULTS_MAX: usize = 200;

/// How values go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero.
    Linear,
    /// By powers of ten.
    Logarithmic,
}

/// A mark in a panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: u64,
    pub(super) value: f64,
    pub(super) mark: Mark,
    pub(super) color: Color,
    /// Part of a finding's proof.
    pub(super) ringed: bool,
}

/// Values over time, in one panel.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) scale: Scale,
    /// How a value is written at the axis, given the distance between two ticks.
    pub(super) unit: fn(f64, f64) -> String,
    pub(super) points: Vec<Point>,
    /// Each drawn through its points in order.
    pub(super) lines: Vec<(Color, Vec<(u64, f64)>)>,
}

impl Panel {
    fn values(&self) -> impl Iterator<Item = f64> {
        let on_lines = self.lines.iter().flat_map(|(_, points)| points.iter().map(|(_, value)| *value));
        self.points.iter().map(|point| point.value).chain(on_lines)
    }

    /// The least and the greatest value of the axis.
    fn range(&self) -> (f64, f64) {
        let most = self.values().fold(0.0, f64::max);
        match self.scale {
            Scale::Linear => (0.0, if most > 0.0 { most * 1.08 } else { 1.0 }),
            Scale::Logarithmic => {
                let least = self.values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                let least = if least.is_finite() { least } else { 1.0 };
                let from = 10f64.powf(least.log10().floor());
                (from, 10f64.powf(most.max(from * 10.0).log10().ceil()))
            }
        }
    }

    fn ticks(&self, (from, until): (f64, f64)) -> Vec<f64> {
        match self.scale {
            Scale::Linear => axis::ticks(from, until, 4),
            Scale::Logarithmic => {
                let (first, last) = (from.log10().round() as i32, until.log10().round() as i32);
                let step = ((last - first) / 5 + 1).max(1) as usize;
                (first..=last).step_by(step).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

/// A whole plot.
pub(super) struct Chart<'c> {
    pub(super) title: String,
    pub(super) panels: Vec<Panel>,
    pub(super) legend: Entries<'c>,
}

impl Chart<'_> {
    /// Lays the plot out.
    pub(super) fn scene(&self, recording: &Recording) -> Scene {
        let top = MARGIN + TITLE_ROW + FAULT_ROW;
        let plots_end = top + self.panels.len() as f64 * (PANEL_TITLE + PANEL);
        let text_width = WIDTH - 2.0 * MARGIN;
        let legend_top = plots_end + AXIS_ROW;
        let height = legend_top + legend::height(self.legend, text_width) + MARGIN;
        let mut scene = Scene::new(WIDTH, height);
        let title = font::fit(&self.title, 15.0, text_width);
        scene.label((MARGIN, MARGIN + 8.0), Align::Left, &title, 15.0, Color::Ink);
        let time = Time { end: recording.end.max(1), left: MARGIN + GUTTER, right: WIDTH - MARGIN };
        for (place, panel) in self.panels.iter().enumerate() {
            let top = top + place as f64 * (PANEL_TITLE + PANEL) + PANEL_TITLE;
            let rect = Rect::new(time.left, top, time.right, top + PANEL);
            scene.fill(rect, Color::Lane, 1.0);
            draw_faults(&mut scene, recording, &time, rect);
            draw_panel(&mut scene, panel, &time, rect);
        }
        name_faults(&mut scene, recording, &time, MARGIN + TITLE_ROW);
        draw_time_axis(&mut scene, &time, plots_end);
        legend::draw(&mut scene, self.legend, (MARGIN, legend_top), text_width);
        scene
    }
}

/// The time axis: the whole run.
struct Time {
    end: u64,
    left: f64,
    right: f64,
}

impl Time {
    fn x(&self, at: u64) -> f64 {
        self.left + (at as f64 / self.end as f64).min(1.0) * (self.right - self.left)
    }
}

fn draw_faults(scene: &mut Scene, recording: &Recording, time: &Time, rect: Rect) {
    for (left, right) in bands(&recording.faults, time) {
        scene.fill(Rect { left, right, ..rect }, Color::Fault, FAULT_ALPHA);
    }
}

/// The stretches in which a fault is in force; those that touch are one.
fn bands(faults: &[Fault], time: &Time) -> Vec<(f64, f64)> {
    let mut bands: Vec<(f64, f64)> = Vec::new();
    for fault in faults {
        let left = time.x(fault.begin).min(time.right - 1.0);
        let right = time.x(fault.end).max(left + 1.0);
        match bands.last_mut() {
            Some(last) if as_one(last, left) => last.1 = last.1.max(right),
            _ => bands.push((left, right)),
        }
    }
    bands.truncate(FAULTS_MAX);
    bands
}

/// Closer than a pixel: no eye tells them apart.
fn as_one(last: &(f64, f64), left: f64) -> bool {
    left - last.1 < 1.0
}

/// Names the faults above the first panel, as far as there is room.
fn name_faults(scene: &mut Scene, recording: &Recording, time: &Time, y: f64) {
    for fault in recording.faults.iter().take(FAULTS_MAX) {
        let text = format!("{} {}", fault.f, fault.targets.join(" "));
        let text = font::fit(&text, TEXT_SIZE, 220.0);
        let x = time.x(fault.begin);
        if x + font::width(&text, TEXT_SIZE) <= time.right {
            scene.label((x, y + FAULT_ROW / 2.0), Align::Left, &text, TEXT_SIZE, Color::Muted);
        }
    }
}

fn draw_panel(scene: &mut Scene, panel: &Panel, time: &Time, rect: Rect) {
    scene.label((rect.left, rect.top - 10.0), Align::Left, &panel.title, TEXT_SIZE + 1.0, Color::Ink);
    let (from, until) = panel.range();
    let inner = Rect { top: rect.top + RADIUS + 1.0, bottom: rect.bottom - RADIUS - 1.0, ..rect };
    let y = |value: f64| {
        let share = match panel.scale {
            Scale::Linear => (value - from) / (until - from),
            Scale::Logarithmic => (value.max(from).log10() - from.log10()) / (until.log10() - from.log10()),
        };
        inner.bottom - share.clamp(0.0, 1.0) * inner.height()
    };
    let ticks = panel.ticks((from, until));
    let step = ticks.get(1).map_or(until - from, |second| second - ticks[0]);
    for tick in ticks {
        let y = y(tick);
        scene.add(Shape::Line {
            points: vec![(rect.left, y), (rect.right, y)],
            color: Color::Grid,
            stroke: 1,
            alpha: 0.6,
        });
        let text = (panel.unit)(tick, step);
        scene.label((rect.left - 8.0, y), Align::Right, &text, TEXT_SIZE, Color::Muted);
    }
    for (color, line) in &panel.lines {
        let points = line.iter().map(|(at, value)| (time.x(*at), y(*value))).collect();
        scene.add(Shape::Line { points, color: *color, stroke: 2, alpha: 1.0 });
    }
    for point in &panel.points {
        let x = time.x(point.at).clamp(rect.left + RADIUS, rect.right - RADIUS - 4.0);
        signs::draw_mark(scene, point.mark, (x, y(point.value)), point.color);
        if point.ringed {
            signs::draw_ring(scene, (x, y(point.value)));
        }
    }
}

fn draw_time_axis(scene: &mut Scene, time: &Time, y: f64) {
    let ticks = axis::ticks(0.0, time.end as f64, 10);
    let step = ticks.get(1).map_or(time.end as f64, |second| second - ticks[0]);
    for tick in ticks {
        let x = time.x(tick as u64);
        scene.line(&[(x, y), (x, y + 4.0)], Color::Grid, 1);
        let text = axis::duration(tick, step);
        let half = font::width(&text, TEXT_SIZE) / 2.0;
        scene.label((x.min(WIDTH - half - 1.0), y + 14.0), Align::Center, &text, TEXT_SIZE, Color::Muted);
    }
}
