//! Histories with known truth: each names in its header the findings that it holds, and no other may be found.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use fencepost_checker::{
    anomalies::ANOMALIES,
    check::Checker,
    history::Header,
    models::MODELS,
    readers,
    registry::Choice,
    search::Budget,
    verdict::{Severity, Valid, Verdict},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Truth {
    story: String,
    findings: BTreeMap<String, u64>,
    #[serde(default)]
    possible: BTreeMap<String, u64>,
    #[serde(default)]
    severities: BTreeMap<String, Severity>,
    witness_max: Option<usize>,
    #[serde(default)]
    model: Option<Choice>,
    #[serde(default)]
    assumes: BTreeMap<String, Vec<String>>,
}

fn histories() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 80, "{} labelled histories", files.len());
    files
}

fn truth(text: &str) -> Truth {
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

fn judge(text: &str) -> Verdict {
    let model = truth(text).model;
    let new = |header: Header| match &model {
        Some(choice) => Checker::new(header).with_model(choice, Budget::default()).unwrap(),
        None => Checker::new(header),
    };
    readers::check_with(text.as_bytes(), None, new).unwrap().verdict
}

fn counts(
    verdict: &Verdict,
    of: impl Fn(&fencepost_checker::verdict::Anomaly) -> u64,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for anomaly in verdict.anomalies.iter().filter(|anomaly| of(anomaly) > 0) {
        *counts.entry(anomaly.id.clone()).or_insert(0) += of(anomaly);
    }
    counts
}

#[test]
fn exactly_what_the_label_says_is_found() {
    let mut wrong = Vec::new();
    for path in histories() {
        let text = fs::read_to_string(&path).unwrap();
        let truth = truth(&text);
        let verdict = judge(&text);
        let (found, possible) = (counts(&verdict, |a| a.count), counts(&verdict, |a| a.possible));
        if (&found, &possible) != (&truth.findings, &truth.possible) {
            let texts: Vec<_> = verdict.anomalies.iter().map(|anomaly| &anomaly.text).collect();
            wrong.push(format!(
                "{}\n  {}\n  labelled {:?} possible {:?}\n  found    {found:?} possible {possible:?}\n  {texts:#?}",
                path.display(),
                truth.story,
                truth.findings,
                truth.possible
            ));
        }
        for anomaly in &verdict.anomalies {
            if let Some(severity) = truth.severities.get(&anomaly.id) {
                assert_eq!(anomaly.severity, *severity, "{}", path.display());
            }
            if let Some(assumes) = truth.assumes.get(&anomaly.id) {
                assert_eq!(anomaly.assumes, *assumes, "{}", path.display());
            }
        }
        let violated = verdict.anomalies.iter().any(|a| a.severity == Severity::Violation && a.count > 0);
        assert_eq!(verdict.valid == Valid::False, violated, "{}", path.display());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_anomaly_has_a_broken_and_a_healthy_history() {
    for kind in ANOMALIES {
        for twin in ["broken", "healthy"] {
            let name = format!("testdata/anomalies/{}.{twin}.jsonl", kind.id());
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&name);
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            let labelled = truth(&text).findings.contains_key(kind.id());
            assert_eq!(labelled, twin == "broken", "{name}");
        }
    }
}

#[test]
fn the_witness_of_a_finding_is_a_history_that_proves_it() {
    for path in histories() {
        let text = fs::read_to_string(&path).unwrap();
        let verdict = judge(&text);
        for anomaly in verdict.anomalies.iter().filter(|anomaly| anomaly.count > 0) {
            let most = truth(&text).witness_max.unwrap_or(usize::MAX);
            assert!(anomaly.witness.len() <= most, "{}: {:?}", path.display(), anomaly.witness);
            let mut witness = Vec::new();
            readers::copy_witness(text.as_bytes(), &anomaly.witness, &mut witness).unwrap();
            let proof = judge(std::str::from_utf8(&witness).unwrap());
            let again = proof.anomalies.iter().find(|other| other.id == anomaly.id);
            let again = again.unwrap_or_else(|| {
                panic!("{}: {}\n{}", path.display(), anomaly.text, String::from_utf8_lossy(&witness))
            });
            assert!(again.count > 0, "{}: {} is only possible", path.display(), anomaly.id);
            assert_eq!(again.text, anomaly.text, "{}", path.display());
            let lines = witness.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, anomaly.witness.len() + 1, "{}", path.display());
        }
    }
}

#[test]
fn event_by_event_is_the_whole_and_what_is_said_early_stays() {
    for path in histories() {
        let text = fs::read_to_string(&path).unwrap();
        let whole = judge(&text);
        let mut checker = None;
        let mut said: BTreeMap<&str, u64> = BTreeMap::new();
        readers::read(text.as_bytes(), |header, event| {
            let checker = checker.get_or_insert_with(|| match truth(&text).model {
                Some(choice) => Checker::new(header.clone()).with_model(&choice, Budget::default()).unwrap(),
                None => Checker::new(header.clone()),
            });
            checker.push(event);
            for (id, count) in checker.found_so_far() {
                assert!(
                    said.get(id).is_none_or(|before| *before <= count),
                    "{}: {id} taken back",
                    path.display()
                );
                said.insert(id, count);
            }
        })
        .unwrap();
        let verdict = checker.unwrap().finish(None);
        assert_eq!(
            serde_json::to_string(&verdict).unwrap(),
            serde_json::to_string(&whole).unwrap(),
            "{}",
            path.display()
        );
        let found = counts(&whole, |anomaly| anomaly.count);
        for (id, count) in said {
            assert!(
                found.get(id).is_some_and(|found| *found >= count),
                "{}: {id} said early",
                path.display()
            );
        }
    }
}

#[test]
fn every_model_has_a_broken_and_a_healthy_history() {
    for kind in MODELS {
        for twin in ["broken", "healthy"] {
            let name = format!("testdata/models/{}.{twin}.jsonl", kind.item.name);
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&name);
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            let truth = truth(&text);
            assert_eq!(truth.findings.contains_key("non-linearizable"), twin == "broken", "{name}");
            assert_eq!(truth.model.unwrap().name, kind.item.name, "{name}");
        }
    }
}
