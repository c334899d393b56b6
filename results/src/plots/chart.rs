//! How is a plot laid out? A row for each kind of fault, panels above each other on one time axis, faults shaded
//! across them, the legend below.

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
/// Of one kind of fault.
const FAULT_ROW: f64 = 17.0;
const FAULT_ROWS_MAX: usize = 8;
/// Between a fault and its target's name.
const NAME_GAP: f64 = 4.0;
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
        let faults = fault_rows(&recording.faults);
        let top = MARGIN + TITLE_ROW + faults.len() as f64 * FAULT_ROW;
        let plots_end = top + self.panels.len() as f64 * (PANEL_TITLE + PANEL);
        let text_width = WIDTH - 2.0 * MARGIN;
        let legend_top = plots_end + AXIS_ROW;
        let height = legend_top + legend::height(self.legend, text_width) + MARGIN;
        let mut scene = Scene::new(WIDTH, height);
        let title = font::fit(&self.title, 15.0, text_width);
        scene.label((MARGIN, MARGIN + 8.0), Align::Left, &title, 15.0, Color::Ink);
        let names = faults.iter().map(|row| font::width(&row.name, TEXT_SIZE) + 10.0);
        let left = MARGIN + names.fold(GUTTER, f64::max);
        let time = Time { end: recording.end.max(1), left, right: WIDTH - MARGIN };
        for (place, panel) in self.panels.iter().enumerate() {
            let top = top + place as f64 * (PANEL_TITLE + PANEL) + PANEL_TITLE;
            let rect = Rect::new(time.left, top, time.right, top + PANEL);
            scene.fill(rect, Color::Lane, 1.0);
            draw_bands(&mut scene, recording.faults.iter(), &time, rect);
            draw_panel(&mut scene, panel, &time, rect);
        }
        for (place, row) in faults.iter().enumerate() {
            draw_fault_row(&mut scene, row, &time, MARGIN + TITLE_ROW + place as f64 * FAULT_ROW);
        }
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

    /// From where to where a fault is seen.
    fn band(&self, fault: &Fault) -> (f64, f64) {
        let left = self.x(fault.begin).min(self.right - 1.0);
        (left, self.x(fault.end).max(left + 1.0))
    }
}

fn draw_bands<'f>(
    scene: &mut Scene,
    faults: impl Iterator<Item = &'f Fault>,
    time: &Time,
    rect: Rect,
) -> Vec<(f64, f64)> {
    let bands = bands(faults, time);
    for (left, right) in &bands {
        scene.fill(Rect { left: *left, right: *right, ..rect }, Color::Fault, FAULT_ALPHA);
    }
    bands
}

/// The stretches in which a fault is in force; those that touch are one.
fn bands<'f>(faults: impl Iterator<Item = &'f Fault>, time: &Time) -> Vec<(f64, f64)> {
    let mut bands: Vec<(f64, f64)> = Vec::new();
    for fault in faults {
        let (left, right) = time.band(fault);
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

/// The faults of one kind.
struct FaultRow<'r> {
    name: String,
    faults: Vec<&'r Fault>,
}

/// The faults by kind, in the order in which they strike first; those beyond the last row share it.
fn fault_rows(faults: &[Fault]) -> Vec<FaultRow<'_>> {
    let mut rows: Vec<FaultRow<'_>> = Vec::new();
    for fault in faults {
        let place = rows.iter().position(|row| row.name == fault.f);
        match place.or((rows.len() == FAULT_ROWS_MAX).then_some(FAULT_ROWS_MAX - 1)) {
            Some(place) => rows[place].faults.push(fault),
            None => rows.push(FaultRow { name: fault.f.clone(), faults: vec![fault] }),
        }
    }
    for row in &mut rows {
        if row.faults.iter().any(|fault| fault.f != row.name) {
            row.name = "other faults".to_owned();
        }
        row.name = font::fit(&row.name, TEXT_SIZE, 2.0 * GUTTER);
    }
    rows
}

