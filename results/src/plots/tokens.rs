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
const COLUMNS: u64 = 160;

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
    let panels: Vec<_> = PANELS.iter().flat_map(|panel| panels(recording, panel, &proves)).collect();
    if panels.is_empty() {
        return None;
    }
    let title = format!("{}: fencing tokens, which must go up on each lock", recording.header.test);
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

/// A kind of panel: which operations, its title, and the name by which it is split.
type Kind = (Function, &'static str, fn(&Operation) -> Option<&str>);

const PANELS: &[Kind] = &[
    (Function::Acquire, "tokens of grants", |operation| operation.lock.as_deref()),
    (Function::Write, "tokens of writes", |operation| operation.key.as_deref()),
];

/// Of each kind the busiest few; the others are said to be left out.
const NAMES_MAX: usize = 3;

fn panels(
    recording: &Recording,
    (f, title, name): &Kind,
    proves: &impl Fn(&Operation) -> bool,
) -> Vec<Panel> {
    let mut by_name: BTreeMap<Option<&str>, Vec<&Operation>> = BTreeMap::new();
    for operation in
        recording.operations.iter().filter(|operation| operation.f == *f && operation.token.is_some())
    {
        by_name.entry(name(operation)).or_default().push(operation);
    }
    let mut named: Vec<_> = by_name.into_iter().collect();
    named.sort_by_key(|(_, operations)| std::cmp::Reverse(operations.len()));
    let left_out = named.len().saturating_sub(NAMES_MAX);
    named.truncate(NAMES_MAX);
    named.sort_by_key(|(name, _)| *name);
    let several = named.len() > 1;
    let (last, mut panels) = (named.len(), Vec::new());
    for (number, (name, operations)) in (1..).zip(named) {
        let of = name.filter(|_| several).map(|name| format!(", {name}")).unwrap_or_default();
        let rest = if number == last && left_out > 0 {
            format!(" ({left_out} more left out)")
        } else {
            String::new()
        };
        panels.extend(panel(recording, &operations, format!("{title}{of}{rest}"), proves));
    }
    panels
}

fn panel(
    recording: &Recording,
    operations: &[&Operation],
    title: String,
    proves: &impl Fn(&Operation) -> bool,
) -> Option<Panel> {
    let mut shown: BTreeMap<(u64, Outcome, bool), &Operation> = BTreeMap::new();
    for operation in operations {
        let column = operation.end.saturating_mul(COLUMNS) / recording.end.max(1);
        shown.entry((column, operation.outcome, proves(operation))).or_insert(operation);
    }
    let point = |(key, operation): (&(u64, Outcome, bool), &&Operation)| {
        let (mark, color) = (mark_of(operation)?, color_of(operation));
        Some(Point { at: operation.end, value: operation.token? as f64, mark, color, ringed: key.2 })
    };
    let points: Vec<_> = shown.iter().filter_map(point).collect();
    let unit = |value, _| axis::number(value);
    let panel = Panel { title, scale: Scale::Linear, unit, points, lines: Vec::new() };
    (!panel.points.is_empty()).then_some(panel)
}
