//! Checks a history and says how long it took and how much memory it needed beyond the file.
//!
//! `measure FILE`

use std::{fs::File, io::BufReader, time::Instant};

use fencepost_checker::{check::Checker, readers};

/// The most memory that this process had so far, MiB.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: measure FILE")?;
    let begin = Instant::now();
    let parsed = readers::read(BufReader::with_capacity(1 << 20, File::open(&path)?), |_, _| ())?;
    let reading = begin.elapsed();
    let begin = Instant::now();
    let mut checker: Option<Checker> = None;
    readers::read(BufReader::with_capacity(1 << 20, File::open(&path)?), |header, event| {
        checker.get_or_insert_with(|| Checker::new(header.clone())).push(event);
    })?;
    let pushing = begin.elapsed();
    let verdict = checker.ok_or("an empty history")?.finish(None);
    let checking = begin.elapsed();
    println!("{}", verdict.summary);
    println!(
        "{} events: read alone {:.2} s, read and remembered {:.2} s, read and checked {:.2} s, peak {:.0} MiB",
        parsed.events,
        reading.as_secs_f64(),
        pushing.as_secs_f64(),
        checking.as_secs_f64(),
        peak_mib().unwrap_or(f64::NAN)
    );
    Ok(())
}
