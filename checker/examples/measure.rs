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

/// Asks for the findings so far four times in each second of the history.
fn live(path: &str) -> Result<(u32, std::time::Duration), readers::ReadError> {
    let (mut looks, mut looking, mut next) = (0, std::time::Duration::ZERO, 0);
    let mut checker: Option<Checker> = None;
    let file = File::open(path).map_err(|source| readers::ReadError::Io { line: 0, source })?;
    readers::read(BufReader::with_capacity(1 << 20, file), |header, event| {
        let checker = checker.get_or_insert_with(|| Checker::new(header.clone()));
        checker.push(event);
        if event.time >= next {
            next = event.time + 250_000_000;
            let begin = Instant::now();
            let _ = checker.found_so_far();
            looking += begin.elapsed();
            looks += 1;
        }
    })?;
    Ok((looks, looking))
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
    let (looks, looking) = live(&path)?;
    println!(
        "live: asked {looks} times, every 250 ms of the history: {:.1} ms each",
        looking.as_secs_f64() * 1e3 / looks.max(1) as f64
    );
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
