//! Judges a history by a model and says how long it took.
//!
//! `model MODEL FILE`, e.g. `model mutex history.jsonl`.

use std::{fs::File, io::BufReader, time::Instant};

use fencepost_checker::{check::Checker, readers, registry::Choice, search::Budget};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: model MODEL FILE".into());
    };
    let choice: Choice = model.parse()?;
    let mut checker: Option<Checker> = None;
    let mut refused = None;
    readers::read(BufReader::with_capacity(1 << 20, File::open(&path)?), |header, event| {
        if checker.is_none() && refused.is_none() {
            match Checker::new(header.clone()).with_model(&choice, Budget::default()) {
                Ok(new) => checker = Some(new),
                Err(error) => refused = Some(error),
            }
        }
        if let Some(checker) = &mut checker {
            checker.push(event);
        }
    })?;
    if let Some(error) = refused {
        return Err(error.into());
    }
    let begin = Instant::now();
    let verdict = checker.ok_or("an empty history")?.finish(None);
    println!("{:.2} s  {}", begin.elapsed().as_secs_f64(), verdict.summary);
    for anomaly in verdict.anomalies {
        println!("  {}: {}", anomaly.id, anomaly.text);
    }
    Ok(())
}
