//! How do findings become a verdict?

use std::{collections::BTreeMap, num::NonZeroU64};

use crate::{
    anomalies::{ANOMALIES, Analysis, AnomalyKind},
    case::{Case, Finding},
    contract::{Contract, Mode},
    ledger::{Ledger, Outcome},
    metrics,
    models::Judgement,
    plan::{Plan, Vacuity},
    verdict::{Anomaly, Severity, Valid, Verdict},
};

/// The verdict on a whole history.
pub(crate) fn verdict(case: &Case<'_>, plan: Option<&Plan>, judgement: Option<Judgement>) -> Verdict {
    let mut verdict = Verdict::empty();
    verdict.counts = case.ledger.counts.clone();
    verdict.counts.holds =
        case.tenures.iter().filter(|tenure| tenure.granted.is_some() || tenure.held_within.is_some()).count()
            as u64;
    verdict.counts.rivals_met = case.ledger.counts.acquires_busy + rivals_met(case);
    verdict.counts.opportunities = opportunities(case);
    let mut answers: BTreeMap<Analysis, Valid> = Analysis::ALL.map(|analysis| (analysis, Valid::True)).into();
    for kind in ANOMALIES {
        for anomaly in told(case, kind) {
            if anomaly.count > 0 && anomaly.severity != Severity::Hazard {
                answers.insert(kind.analysis, Valid::False);
            }
            verdict.anomalies.push(anomaly);
        }
    }
    let mut unknown = Vec::new();
    if let Some(judgement) = judgement {
        let answer = match (judgement.anomalies.is_empty(), judgement.unknown.is_empty()) {
            (false, _) => Valid::False,
            (true, false) => Valid::Unknown,
            (true, true) => Valid::True,
        };
        answers.insert(Analysis::Linearizable, answer);
        verdict.anomalies.extend(judgement.anomalies);
        unknown = judgement.unknown;
    }
    // Stable: kinds of one severity stay in the order of the registry.
    verdict.anomalies.sort_by_key(|anomaly| (anomaly.severity, anomaly.count == 0));
    verdict.analyses =
        answers.into_iter().map(|(analysis, answer)| (analysis.name().to_owned(), answer)).collect();
    verdict.metrics = metrics::measure(case);
    verdict.notes = notes(case);
    verdict.unknown_because = unknown_because(case, &verdict, plan);
    verdict.unknown_because.extend(unknown);
    let violated =
        verdict.anomalies.iter().any(|anomaly| anomaly.severity == Severity::Violation && anomaly.count > 0);
    verdict.valid = match (violated, verdict.unknown_because.is_empty()) {
        (true, _) => Valid::False,
        (false, false) => Valid::Unknown,
        (false, true) => Valid::True,
    };
    verdict.summary = summary(case, &verdict);
    verdict
}

/// The findings of one kind, by severity and lock, the first of each in full.
fn told(case: &Case<'_>, kind: &AnomalyKind) -> Vec<Anomaly> {
    let mut groups: BTreeMap<(Severity, u32), Vec<Finding>> = BTreeMap::new();
    for finding in (kind.find)(case) {
        groups.entry((finding.severity, finding.lock)).or_default().push(finding);
    }
    groups.into_values().filter_map(|findings| told_of(case, kind, &findings)).collect()
}

fn told_of(case: &Case<'_>, kind: &AnomalyKind, findings: &[Finding]) -> Option<Anomaly> {
    let first = findings.iter().min_by_key(|finding| (!finding.certain, finding.at))?;
    let count = findings.iter().filter(|finding| finding.certain).count() as u64;
    let told = (kind.tell)(case, first);
    let ttl = case.attempt(first.tenures[0]).ttl_ms_max.map(NonZeroU64::get);
    let during = case.during(first.at, first.at, ttl);
    let mut assumes: Vec<String> = told.assumes.iter().map(ToString::to_string).collect();
    assumes.sort();
    let moved = kind.analysis == Analysis::Exclusion
        && case.ledger.faults.iter().any(|fault| {
            fault.moves_clock()
                && fault.strikes_server()
                && during.iter().any(|other| other.fault == fault.id)
        });
    Some(Anomaly {
        id: kind.id().to_owned(),
        severity: first.severity,
        lock: Some(case.ledger.locks.name(first.lock).to_owned()).filter(|lock| !lock.is_empty()),
        count,
        possible: findings.len() as u64 - count,
        text: sentence(case, kind, first, &told.text, moved),
        witness: told.witness.into_iter().collect(),
        intervals: told.intervals,
        at_ns: first.at,
        during,
        assumes,
    })
}

