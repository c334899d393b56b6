//! `report.html`: a run on one page, in one file, without anything from elsewhere.

use std::collections::BTreeMap;

use askama::Template;
use fencepost_checker::{
    anomalies::ANOMALIES,
    history::{Event, Kind, Released},
    plan::Plan,
    verdict::{Anomaly, FaultInForce, Valid, Verdict},
};
use serde_json::Value;

use super::{Output, item, write_file};
use crate::{
    draw::paint,
    expectation::Outcome,
    finished::{Finished, each_event},
    plots::PLOTS,
    render::Warning,
    store::RunDir,
    timeline, words,
};

pub(super) const OUTPUT: Output = Output {
    item: item(
        "html",
        "the run on one page, in one file",
        "report.html holds the verdict in a sentence, what to do next, the command to run it again, the pictures, \
         each finding with the events that prove it, counts, metrics and the plan. It loads nothing from elsewhere and \
         follows the reader's light or dark theme.",
    ),
    write,
};

/// The most rows of a witness that the page shows; its file has them all.
const WITNESS_ROWS_MAX: usize = 40;

fn write(run: &RunDir, finished: &Finished) -> Vec<Warning> {
    let page = page(run, finished).and_then(|page| page.render().map_err(|error| error.to_string()));
    write_file(run, "report.html", page.map(String::into_bytes))
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    style: &'static str,
    valid: &'static str,
    word: &'static str,
    sentence: String,
    judged: String,
    reasons: Vec<String>,
    unfinished: bool,
    next: Vec<String>,
    command: Option<String>,
    directory: String,
    timeline: String,
    plots: Vec<(&'static str, String)>,
    findings: Vec<Finding>,
    counts: Vec<(&'static str, u64)>,
    metrics: Vec<(String, String)>,
    plan: Vec<(String, String)>,
    version: &'static str,
}

struct Finding {
    number: usize,
    id: String,
    severity: &'static str,
    lock: String,
    certain: u64,
    possible: u64,
    text: String,
    during: Vec<String>,
    assumes: String,
    documentation: &'static str,
    witness: Vec<Row>,
    rows_left_out: usize,
}

/// An event of a witness.
struct Row {
    index: u64,
    time: String,
    process: String,
    kind: &'static str,
    f: String,
    more: String,
}

fn page(run: &RunDir, finished: &Finished) -> Result<Page, String> {
    let verdict = &finished.verdict;
    let valid = match verdict.valid {
        _ if finished.unfinished => "unknown",
        Valid::True => "valid",
        Valid::False => "not-valid",
        Valid::Unknown => "unknown",
    };
    Ok(Page {
        title: finished.name().to_owned(),
        style: include_str!("../../assets/page.css"),
        valid,
        word: if finished.unfinished { "Unfinished" } else { words::valid(verdict.valid) },
        sentence: sentence(finished),
        judged: judged(finished.judgement.outcome).to_owned(),
        reasons: finished.judgement.reasons.clone(),
        unfinished: finished.unfinished,
        next: next(finished),
        command: finished.plan.as_ref().map(|plan| words::command(&plan.command)),
        directory: run.path().display().to_string(),
        timeline: timeline_svg(finished)?,
        plots: plot_svgs(finished)?,
        findings: findings(run, verdict)?,
        counts: words::counts(&verdict.counts),
        metrics: metrics(verdict),
        plan: finished.plan.as_ref().map(plan_rows).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
    })
}

fn sentence(finished: &Finished) -> String {
    let headline = words::headline(&finished.verdict);
    if finished.unfinished {
        format!("so far {}: {headline}", words::valid(finished.verdict.valid).to_lowercase())
    } else {
        headline
    }
}

fn judged(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Expected => "as expected",
        Outcome::Forbidden => "a forbidden anomaly was found",
        Outcome::Missing => "a required anomaly is missing",
        Outcome::Unknown => "nobody can say",
    }
}

fn next(finished: &Finished) -> Vec<String> {
    let verdict = &finished.verdict;
    let fenced = finished.plan.as_ref().is_some_and(|plan| plan.fence != "none");
    let rejected = verdict.counts.writes_rejected;
    let mut next: Vec<String> = Vec::new();
    if verdict.valid == Valid::True && fenced && rejected > 0 {
        let writes = words::number_of(rejected, "write");
        next.push(format!("Keep the fence: it turned {writes} away, and nothing was harmed."));
    } else {
        next.extend(advice(verdict));
    }
    if verdict.valid == Valid::Unknown {
        next.push("Run longer, or with more clients: the run did not show enough to judge it.".to_owned());
    }
    if verdict.valid == Valid::True {
        next.extend(
            words::bound(verdict.counts.holds)
                .map(|bound| format!("How much this proves: {bound}. Run longer for more.")),
        );
    }
    next
}

/// What to do about the findings, the gravest first, each advice once.
fn advice(verdict: &Verdict) -> Vec<String> {
    let certain = verdict.anomalies.iter().filter(|anomaly| anomaly.count > 0);
    let mut all: Vec<String> = Vec::new();
    for text in certain.filter_map(|anomaly| words::advice(&anomaly.id)) {
        if !all.iter().any(|known| known == text) {
            all.push(text.to_owned());
        }
    }
    all.truncate(3);
    all
}

fn timeline_svg(finished: &Finished) -> Result<String, String> {
    let scene = timeline::scene(&finished.recording, Some(&finished.verdict));
    paint::svg(&scene, "Timeline").map_err(|error| error.to_string())
}

fn plot_svgs(finished: &Finished) -> Result<Vec<(&'static str, String)>, String> {
    let mut svgs = Vec::new();
    for plot in PLOTS {
        if let Some(scene) = (plot.scene)(&finished.recording, Some(&finished.verdict)) {
            svgs.push((plot.title, paint::svg(&scene, plot.title).map_err(|error| error.to_string())?));
        }
    }
    Ok(svgs)
}

fn findings(run: &RunDir, verdict: &Verdict) -> Result<Vec<Finding>, String> {
    let mut rows: BTreeMap<u64, Option<Row>> = BTreeMap::new();
    for anomaly in &verdict.anomalies {
        rows.extend(anomaly.witness.iter().take(WITNESS_ROWS_MAX).map(|index| (*index, None)));
    }
    if !rows.is_empty() {
        each_event(run, |event| {
            if let Some(slot) = rows.get_mut(&event.index) {
                *slot = Some(row(event));
            }
        })
        .map_err(|error| error.to_string())?;
    }
    Ok((1..).zip(&verdict.anomalies).map(|(number, anomaly)| finding(number, anomaly, &rows)).collect())
}

fn finding(number: usize, anomaly: &Anomaly, rows: &BTreeMap<u64, Option<Row>>) -> Finding {
    let documentation =
        ANOMALIES.iter().find(|kind| kind.id() == anomaly.id).map_or("", |kind| kind.item.documentation);
    let witness: Vec<_> =
        anomaly.witness.iter().filter_map(|index| rows.get(index)?.as_ref().map(Row::copy)).collect();
    Finding {
        number,
        id: anomaly.id.clone(),
        severity: words::severity(anomaly.severity),
        lock: anomaly.lock.clone().unwrap_or_default(),
        certain: anomaly.count,
        possible: anomaly.possible,
        text: anomaly.text.clone(),
        during: anomaly.during.iter().map(during).collect(),
        assumes: anomaly.assumes.join(", "),
        documentation,
        rows_left_out: anomaly.witness.len() - witness.len(),
        witness,
    }
}

fn during(fault: &FaultInForce) -> String {
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let until = fault.end_ns.map_or_else(|| "the end".to_owned(), seconds);
    format!("{} of {} from {} to {until}", fault.f, fault.targets.join(", "), seconds(fault.begin_ns))
}

impl Row {
    fn copy(&self) -> Self {
        Self {
            time: self.time.clone(),
            process: self.process.clone(),
            f: self.f.clone(),
            more: self.more.clone(),
            ..*self
        }
    }
}

fn row(event: &Event<'_>) -> Row {
    let at = if event.kind == Kind::Invoke { event.start } else { event.end.or(event.start) };
    let f =
        serde_json::to_value(&event.f).ok().and_then(|f| f.as_str().map(str::to_owned)).unwrap_or_default();
    Row {
        index: event.index,
        time: format!("{:.6}", at.unwrap_or(event.time) as f64 / 1e9),
        process: event.process.to_string(),
        kind: match event.kind {
            Kind::Invoke => "invoke",
            Kind::Ok => "ok",
            Kind::Fail => "fail",
            Kind::Info => "info",
        },
        f,
        more: more(event),
    }
}

/// What an event carries that tells something, in the order in which one asks for it.
fn more(event: &Event<'_>) -> String {
    let value = &event.value;
    let number = |name: &str, number: Option<u64>| number.map(|number| format!("{name} {number}"));
    let released = value.released.map(|released| match released {
        Released::Yes => "released".to_owned(),
        Released::No => "was not held".to_owned(),
        Released::Unknown => "released: unknown".to_owned(),
    });
    let error = value.error.as_ref().map(|error| {
        let text = if error.text.is_empty() { String::new() } else { format!(" ({})", error.text) };
        format!("{:?}{text}", error.cause).to_lowercase()
    });
    let parts = [
        event.key.as_ref().or(event.lock.as_ref()).map(ToString::to_string),
        number("attempt", event.attempt),
        number("token", value.token),
        number("highest token before", value.highest_token_before),
        number("write", value.write_id),
        number("position", value.position),
        number("replaced", value.replaced),
        value.ttl_ms.map(|ttl_ms| format!("ttl {ttl_ms} ms")),
        value.validity_ms.map(|validity_ms| format!("valid for {validity_ms} ms")),
        value.held.map(|held| format!("held: {held}")),
        released,
        error,
        value.reason.as_ref().map(ToString::to_string),
        (!value.targets.is_empty()).then(|| value.targets.join(", ")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Metrics in words: `acquire_ms` with its quantiles as one line.
fn metrics(verdict: &Verdict) -> Vec<(String, String)> {
    let all = verdict.metrics.iter().chain(&verdict.workload);
    all.map(|(name, value)| (name.replace('_', " "), plain(value)))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// JSON without its braces.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name} {}", plain(value)))
            .collect::<Vec<_>>()
            .join(" · "),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => {
                format!("{float:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => number.to_string(),
        },
        Value::Bool(_) => value.to_string(),
    }
}

/// The plan, setting by setting, as it stands in `test.json`.
fn plan_rows(plan: &Plan) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(plan) else { return Vec::new() };
    let shown = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "fencepost" | "command"));
    shown
        .map(|(name, value)| (name.replace('_', " "), plain(&value)))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}
