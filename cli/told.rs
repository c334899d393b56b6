//! How is a verdict told in the terminal? One sentence, each finding with its own, the counts.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use fencepost_checker::verdict::{Anomaly, Counts, FaultInForce, Severity, Valid, Verdict};
use fencepost_results::{
    expectation::{Judgement, Outcome},
    words,
};

/// The most words of a witness that are spelled out.
const WITNESS_MAX: usize = 8;

const GOOD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green))).bold();
const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red))).bold();
const DOUBTFUL: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow))).bold();
const DIM: Style = Style::new().dimmed();

/// Tells a verdict and, where it is not plain from that, how it was judged.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn tell(out: &mut impl Write, verdict: &Verdict, judgement: &Judgement) -> io::Result<()> {
    let style = match verdict.valid {
        Valid::True => GOOD,
        Valid::False => BAD,
        Valid::Unknown => DOUBTFUL,
    };
    writeln!(out, "{style}{}{style:#}: {}", words::valid(verdict.valid), words::headline(verdict))?;
    for reason in &verdict.unknown_because {
        writeln!(out, "  {DOUBTFUL}unknown{DOUBTFUL:#} because {reason}")?;
    }
    for (number, anomaly) in (1..).zip(&verdict.anomalies) {
        tell_finding(out, number, anomaly)?;
    }
    writeln!(out, "\n{DIM}seen:{DIM:#} {}", counts(&verdict.counts))?;
    tell_judgement(out, verdict, judgement)
}

fn tell_finding(out: &mut impl Write, number: usize, anomaly: &Anomaly) -> io::Result<()> {
    let severity = words::severity(anomaly.severity);
    let style = if anomaly.severity == Severity::Violation { BAD } else { DOUBTFUL };
    let lock = anomaly.lock.as_ref().map(|lock| format!(" on {lock}")).unwrap_or_default();
    let possible =
        if anomaly.possible > 0 { format!(", {} possible", anomaly.possible) } else { String::new() };
    let certain = match anomaly.count {
        0 => "none certain".to_owned(),
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    writeln!(out, "\n{number}. {style}{}{style:#} ({severity}){lock}: {certain}{possible}", anomaly.id)?;
    writeln!(out, "   {}", anomaly.text)?;
    if !anomaly.during.is_empty() {
        let faults: Vec<_> = anomaly.during.iter().map(fault).collect();
        writeln!(out, "   {DIM}during:{DIM:#} {}", faults.join(", "))?;
    }
    if !anomaly.assumes.is_empty() {
        writeln!(out, "   {DIM}assumes:{DIM:#} {}", anomaly.assumes.join(", "))?;
    }
    if !anomaly.witness.is_empty() {
        let mut events: Vec<_> = anomaly.witness.iter().take(WITNESS_MAX).map(u64::to_string).collect();
        if anomaly.witness.len() > WITNESS_MAX {
            events.push("…".to_owned());
        }
        writeln!(out, "   {DIM}proven by events{DIM:#} {}", events.join(", "))?;
    }
    Ok(())
}

fn fault(fault: &FaultInForce) -> String {
    format!("{} of {}", fault.f, fault.targets.join(" and "))
}

/// The counts in one line.
fn counts(counts: &Counts) -> String {
    words::counts(counts).iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// Says how the verdict was judged where that differs from what the verdict alone suggests.
fn tell_judgement(out: &mut impl Write, verdict: &Verdict, judgement: &Judgement) -> io::Result<()> {
    let (style, text) = match (judgement.outcome, verdict.valid) {
        (Outcome::Expected, Valid::True) | (Outcome::Unknown, Valid::Unknown) => return Ok(()),
        (Outcome::Expected, _) => (GOOD, "as expected"),
        (Outcome::Forbidden, _) => (BAD, "fails"),
        (Outcome::Missing, _) => (BAD, "fails"),
        (Outcome::Unknown, _) => (DOUBTFUL, "unknown"),
    };
    let reasons = judgement.reasons.join("; ");
    let colon = if reasons.is_empty() { "" } else { ": " };
    writeln!(out, "{style}{text}{style:#}{colon}{reasons}")
}
