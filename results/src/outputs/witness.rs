//! `witness-N.jsonl`: the events that prove finding N, a history of their own.

use std::{fs::File, io::BufReader};

use fencepost_checker::{readers, verdict::Verdict};

use super::{Output, item, write_file};
use crate::{finished::Finished, render::Warning, store::RunDir};

pub(super) const OUTPUT: Output = Output {
    item: item(
        "witness",
        "one history a finding, with the fewest events that prove it",
        "witness-1.jsonl proves the first finding of verdict.json, and so on. The lines are copied byte for byte, \
         and fencepost check finds the same in them.",
    ),
    write,
};

/// Writes the witness of each finding; what is there of an earlier verdict is removed.
fn write(run: &RunDir, finished: &Finished) -> Vec<Warning> {
    let copies = match copies(run, &finished.verdict) {
        Ok(copies) => copies,
        Err(why) => return vec![Warning { file: name(1), why }],
    };
    remove_older(run, copies.len() + 1);
    (1..).zip(copies).flat_map(|(number, copy)| write_file(run, &name(number), Ok(copy))).collect()
}

fn copies(run: &RunDir, verdict: &Verdict) -> Result<Vec<Vec<u8>>, String> {
    let mut copies: Vec<Vec<u8>> = verdict.anomalies.iter().map(|_| Vec::new()).collect();
    let mut witnesses: Vec<_> = verdict
        .anomalies
        .iter()
        .zip(&mut copies)
        .map(|(anomaly, copy)| (anomaly.witness.as_slice(), copy))
        .collect();
    let file = File::open(run.history_path()).map_err(|error| error.to_string())?;
    readers::copy_witnesses(BufReader::new(file), &mut witnesses).map_err(|error| error.to_string())?;
    Ok(copies)
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
