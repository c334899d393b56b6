//! Where does everything go? All boxes are computed before anything is drawn.

use fencepost_checker::verdict::Verdict;

use super::view::View;
use crate::{
    draw::{
        axis, font, legend,
        palette::Color,
        scene::{Align, Rect, Scene, Shape},
    },
    recording::{Fault, Hold, same_process},
    words,
};

const WIDTH: f64 = 1_200.0;
const MARGIN: f64 = 18.0;
const TITLE_SIZE: f64 = 15.0;
const TITLE_ROW: f64 = 20.0;
const TITLE_ROWS_MAX: usize = 4;
const TEXT_SIZE: f64 = 12.5;
/// Labels within lanes.
pub(super) const LABEL_SIZE: f64 = 11.0;
const NAME_WIDTH_MAX: f64 = 170.0;
const LANE_GAP: f64 = 8.0;
/// A row of holds in a lock lane.
pub(super) const HOLD_ROW: f64 = 24.0;
const HOLD_ROWS_MAX: usize = 6;
/// The row of a client lane that names faults.
pub(super) const FAULT_ROW: f64 = 17.0;
const CLIENT_LANE: f64 = 50.0;
const RESOURCE_LANE: f64 = 44.0;
const FINDING_ROW: f64 = 24.0;

/// What a lane shows.
pub(super) enum Lane {
    /// The holds of a lock: each with its row.
    Lock(String),
    /// A client.
    Client(String),
    /// A key of the resource.
    Key(String),
}

/// A lane and its place.
pub(super) struct Place {
    pub(super) lane: Lane,
    pub(super) rect: Rect,
    /// Whether it has a row for the names of faults.
    pub(super) fault_row: bool,
    /// The row of each hold, by attempt, of a lock lane; absent: no room.
    pub(super) rows: Vec<(u64, usize)>,
}

/// All boxes of a timeline.
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) places: Vec<Place>,
    /// The part of the lanes in which time runs.
    pub(super) plot: Rect,
    pub(super) finding_row: f64,
    /// The upper left corner of the legend.
    pub(super) legend: (f64, f64),
    window: (u64, u64),
    title: Vec<String>,
    story_top: f64,
    story: Vec<String>,
    footer: Vec<String>,
    footer_top: f64,
}

impl Layout {
    /// Computes all boxes.
    pub(super) fn new(view: &View<'_>, verdict: Option<&Verdict>) -> Self {
        let text_width = WIDTH - 2.0 * MARGIN;
        let story =
            story(verdict).map(|text| font::wrap(&text, TEXT_SIZE, text_width, 3)).unwrap_or_default();
        let title = font::wrap(&title(view, verdict), TITLE_SIZE, text_width, TITLE_ROWS_MAX);
        let story_top = MARGIN + 4.0 + title.len() as f64 * TITLE_ROW;
        let finding_row = story_top + story.len() as f64 * TEXT_SIZE * 1.4 + 6.0;
        let lanes_top = finding_row + FINDING_ROW;
        let name_width = lane_names(view).map(|name| font::width(name, TEXT_SIZE)).fold(60.0, f64::max);
        let left = MARGIN + name_width.min(NAME_WIDTH_MAX) + 12.0;
        let (mut places, mut top) = (Vec::new(), lanes_top);
        for (lane, height, fault_row, rows) in lanes(view) {
            let rect = Rect::new(left, top, WIDTH - MARGIN, top + height);
            places.push(Place { lane, rect, fault_row, rows });
            top += height + LANE_GAP;
        }
        let plot = Rect::new(left, lanes_top, WIDTH - MARGIN, top - LANE_GAP);
        let legend = (MARGIN, top + 30.0);
        let footer_top = legend.1 + legend::height(super::SIGNS, text_width) + 8.0;
        let footer = font::wrap(&footer(view), LABEL_SIZE, text_width, 3);
        let height = footer_top + footer.len() as f64 * LABEL_SIZE * 1.5 + MARGIN;
        let window = view.window;
        let (width, height) = (WIDTH, height.ceil());
        Self {
            width,
            height,
            places,
            plot,
            finding_row,
            legend,
            window,
            title,
            story_top,
            story,
            footer,
            footer_top,
        }
    }

    pub(super) fn legend_width(&self) -> f64 {
        self.width - 2.0 * self.legend.0
    }

    /// The place of an instant on the time axis; what is outside lies on the border.
    pub(super) fn x(&self, at: u64) -> f64 {
        let (from, until) = self.window;
        let share = at.saturating_sub(from) as f64 / (until - from).max(1) as f64;
        self.plot.left + share.min(1.0) * self.plot.width()
    }

    /// Draws all that is not data: title, lanes, axis, footer.
    pub(super) fn draw_frame(&self, scene: &mut Scene) {
        for (place, line) in self.title.iter().enumerate() {
            let y = MARGIN + 8.0 + place as f64 * TITLE_ROW;
            scene.label((MARGIN, y), Align::Left, line, TITLE_SIZE, Color::Ink);
        }
        for (place, line) in self.story.iter().enumerate() {
            let y = self.story_top + 4.0 + place as f64 * TEXT_SIZE * 1.4;
            scene.label((MARGIN, y), Align::Left, line, TEXT_SIZE, Color::Ink);
        }
        for place in &self.places {
            scene.fill(place.rect, Color::Lane, 1.0);
            let (Lane::Lock(name) | Lane::Client(name) | Lane::Key(name)) = &place.lane;
            let name = font::fit(name, TEXT_SIZE, NAME_WIDTH_MAX);
            let at = (self.plot.left - 10.0, place.rect.middle());
            scene.label(at, Align::Right, &name, TEXT_SIZE, Color::Ink);
        }
        self.draw_axis(scene);
        for (place, line) in self.footer.iter().enumerate() {
            let y = self.footer_top + 8.0 + place as f64 * LABEL_SIZE * 1.5;
            scene.label((MARGIN, y), Align::Left, line, LABEL_SIZE, Color::Muted);
        }
    }

