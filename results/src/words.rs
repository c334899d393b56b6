//! How are verdicts put in words? Counts, severities, and what to do next.

use fencepost_checker::{
    anomalies::ANOMALIES,
    verdict::{Counts, Severity, Valid, Verdict},
};

/// A verdict's word.
#[must_use]
pub fn valid(valid: Valid) -> &'static str {
    match valid {
        Valid::True => "Valid",
        Valid::False => "Invalid",
        Valid::Unknown => "Unknown",
    }
}

/// A verdict's sentence without its first word and without the first finding's own sentence, which stands
/// beside it wherever this is shown.
#[must_use]
pub fn headline(verdict: &Verdict) -> String {
    let told = match (verdict.summary.as_str(), verdict.valid) {
        ("", Valid::True) => "nothing broke a promise",
        ("", Valid::False) => "a promise was broken",
        ("", Valid::Unknown) => "nobody can say",
        (summary, valid) => {
            let prefix = format!("{}: ", self::valid(valid));
            return without_finding(summary.strip_prefix(&prefix).unwrap_or(summary), verdict);
        }
    };
    told.to_owned()
}

fn without_finding(summary: &str, verdict: &Verdict) -> String {
    let first = verdict.anomalies.first().map_or("", |anomaly| anomaly.text.as_str());
    let shortened = if first.is_empty() { summary } else { summary.strip_suffix(first).unwrap_or(summary) };
    shortened.trim_end().trim_end_matches('.').to_owned()
}

/// A severity's word.
#[must_use]
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Violation => "violation",
        Severity::Hazard => "hazard",
        Severity::Liveness => "liveness",
    }
}

/// What was seen, in words; what did not occur is left out.
#[must_use]
pub fn counts(counts: &Counts) -> Vec<(&'static str, u64)> {
    let all = [
        ("event", "events", counts.events),
        ("acquire granted", "acquires granted", counts.acquires_ok),
        ("acquire busy", "acquires busy", counts.acquires_busy),
        ("acquire failed", "acquires failed", counts.acquires_failed),
        ("acquire of unknown outcome", "acquires of unknown outcome", counts.acquires_info),
        ("hold", "holds", counts.holds),
        ("attempt that met a rival", "attempts that met a rival", counts.rivals_met),
        ("read", "reads", counts.reads_ok),
        ("write accepted", "writes accepted", counts.writes_accepted),
        ("write rejected", "writes rejected", counts.writes_rejected),
        ("write of unknown outcome", "writes of unknown outcome", counts.writes_info),
        ("fault", "faults", counts.faults),
        ("fault skipped", "faults skipped", counts.faults_skipped),
        ("opportunity", "opportunities", counts.opportunities),
    ];
    let seen = all.into_iter().filter(|(_, _, count)| *count > 0);
    seen.map(|(one, many, count)| (if count == 1 { one } else { many }, count)).collect()
}

/// A count with its noun: `1 cell`, `2 cells`.
#[must_use]
pub fn number_of(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How much a run without a finding says: with n holds and none bad, fewer than 3/n are, at 95 %; of three or
/// fewer nothing.
#[must_use]
pub fn bound(holds: u64) -> Option<String> {
    (holds > 3).then(|| {
        format!(
            "{} without a violation: fewer than {:.2} % are bad, at 95 %",
            number_of(holds, "hold"),
            300.0 / holds as f64
        )
    })
}

/// What to do next about a finding.
#[must_use]
pub fn advice(id: &str) -> Option<&'static str> {
    Some(match id {
        "stale-write" | "unfenced-window" | "belief-overlap" => {
            "No lease is long enough for a client that may stop at any moment. Let the resource check a fencing token \
             on every access, reads too, and run again with --fence token."
        }
        "lost-update" => {
            "Let the resource check a fencing token on every access, reads too (--fence token): a fence on writes alone \
             does not protect a read-modify-write."
        }
        "double-grant" => {
            "The service itself granted twice. Look at what it forgot or let slip: data lost at a restart or failover, \
             a clock, an acquire in two steps, a release that frees whoever holds."
        }
        "token-duplicate" | "token-regression" => {
            "Fencing relies on tokens that only go up. Draw them in the very step that grants, and from where they \
             survive a restart and a failover."
        }
        "fence-breach" => {
            "Let the resource compare and raise its highest token in the statement of the access itself, and keep \
             that maximum where the data is."
        }
        "act-after-loss" => "Stop work before the next access once the library reports the loss.",
        "lost-continuity" | "resurrection" => {
            "A renewal must fail once the lease is gone. Renew by compare-and-extend, never by taking anew."
        }
        "false-held" => {
            "An answer from local memory is worth nothing after a pause. Fence the access; do not ask before it."
        }
        "foreign-release" | "unnoticed-loss" => {
            "Release by compare-and-delete on the owner's value, in one step, and report what it found."
        }
        "stuck-lock" | "phantom-holder" => {
            "Give every hold a term from the very step that takes it, so that a dead client's lock comes free by itself."
        }
        _ => ANOMALIES.iter().find(|kind| kind.id() == id)?.item.documentation,
    })
}

