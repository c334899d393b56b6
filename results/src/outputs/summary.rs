//! `summary.md`: a run in a few lines of Markdown, for a CI job's summary or an issue.

use std::fmt::Write as _;

use fencepost_checker::verdict::Verdict;

use super::{Output, item, write_file};
use crate::{expectation::Outcome, finished::Finished, render::Warning, store::RunDir};

pub(super) const OUTPUT: Output = Output {
    item: item(
        "summary",
        "the run in a few lines of Markdown",
        "For a CI job's summary or an issue: the verdict, the findings, what was seen, and the command to run again.",
    ),
    write,
};

fn write(run: &RunDir, finished: &Finished) -> Vec<Warning> {
    write_file(run, "summary.md", Ok(markdown(finished).into_bytes()))
}

/// Writing to a string does not fail.
fn markdown(finished: &Finished) -> String {
    let verdict = &finished.verdict;
    let mut text = {
        let word = crate::words::valid(verdict.valid).to_lowercase();
        let word = if finished.unfinished { format!("unfinished, so far {word}") } else { word };
        format!("### {} is {word}\n\n{}\n", escape(finished.name()), escape(&crate::words::headline(verdict)))
    };
    for reason in finished.judgement.reasons.iter().filter(|_| !finished.unfinished) {
        let _ = write!(text, "\n- {}", escape(reason));
    }
    text += "\n";
    if !verdict.anomalies.is_empty() {
        text += "\n| finding | severity | certain | possible | the first |\n|---|---|---:|---:|---|\n";
    }
    for anomaly in &verdict.anomalies {
        let severity = crate::words::severity(anomaly.severity);
        let (id, first) = (escape(&anomaly.id), escape(&anomaly.text));
        let _ = writeln!(text, "| {id} | {severity} | {} | {} | {first} |", anomaly.count, anomaly.possible);
    }
    let _ = writeln!(text, "\n{}", seen(verdict));
    if let Some(plan) = &finished.plan {
        let command = crate::words::command(&plan.command);
        let fence = "`".repeat(longest_run(&command, '`').max(2) + 1);
        let _ = writeln!(text, "\n{fence}sh\n{command}\n{fence}");
    }
    if finished.judgement.outcome == Outcome::Expected && !finished.unfinished {
        text += "\nAs expected.\n";
    }
    text
}

fn seen(verdict: &Verdict) -> String {
    let counts = crate::words::counts(&verdict.counts);
    counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(" · ")
}

/// Takes from a text all that Markdown or its HTML would act on.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut current) = (0, 0);
    for c in text.chars() {
        current = if c == wanted { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_does_no_harm() {
        assert_eq!(escape("<img src=x>|`a`\n[x](y)"), "&lt;img src=x&gt;\\|\\`a\\` \\[x\\](y)");
        assert_eq!(longest_run("a ```` b ``", '`'), 4);
    }
}