/// When faults of one kind were in force, and what each struck as far as there is room: within its band, or behind
/// it where the next is far enough.
fn draw_fault_row(scene: &mut Scene, row: &FaultRow<'_>, time: &Time, top: f64) {
    let rect = Rect::new(time.left, top + 1.0, time.right, top + FAULT_ROW - 1.0);
    scene.label((rect.left - 8.0, rect.middle()), Align::Right, &row.name, TEXT_SIZE, Color::Muted);
    let bands = draw_bands(scene, row.faults.iter().copied(), time, rect);
    for (place, (left, right)) in bands.iter().enumerate() {
        let within = row.faults.iter().filter(|fault| (*left..*right).contains(&time.band(fault).0));
        let mut targets: Vec<_> = within.flat_map(|fault| &fault.targets).map(String::as_str).collect();
        targets.sort_unstable();
        targets.dedup();
        let text = targets.join(" ");
        let width = font::width(&text, TEXT_SIZE);
        let next = bands.get(place + 1).map_or(time.right, |(next, _)| next - NAME_GAP);
        let from = [left + NAME_GAP, right + NAME_GAP].into_iter().zip([right - NAME_GAP, next]);
        if let Some((x, _)) = from.into_iter().find(|(from, until)| from + width <= *until) {
            scene.label((x, rect.middle()), Align::Left, &text, TEXT_SIZE, Color::Ink);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(f: &str, target: &str, (begin, end): (u64, u64)) -> Fault {
        Fault { f: f.to_owned(), targets: vec![target.to_owned()], begin, end }
    }

    /// Long faults of a server, and between them moments in which the resource crashes.
    fn recording() -> Recording {
        let mut faults = Vec::new();
        for round in 0..6 {
            let from = 100 + round * 850;
            faults.push(fault("kill-server", "lock/redis", (from, from + 510)));
            faults.push(fault("crash-resource", "resource", (from + 580, from + 590)));
        }
        faults.push(fault("pause", "c1", (200, 260)));
        faults.push(fault("pause", "c2", (250, 400)));
        faults.sort_by_key(|fault| fault.begin);
        Recording { faults, end: 5_100, ..Recording::default() }
    }

    #[test]
    fn every_name_stands_by_its_own_faults() {
        let recording = recording();
        let chart = Chart { title: "faults".to_owned(), panels: Vec::new(), legend: &[] };
        let scene = chart.scene(&recording);
        crate::draw::scene::tests::assert_tidy(&scene);
        let bands: Vec<Rect> = scene
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Fill { rect, color: Color::Fault, .. } => Some(*rect),
                _ => None,
            })
            .collect();
        assert_eq!(bands.len(), 6 + 6 + 1, "{bands:?}");
        let row = |name: &str| {
            let label = scene.labels.iter().find(|label| label.text == name).expect(name);
            (label.rect.middle(), label.rect.right)
        };
        for (name, target) in
            [("kill-server", "lock/redis"), ("crash-resource", "resource"), ("pause", "c1 c2")]
        {
            let (y, right) = row(name);
            let own: Vec<_> = bands.iter().filter(|band| band.top < y && y < band.bottom).collect();
            assert!(!own.is_empty() && own.iter().all(|band| band.left > right), "{name}");
            let told: Vec<_> = scene.labels.iter().filter(|label| label.text == target).collect();
            assert!(!told.is_empty(), "{target}");
            for label in told {
                assert_eq!(label.rect.middle(), y, "{label:?}");
                let met: Vec<_> = own.iter().filter(|band| band.meets(&label.rect)).collect();
                let inside =
                    met.len() == 1 && met[0].left <= label.rect.left && label.rect.right <= met[0].right;
                let before = own.iter().rev().find(|band| band.right <= label.rect.left);
                let behind = before.is_some_and(|band| label.rect.left - band.right < 2.0 * NAME_GAP);
                assert!(inside || met.is_empty() && behind, "{label:?} {own:?}");
            }
        }
    }

    #[test]
    fn kinds_beyond_the_last_row_share_it() {
        let faults: Vec<_> =
            (0..12).map(|kind| fault(&format!("fault-{kind}"), "c1", (kind, kind + 1))).collect();
        let rows = fault_rows(&faults);
        assert_eq!(rows.len(), FAULT_ROWS_MAX);
        assert_eq!((rows[7].name.as_str(), rows[7].faults.len()), ("other faults", 5));
        assert!(fault_rows(&[]).is_empty());
    }
}