/// How a run's command line is shown: without what says only where the run went and how it was printed.
#[must_use]
pub fn command(command: &str) -> String {
    let mut words = shell_words(command).into_iter();
    let mut shown = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--json" => {}
            "--store" => drop(words.next()),
            word if word.starts_with("--store=") => {}
            word => shown.push(word),
        }
    }
    shown.join(" ")
}

/// The words of a command line, in quotes as they stand there.
fn shell_words(line: &str) -> Vec<&str> {
    let (mut words, mut begin, mut quote) = (Vec::new(), None, None);
    let mut letters = line.char_indices();
    while let Some((place, letter)) = letters.next() {
        match (letter, quote) {
            (' ', None) => words.extend(begin.take().map(|begin| &line[begin..place])),
            _ => {
                begin.get_or_insert(place);
                match (letter, quote) {
                    ('\\', None) => drop(letters.next()),
                    ('\'' | '"', None) => quote = Some(letter),
                    (letter, Some(open)) if letter == open => quote = None,
                    _ => {}
                }
            }
        }
    }
    words.extend(begin.map(|begin| &line[begin..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_is_no_plural() {
        let mut seen = Verdict::empty().counts;
        (seen.events, seen.acquires_ok, seen.opportunities) = (2, 1, 1);
        assert_eq!(counts(&seen), [("events", 2), ("acquire granted", 1), ("opportunity", 1)]);
        assert_eq!((number_of(1, "lock"), number_of(0, "lock")), ("1 lock".to_owned(), "0 locks".to_owned()));
    }

    #[test]
    fn a_command_to_run_again_is_short() {
        for (given, shown) in [
            ("fencepost run --json --store 'a b' --seed 7", "fencepost run --seed 7"),
            ("fencepost run --store=x --lock 'redis?a=b' --json", "fencepost run --lock 'redis?a=b'"),
            (
                r"fencepost run --lock 'exec:it'\''s --json --store x' --time 1s",
                r"fencepost run --lock 'exec:it'\''s --json --store x' --time 1s",
            ),
            ("fencepost run --store", "fencepost run"),
            ("fencepost run --lock 'open --json", "fencepost run --lock 'open --json"),
        ] {
            assert_eq!(command(given), shown);
        }
    }

    #[test]
    fn every_anomaly_comes_with_advice() {
        for kind in ANOMALIES {
            assert!(advice(kind.id()).is_some_and(|text| text.len() > 40), "{}", kind.id());
        }
        assert_eq!(advice("no-such"), None);
    }

    #[test]
    fn a_headline_repeats_neither_word_nor_finding() {
        let mut verdict = crate::samples::stale_write_verdict();
        verdict.summary = format!("Invalid: 1 stale-write. {}", verdict.anomalies[0].text);
        assert_eq!(headline(&verdict), "1 stale-write");
        assert_eq!(headline(&Verdict::empty()), "nothing broke a promise");
    }

    #[test]
    fn a_clean_run_says_how_much_it_proves() {
        assert_eq!((bound(0), bound(3)), (None, None));
        assert_eq!(bound(300).unwrap(), "300 holds without a violation: fewer than 1.00 % are bad, at 95 %");
    }
}
