//! How are lengths of time written? `300ms`, `1.5s`, `2m`, `1.5ttl`, and stretches `20ms..60ms`.

use std::time::Duration;

use fencepost_checker::plan::Span;

/// Reads a length of time; `ttl` is the lease that `1.5ttl` counts in, where there is one.
///
/// # Errors
/// A fragment that says what was expected.
pub fn duration(text: &str, ttl: Option<Duration>) -> Result<Duration, String> {
    let expected = || format!("'{text}' is no length of time such as 300ms, 1.5s or 1.5ttl");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = if text == "0" { 0.0 } else { number.trim().parse().map_err(|_| expected())? };
    let unit_s = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "ttl" => {
            ttl.ok_or_else(|| format!("'{text}' counts in leases, and here there is none"))?.as_secs_f64()
        }
        "" if text == "0" => 0.0,
        "" => return Err(format!("'{text}' lacks its unit: us, ms, s, m or h")),
        _ => return Err(expected()),
    };
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| expected())
}

/// Reads a stretch `20ms..60ms`, or a single length.
///
/// # Errors
/// A fragment that says what was expected.
pub fn span(text: &str) -> Result<Span, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (duration(least, None)?, duration(most, None)?);
    if least > most {
        return Err(format!("'{text}' ends before it begins"));
    }
    Ok(Span { min_ms: least.as_secs_f64() * 1e3, max_ms: most.as_secs_f64() * 1e3 })
}

/// Writes a length of time the way [`duration`] reads it.
#[must_use]
pub fn show(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms >= 1000.0 { format!("{}s", round(ms / 1e3)) } else { format!("{}ms", round(ms)) }
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        let ttl = Some(Duration::from_secs(2));
        for (text, ms) in [("300ms", 300), ("1.5s", 1500), ("2m", 120_000), ("1.5ttl", 3000), ("0", 0)] {
            assert_eq!(duration(text, ttl), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "-1s", "1.5ttl", "fast", "1 s.", "9e99h"] {
            assert!(duration(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn stretches() {
        assert_eq!(span("20ms..60ms"), Ok(Span { min_ms: 20.0, max_ms: 60.0 }));
        assert!(span("60ms..20ms").is_err());
        assert_eq!(show(Duration::from_millis(1500)), "1.5s");
    }
}