/// Makes one sentence of what a kind has to tell.
fn sentence(case: &Case<'_>, kind: &AnomalyKind, finding: &Finding, text: &str, clock_moved: bool) -> String {
    let mut sentence = String::new();
    if !finding.certain {
        sentence.push_str("Possibly: ");
    }
    let plain = Contract::default() == *case.contract() && case.ledger.header.contract.is_none();
    if plain && kind.analysis == Analysis::Exclusion {
        sentence.push_str("if this lock never expires, ");
    }
    sentence.push_str(text);
    if clock_moved {
        sentence.push_str("; the lock's exclusion depends on the server's clock");
    }
    if !finding.certain && !case.clock_is_sound() {
        sentence.push_str("; the host's clock was stepped during the run");
    } else if !finding.certain && !case.excluded(finding.lock) {
        sentence.push_str("; the lock does not exclude, so the order of its tenures is not certain");
    }
    sentence.push('.');
    capitalised(&sentence)
}

/// With a capital at its begin, unless it begins with a client's name.
fn capitalised(text: &str) -> String {
    const WORDS: [&str; 8] = ["lock ", "the ", "between ", "a ", "of ", "if ", "while ", "possibly"];
    match text.chars().next() {
        Some(first) if WORDS.iter().any(|word| text.starts_with(word)) => {
            first.to_uppercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

/// Acquires, not refused, that met another owner's tenure.
fn rivals_met(case: &Case<'_>) -> u64 {
    let met = |place: &u32| {
        let attempt = case.attempt(*place);
        let granted = &case.lock_of(*place).granted;
        let count = granted.count_before(attempt.acquire.end);
        granted.latest_of_others(count, attempt.owner).is_some_and(|rival| rival.end > attempt.acquire.start)
    };
    (0..case.tenures.len() as u32).filter(met).count() as u64
}

/// Tenures whose holder still believed in them when a rival got the lock, and tenures in which a fault struck
/// the lock's server while a rival asked for it.
fn opportunities(case: &Case<'_>) -> u64 {
    let outlived = |place: &u32| {
        let (attempt, tenure) = (case.attempt(*place), case.tenure(*place));
        let Some(believed) = tenure.believed else { return false };
        let granted = &case.lock_of(*place).granted;
        let later = &granted.all()[granted.count_before(believed.start.saturating_add(1))..];
        let mut meanwhile = later.iter().take_while(|span| span.start < believed.end);
        meanwhile.any(|span| span.owner != attempt.owner)
    };
    let struck = |place: &u32| {
        let attempt = case.attempt(*place);
        let Some(granted) = case.tenure(*place).granted else { return false };
        let mut faults = case.ledger.faults.iter().filter(|fault| fault.strikes_server());
        faults.any(|fault| {
            granted.start < fault.begin
                && fault.begin < granted.end
                && asked_between(case, attempt.lock, attempt.owner, fault.begin, granted.end)
        })
    };
    let places = 0..case.tenures.len() as u32;
    places.filter(|place| outlived(place) || struck(place)).count() as u64
}

fn asked_between(case: &Case<'_>, lock: u32, owner: u64, from: u64, to: u64) -> bool {
    let lock = &case.locks[lock as usize];
    let mut refused = lock.refused.iter().map(|number| case.ledger.refused[*number as usize].call);
    let others = lock.tenures.iter().map(|place| case.attempt(*place));
    let mut others = others.filter(|other| other.owner != owner && other.outcome == Outcome::Ok);
    refused.any(|call| call.start > from && call.end < to)
        || others.any(|other| other.acquire.start > from && other.acquire.end < to)
}

fn notes(case: &Case<'_>) -> Vec<String> {
    let ledger = case.ledger;
    let mut notes = Vec::new();
    if ledger.header.contract.is_none() {
        let assumed = if ledger.ttl_seen {
            "a lease that something hidden may renew"
        } else {
            "a plain mutex that never expires"
        };
        notes.push(format!("the header records no contract; the lock was judged as {assumed}"));
    }
    let resolved: Vec<String> = ledger
        .accesses
        .iter()
        .filter(|access| access.resolved_by.is_some())
        .filter_map(|access| access.call.invoke())
        .map(|event| event.to_string())
        .collect();
    if !resolved.is_empty() {
        notes.push(format!(
            "writes of unknown outcome that the resource's final dump shows as accepted, by event: {}",
            resolved.join(", ")
        ));
    }
    let proven: Vec<String> = case
        .tenures
        .iter()
        .filter(|tenure| tenure.held_within.is_some())
        .filter_map(|tenure| ledger.attempts[tenure.attempt as usize].acquire.invoke())
        .map(|event| event.to_string())
        .collect();
    if !proven.is_empty() {
        notes.push(format!(
            "acquires of unknown outcome that a later release proved, by event: {}",
            proven.join(", ")
        ));
    }
    if !case.clock_is_sound() {
        notes
            .push("the host's clock was stepped during the run: findings on leases are only possible".into());
    }
    notes.extend(ledger.skipped.iter().map(|skipped| format!("a fault was skipped: {skipped}")));
    notes
}

/// Why nobody can say, one reason each.
fn unknown_because(case: &Case<'_>, verdict: &Verdict, plan: Option<&Plan>) -> Vec<String> {
    let mut reasons = case.ledger.broken.clone();
    let Some(plan) = plan else { return reasons };
    reasons.extend(never_struck(case.ledger, plan));
    let met = verdict.counts.rivals_met;
    if plan.vacuity == Vacuity::Judged && verdict.counts.acquires_ok < 5 {
        let got = verdict.counts.acquires_ok;
        reasons.push(format!("only {got} acquires were granted: fewer than 5 prove nothing"));
    } else if plan.vacuity == Vacuity::Judged && met == 0 {
        reasons.push("no attempt met another owner's tenure: exclusion was never asked for".to_owned());
    }
    reasons
}

/// Planned and possible faults that never struck.
fn never_struck(ledger: &Ledger, plan: &Plan) -> Vec<String> {
    let planned: Vec<&str> =
        plan.nemeses.iter().map(|nemesis| nemesis.name.as_str()).filter(|name| *name != "none").collect();
    let missing = planned.iter().filter(|name| {
        let struck = ledger.faults.iter().any(|fault| &*fault.f == **name);
        let skipped = ledger.skipped.iter().any(|skipped| skipped.split(':').next() == Some(name));
        !struck && !skipped
    });
    missing.map(|name| format!("the planned fault '{name}' never struck")).collect()
}

fn summary(case: &Case<'_>, verdict: &Verdict) -> String {
    match verdict.valid {
        Valid::False => {
            let violations = list(verdict, Severity::Violation);
            let first = verdict.anomalies.first().map_or("", |anomaly| anomaly.text.as_str());
            format!("Invalid: {violations}. {first}")
        }
        Valid::Unknown => format!("Unknown: {}.", verdict.unknown_because.join("; ")),
        Valid::True => clean(case, verdict),
    }
}

fn list(verdict: &Verdict, severity: Severity) -> String {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for anomaly in verdict.anomalies.iter().filter(|a| a.severity == severity && a.count > 0) {
        match counts.iter_mut().find(|(id, _)| *id == anomaly.id) {
            Some((_, count)) => *count += anomaly.count,
            None => counts.push((&anomaly.id, anomaly.count)),
        }
    }
    let words = counts.iter().map(|(id, count)| format!("{count} {id}"));
    words.collect::<Vec<_>>().join(", ")
}

/// What a clean verdict proves: with no bad hold among n, fewer than 3/n are bad at 95 % (the rule of three).
fn clean(case: &Case<'_>, verdict: &Verdict) -> String {
    let counts = &verdict.counts;
    if counts.holds == 0 {
        return "Valid, but it proves nothing: nobody held the lock.".to_owned();
    }
    let share = 300.0 / counts.holds as f64;
    let share = match share {
        share if share >= 100.0 => "which is too few to say anything about the rest".to_owned(),
        share if share >= 1.0 => format!("so at 95 % confidence fewer than {share:.0} in 100 break one"),
        share => format!("so at 95 % confidence fewer than {share:.0$} in 100 break one", decimals(share)),
    };
    let what = match case.contract().mode {
        Mode::Exclusive => "no promise was broken in",
        Mode::Shared | Mode::Counting => "no promise of the lock was broken in",
    };
    let beside = [Severity::Hazard, Severity::Liveness].map(|severity| list(verdict, severity));
    let beside: Vec<String> = beside.into_iter().filter(|list| !list.is_empty()).collect();
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!(" Beside that: {}.", beside.join(", ")),
    };
    format!(
        "Valid: {what} {} holds and {} accepted writes, {share}.{beside}",
        counts.holds, counts.writes_accepted
    )
}

fn decimals(share: f64) -> usize {
    (1.0 - share.log10()).ceil().clamp(1.0, 6.0) as usize
}