    fn draw_axis(&self, scene: &mut Scene) {
        let (from, until) = (self.window.0 as f64, self.window.1 as f64);
        let ticks = axis::ticks(from, until, 10);
        let step = ticks.get(1).map_or(until - from, |second| second - ticks[0]);
        for tick in ticks {
            let x = self.x(tick as u64);
            let points = vec![(x, self.plot.top), (x, self.plot.bottom + 4.0)];
            scene.add(Shape::Line { points, color: Color::Grid, stroke: 1, alpha: 0.6 });
            let text = axis::duration(tick, step);
            scene.label((x, self.plot.bottom + 14.0), Align::Center, &text, LABEL_SIZE, Color::Muted);
        }
    }
}

fn lane_names<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v str> {
    view.locks.iter().chain(&view.clients).chain(&view.keys).map(String::as_str)
}

type Sized = (Lane, f64, bool, Vec<(u64, usize)>);

fn lanes(view: &View<'_>) -> Vec<Sized> {
    let mut lanes = Vec::new();
    for lock in &view.locks {
        let holds: Vec<_> = view.holds.iter().copied().filter(|hold| hold.lock == *lock).collect();
        let rows = pack(&holds);
        let used = rows.iter().map(|(_, row)| row + 1).max().unwrap_or(1);
        let fault_row = !server_faults(view).is_empty();
        lanes.push((
            Lane::Lock(lock.clone()),
            lane_height(fault_row) + used as f64 * HOLD_ROW + 4.0,
            fault_row,
            rows,
        ));
    }
    for client in &view.clients {
        let fault_row = !view.faults_of(client).is_empty();
        lanes.push((
            Lane::Client(client.clone()),
            lane_height(fault_row) + CLIENT_LANE,
            fault_row,
            Vec::new(),
        ));
    }
    for key in &view.keys {
        let fault_row = !resource_faults(view).is_empty();
        lanes.push((Lane::Key(key.clone()), lane_height(fault_row) + RESOURCE_LANE, fault_row, Vec::new()));
    }
    lanes
}

fn lane_height(fault_row: bool) -> f64 {
    if fault_row { FAULT_ROW } else { 0.0 }
}

/// Faults of the protected resource.
pub(super) fn resource_faults<'r>(view: &View<'r>) -> Vec<&'r Fault> {
    let strikes = |fault: &&&Fault| fault.targets.iter().any(|target| target.starts_with("resource"));
    view.faults.iter().filter(strikes).copied().collect()
}

/// Faults of neither a client that is shown nor the resource: those of the lock's servers and of links.
pub(super) fn server_faults<'r>(view: &View<'r>) -> Vec<&'r Fault> {
    let is_client = |target: &String| {
        let looks = target.starts_with('c') && target[1..].starts_with(|c: char| c.is_ascii_digit());
        looks || view.clients.iter().any(|client| same_process(target, client))
    };
    let strikes = |fault: &&&Fault| {
        !fault.targets.iter().all(|target| is_client(target) || target.starts_with("resource"))
    };
    view.faults.iter().filter(strikes).copied().collect()
}

/// Holds in as few rows as keep them apart, each in the first row that is free.
fn pack(holds: &[&Hold]) -> Vec<(u64, usize)> {
    let mut free_from: Vec<u64> = Vec::new();
    let mut rows = Vec::new();
    for hold in holds {
        let row = free_from.iter().position(|end| *end <= hold.called).unwrap_or(free_from.len());
        if row >= HOLD_ROWS_MAX {
            continue;
        }
        if row == free_from.len() {
            free_from.push(0);
        }
        free_from[row] = hold.believed_end.max(hold.begin + 1);
        rows.push((hold.attempt, row));
    }
    rows
}

fn title(view: &View<'_>, verdict: Option<&Verdict>) -> String {
    let test = if view.test.is_empty() { "history" } else { &view.test };
    match verdict {
        Some(verdict) => {
            let word = words::valid(verdict.valid).to_lowercase();
            format!("{test} is {word}: {}", words::headline(verdict))
        }
        None => test.to_owned(),
    }
}

/// The first finding's sentence.
fn story(verdict: Option<&Verdict>) -> Option<String> {
    let first = verdict?.anomalies.iter().find(|anomaly| anomaly.count > 0)?;
    Some(format!("{}: {}", first.id, first.text))
}

fn footer(view: &View<'_>) -> String {
    let (from, until) = view.window;
    let seconds = |ns: u64| format!("{:.2} s", ns as f64 / 1e9);
    let mut text = format!(
        "Shown: {} to {} of a run of {}",
        seconds(from),
        seconds(until.min(view.end)),
        seconds(view.end)
    );
    if view.finding.is_some() {
        text += ", round the first finding";
    }
    if view.left_out.is_empty() {
        text + "; nothing in this window is left out."
    } else {
        format!("{text}. Left out in this window: {}.", view.left_out)
    }
}

impl Layout {
    /// Draws a line from top to bottom of the lanes, dashed.
    pub(super) fn draw_cut(&self, scene: &mut Scene, at: u64, color: Color) {
        const DASH: f64 = 9.0;
        let x = self.x(at);
        let mut y = self.plot.top - 4.0;
        while y < self.plot.bottom {
            let end = (y + DASH * 0.6).min(self.plot.bottom);
            scene.add(Shape::Line { points: vec![(x, y), (x, end)], color, stroke: 1, alpha: 1.0 });
            y += DASH;
        }
        scene.take(Rect::new(x - 1.0, self.plot.top, x + 1.0, self.plot.bottom));
    }
}
