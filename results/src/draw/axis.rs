//! Where do an axis' ticks go, and what do they say?

/// Round values in a range, about as many as asked: steps of 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(from: f64, until: f64, about: usize) -> Vec<f64> {
    if until.partial_cmp(&from) != Some(std::cmp::Ordering::Greater) || about == 0 {
        return vec![from];
    }
    let step = round_step((until - from) / about as f64);
    let first = (from / step).ceil() as i64;
    let last = (until / step).floor() as i64;
    (first..=last).map(|place| place as f64 * step).collect()
}

fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    factor * power
}

/// Nanoseconds as text, in a unit that suits ticks this far apart: `1.25 s`, `30 ms`.
pub(crate) fn duration(ns: f64, step_ns: f64) -> String {
    let decimals = |unit: f64| (unit / step_ns).log10().ceil().clamp(0.0, 6.0) as usize;
    if ns == 0.0 {
        "0".to_owned()
    } else if ns.abs() >= 1e9 || step_ns >= 1e8 {
        format!("{:.*} s", decimals(1e9), ns / 1e9)
    } else if ns.abs() >= 1e6 {
        format!("{:.*} ms", decimals(1e6), ns / 1e6)
    } else {
        format!("{:.*} µs", decimals(1e3), ns / 1e3)
    }
}

/// A count or rate as text: `12`, `1,200`, `0.5`.
pub(crate) fn number(value: f64) -> String {
    if value.fract().abs() > 1e-9 && value.abs() < 10.0 {
        return format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    thousands(value.round().max(0.0) as u64)
}

/// A count with its thousands apart.
pub(crate) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.13, 0.78, 4), [0.2, 0.4, 0.6000000000000001]);
        assert_eq!(ticks(5.0, 5.0, 4), [5.0]);
        assert_eq!(ticks(f64::NAN, 1.0, 4).len(), 1);
    }

    #[test]
    fn durations_and_counts_read_well() {
        assert_eq!(duration(1.25e9, 2.5e8), "1.2 s");
        assert_eq!(duration(1.25e9, 5e7), "1.25 s");
        assert_eq!(duration(3e7, 1e7), "30 ms");
        assert_eq!(duration(0.0, 1e7), "0");
        assert_eq!(duration(4e5, 2e5), "400 µs");
        assert_eq!(
            (number(1200.0), number(0.5), thousands(1234567)),
            ("1,200".into(), "0.5".into(), "1,234,567".into())
        );
    }
}
