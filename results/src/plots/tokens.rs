//! `tokens.svg`: do tokens go up? Those of grants, and those that came with writes.

use std::collections::{BTreeMap, BTreeSet};

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

pub(crate) const PLOT: Plot = Plot { name: "tokens", title: "Tokens", scene };

/// Columns in which the first operation of each kind and outcome stands for the rest.
const COLUMNS: u64 = 240;

fn scene(recording: &Recording, verdict: Option<&Verdict>) -> Option<Scene> {
    let witness: BTreeSet<u64> = verdict
        .iter()
        .flat_map(|verdict| &verdict.anomalies)
        .flat_map(|anomaly| anomaly.witness.iter().copied())
        .collect();
    let proves = |operation: &Operation| {
        witness.contains(&operation.index)
            || operation.completion.is_some_and(|index| witness.contains(&index))
    };
    let grants = panel(recording, &Function::Acquire, "tokens of grants", &proves);
    let writes = panel(recording, &Function::Write, "tokens of writes", &proves);
    let panels: Vec<_> = [grants, writes].into_iter().flatten().collect();
    if panels.is_empty() {
        return None;
    }
    let title = format!("{}: fencing tokens, which must go up", recording.header.test);
    let legend = [
        (Sign::Mark(Mark::Acquire, Color::Done), "granted"),
        (Sign::Mark(Mark::Write, Color::Done), "write accepted"),
        (Sign::Mark(Mark::Write, Color::Rejected), "write turned away"),
        (Sign::Mark(Mark::Write, Color::Unknown), "outcome unknown"),
        (Sign::Finding, "part of a finding"),
        (Sign::Fault, "fault in force"),
    ];
    Some(Chart { title, panels, legend: &legend }.scene(recording))
}

fn panel(
    recording: &Recording,
    f: &Function,
    title: &str,
    proves: &impl Fn(&Operation) -> bool,
) -> Option<Panel> {
    let mut shown: BTreeMap<(u64, Outcome, bool), &Operation> = BTreeMap::new();
    let with_token = |operation: &&Operation| operation.f == *f && operation.token.is_some();
    for operation in recording.operations.iter().filter(with_token) {
        let column = operation.end.saturating_mul(COLUMNS) / recording.end.max(1);
        shown.entry((column, operation.outcome, proves(operation))).or_insert(operation);
    }
    let point = |(key, operation): (&(u64, Outcome, bool), &&Operation)| {
        let (mark, color) = (mark_of(operation)?, color_of(operation));
        Some(Point { at: operation.end, value: operation.token? as f64, mark, color, ringed: key.2 })
    };
    let points: Vec<_> = shown.iter().filter_map(point).collect();
    let unit = |value, _| axis::number(value);
    let panel = Panel { title: title.to_owned(), scale: Scale::Linear, unit, points, lines: Vec::new() };
    (!panel.points.is_empty()).then_some(panel)
}
