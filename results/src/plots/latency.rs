//! `latency.svg`: how long did operations take? One panel a kind of operation; of each column the slowest.

use std::collections::BTreeMap;

use fencepost_checker::{history::Function, verdict::Verdict};

use super::{
    Plot,
    chart::{Chart, Panel, Point, Scale},
};
use crate::{
    draw::{
        axis,
        legend::Sign,
        palette::Color,
        scene::Scene,
        signs::{Mark, color_of, mark_of},
    },
    recording::{Operation, Outcome, Recording},
};

pub(crate) const PLOT: Plot = Plot { name: "latency", title: "Latency", scene };

/// Columns in which the slowest operation of each outcome stands for the rest.
const COLUMNS: u64 = 160;

const PANELS: &[(&[Function], &str)] = &[
    (&[Function::Acquire], "acquire"),
    (&[Function::Write, Function::Effect], "write"),
    (&[Function::Read], "read"),
    (&[Function::Renew, Function::Renewed, Function::Held], "renew and ask"),
    (&[Function::Release], "release"),
];

fn scene(recording: &Recording, _: Option<&Verdict>) -> Option<Scene> {
    let panels: Vec<_> = PANELS.iter().filter_map(|(kinds, title)| panel(recording, kinds, title)).collect();
    if panels.is_empty() {
        return None;
    }
    let title = format!("{}: how long operations took; of each instant the slowest", recording.header.test);
    let legend = [
        (Sign::Mark(Mark::Write, Color::Done), "done"),
        (Sign::Mark(Mark::Write, Color::Rejected), "turned away"),
        (Sign::Mark(Mark::Write, Color::Unknown), "outcome unknown"),
        (Sign::Mark(Mark::Acquire, Color::Muted), "lock busy"),
        (Sign::Fault, "fault in force"),
    ];
    Some(Chart { title, panels, legend: &legend }.scene(recording))
}

fn panel(recording: &Recording, kinds: &[Function], title: &str) -> Option<Panel> {
    let mut slowest: BTreeMap<(u64, Outcome), &Operation> = BTreeMap::new();
    for operation in recording.operations.iter().filter(|operation| kinds.contains(&operation.f)) {
        let column = operation.end.saturating_mul(COLUMNS) / recording.end.max(1);
        let slot = slowest.entry((column, operation.outcome)).or_insert(operation);
        if took(operation) > took(slot) {
            *slot = operation;
        }
    }
    let point = |operation: &&Operation| {
        let (mark, color) = (mark_of(operation)?, color_of(operation));
        Some(Point { at: operation.end, value: took(operation), mark, color, ringed: false })
    };
    let points: Vec<_> = slowest.values().filter_map(point).collect();
    let unit = |value, _| axis::duration(value, value);
    let panel = Panel { title: title.to_owned(), scale: Scale::Logarithmic, unit, points, lines: Vec::new() };
    (!panel.points.is_empty()).then_some(panel)
}

/// Nanoseconds; no less than one, for the logarithm.
fn took(operation: &Operation) -> f64 {
    operation.end.saturating_sub(operation.start).max(1) as f64
}
