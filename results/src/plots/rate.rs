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
    // When the clients are done, the rate is not zero: there is none.
    let done = operations.iter().filter(|o| o.completion.is_some()).map(|o| o.end).max().unwrap_or(0);
    let lines = OUTCOMES.iter().filter_map(|(outcome, color)| {
        let of_kind: Vec<_> = operations.iter().copied().filter(|o| o.outcome == *outcome).collect();
        (!of_kind.is_empty()).then(|| (*color, steps(&of_kind, bin_ns, done)))
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

/// A staircase: the rate in each bin, from its begin to its end. The last, which is not whole, is left out.
fn steps(operations: &[&Operation], bin_ns: u64, end: u64) -> Vec<(u64, f64)> {
    let mut counts = vec![0u64; (end / bin_ns).max(1) as usize];
    for operation in operations {
        if let Some(count) = counts.get_mut((operation.end / bin_ns) as usize) {
            *count += 1;
        }
    }
    let per_second = |(bin, count): (usize, u64)| {
        let from = bin as u64 * bin_ns;
        let rate = count as f64 * 1e9 / bin_ns as f64;
        [(from, rate), (from + bin_ns, rate)]
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
        let in_all: f64 = steps.chunks(2).map(|step| step[0].1 * 0.5).sum();
        let expected = granted.iter().filter(|o| o.end < recording.end / bin_ns * bin_ns).count();
        assert!((in_all - expected as f64).abs() < 0.01, "{in_all} {expected}");
    }

    #[test]
    fn no_line_drops_where_the_run_ends() {
        let mut script = samples::Script::new();
        for tenure in 0..200u32 {
            let (from, attempt) = (5.0 + 10.0 * f64::from(tenure), u64::from(tenure) + 1);
            script.acquire(from, from + 0.6, "c1", attempt, attempt);
            script.release(from + 5.0, "c1", attempt, true);
        }
        // The servers are healed and asked once more, long after the clients are done.
        script.fault(2_060.0, "begin", 1, "lock/redis");
        script.fault(2_290.0, "end", 1, "lock/redis");
        let recording = Recording::parse(script.text().as_bytes()).unwrap();
        let panel = panel(&recording, &Function::Acquire, "acquires a second").unwrap();
        let [(_, line)] = panel.lines.as_slice() else { panic!("one line") };
        assert!(line.iter().all(|(_, rate)| (rate - 100.0).abs() < 1.0), "{line:?}");
        assert!(line.last().is_some_and(|(end, _)| *end > 1_900_000_000), "{line:?}");
    }
}
