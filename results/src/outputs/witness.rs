//! `witness-N.jsonl`: the events that prove finding N, a history of their own.

use std::{fs::File, io::BufReader};

use fencepost_checker::{readers, verdict::Verdict};

use crate::{render::Warning, store::RunDir};

/// Writes the witness of each finding; what is there of an earlier verdict is removed.
pub(crate) fn write(run: &RunDir, verdict: &Verdict) -> Vec<Warning> {
    let mut copies: Vec<Vec<u8>> = verdict.anomalies.iter().map(|_| Vec::new()).collect();
    let mut witnesses: Vec<_> = verdict
        .anomalies
        .iter()
        .zip(&mut copies)
        .map(|(anomaly, copy)| (anomaly.witness.as_slice(), copy))
        .collect();
    let copied = File::open(run.history_path()).map_err(|error| error.to_string()).and_then(|file| {
        readers::copy_witnesses(BufReader::new(file), &mut witnesses).map_err(|e| e.to_string())
    });
    if let Err(why) = copied {
        return vec![Warning { file: name(1), why }];
    }
    let mut warnings = Vec::new();
    for (number, copy) in (1..).zip(&copies) {
        if let Err(error) = run.write_file(&name(number), copy) {
            warnings.push(Warning { file: name(number), why: error.to_string() });
        }
    }
    remove_older(run, copies.len() + 1);
    warnings
}

fn name(number: usize) -> String {
    format!("witness-{number}.jsonl")
}

/// Removes the files of a verdict that had more findings.
fn remove_older(run: &RunDir, first: usize) {
    let mut number = first;
    while std::fs::remove_file(run.path().join(name(number))).is_ok() {
        number += 1;
    }
}
