//! `rate.svg`: how many operations a second? Acquires and writes, by outcome.

use fencepost_checker::{history::Function, verdict::Verdict};

use super::{
    Plot,
    chart::{Chart, Panel, Scale},
};
use crate::{
    draw::{axis, legend::Sign, palette::Color, scene::Scene, signs::Mark},
    recording::{Operation, Outcome, Recording},
};

pub(crate) const PLOT: Plot = Plot { name: "rate", title: "Rate", scene };

const BINS: u64 = 60;

/// Shorter bins would show single operations, nanoseconds.
const BIN_MIN_NS: u64 = 50_000_000;

const OUTCOMES: &[(Outcome, Color)] = &[
    (Outcome::Busy, Color::Muted),
    (Outcome::Unknown, Color::Unknown),
    (Outcome::Failed, Color::Rejected),
    (Outcome::Ok, Color::Done),
];

fn scene(recording: &Recording, _: Option<&Verdict>) -> Option<Scene> {
    let kinds = [(Function::Acquire, "acquires a second"), (Function::Write, "writes a second")];
    let panels: Vec<_> = kinds.iter().filter_map(|(f, title)| panel(recording, f, title)).collect();
    if panels.is_empty() {
        return None;
    }
    let title = format!("{}: operations a second", recording.header.test);
    let legend = [
        (Sign::Mark(Mark::Write, Color::Done), "done"),
        (Sign::Mark(Mark::Write, Color::Rejected), "turned away"),
        (Sign::Mark(Mark::Write, Color::Unknown), "outcome unknown"),
        (Sign::Mark(Mark::Write, Color::Muted), "lock busy"),
        (Sign::Fault, "fault in force"),
    ];
    Some(Chart { title, panels, legend: &legend }.scene(recording))
}

fn panel(recording: &Recording, f: &Function, title: &str) -> Option<Panel> {
    let operations: Vec<_> = recording.operations.iter().filter(|operation| operation.f == *f).collect();
    if operations.is_empty() {
        return None;
    }
    let bin_ns = (recording.end / BINS).max(BIN_MIN_NS);
    let lines = OUTCOMES.iter().filter_map(|(outcome, color)| {
        let of_kind: Vec<_> = operations.iter().copied().filter(|o| o.outcome == *outcome).collect();
        (!of_kind.is_empty()).then(|| (*color, steps(&of_kind, bin_ns, recording.end)))
    });
    let unit = |value, _| axis::number(value);
    Some(Panel {
        title: title.to_owned(),
        scale: Scale::Linear,
        unit,
        points: Vec::new(),
        lines: lines.collect(),
    })
}

/// A staircase: the rate in each bin, from its begin to its end.
fn steps(operations: &[&Operation], bin_ns: u64, end: u64) -> Vec<(u64, f64)> {
    let mut counts = vec![0u64; (end / bin_ns + 1) as usize];
    for operation in operations {
        let bin = ((operation.end / bin_ns) as usize).min(counts.len() - 1);
        counts[bin] += 1;
    }
    let per_second = |(bin, count): (usize, u64)| {
        let from = bin as u64 * bin_ns;
        let until = (from + bin_ns).min(end).max(from + 1);
        // The last bin may be a sliver, whose rate would be noise.
        let length = (until - from).max(bin_ns / 2);
        let rate = count as f64 * 1e9 / length as f64;
        [(from, rate), (until, rate)]
    };
    counts.into_iter().enumerate().flat_map(per_second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn rates_add_up_to_the_operations() {
        let recording = Recording::parse(samples::busy_run(400, 4).as_bytes()).unwrap();
        let granted: Vec<_> = recording
            .operations
            .iter()
            .filter(|o| o.f == Function::Acquire && o.outcome == Outcome::Ok)
            .collect();
        let bin_ns = 500_000_000;
        let steps = steps(&granted, bin_ns, recording.end);
        let whole = &steps[..steps.len() - 2];
        let in_whole: f64 = whole.chunks(2).map(|step| step[0].1 * 0.5).sum();
        let expected = granted.iter().filter(|o| o.end < recording.end / bin_ns * bin_ns).count();
        assert!((in_whole - expected as f64).abs() < 0.01, "{in_whole} {expected}");
    }
}
