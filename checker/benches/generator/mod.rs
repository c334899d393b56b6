//! Histories of a correct lease lock, as large as one likes, from a seed.

use std::io::Write;

/// What to generate.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Acquires and releases together.
    pub(crate) operations: u64,
    /// Client processes.
    pub(crate) clients: u64,
    /// Locks.
    pub(crate) keys: u64,
    /// The share of releases of unknown outcome.
    pub(crate) indeterminate: f64,
    /// Plant one in the middle.
    pub(crate) double_grant: bool,
    /// Of all choices.
    pub(crate) seed: u64,
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < share
    }
}

/// Writes one.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn generate(settings: &Settings, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        r#"{{"fencepost":1,"test":"generated","seed":{},"contract":{{"term":"lease","token":"atomic"}}}}"#,
        settings.seed
    )?;
    let mut random = Random(settings.seed);
    let mut now = 1_000u64;
    let mut index = 0u64;
    let tenures = settings.operations / 2;
    let mut event = |out: &mut dyn Write, time: u64, client: u64, rest: std::fmt::Arguments<'_>| {
        let number = index;
        index += 1;
        writeln!(out, r#"{{"index":{number},"time":{time},"process":"c{client}",{rest}}}"#)
    };
    for attempt in 1..=tenures {
        let (client, key) = (random.below(settings.clients), random.below(settings.keys));
        let (a0, a1) = (now, now + 20_000 + random.below(10_000));
        let (r0, r1) = (a1 + 10_000 + random.below(50_000), a1 + 80_000 + random.below(10_000));
        event(
            out,
            a0,
            client,
            format_args!(
                r#""type":"invoke","f":"acquire","lock":"l{key}","attempt":{attempt},"start":{a0},"value":{{"ttl_ms":1000,"wait_ms":0}}"#
            ),
        )?;
        event(
            out,
            a1,
            client,
            format_args!(
                r#""type":"ok","f":"acquire","lock":"l{key}","attempt":{attempt},"start":{a0},"end":{a1},"value":{{"token":{attempt},"validity_ms":994,"granted_after":{a0},"granted_by":{a1}}}"#
            ),
        )?;
        event(
            out,
            r0,
            client,
            format_args!(r#""type":"invoke","f":"release","lock":"l{key}","attempt":{attempt},"start":{r0}"#),
        )?;
        let unknown = random.chance(settings.indeterminate);
        if unknown {
            event(
                out,
                r1,
                client,
                format_args!(
                    r#""type":"info","f":"release","lock":"l{key}","attempt":{attempt},"start":{r0},"end":{r1},"value":{{"error":{{"cause":"timeout"}}}}"#
                ),
            )?;
        } else {
            event(
                out,
                r1,
                client,
                format_args!(
                    r#""type":"ok","f":"release","lock":"l{key}","attempt":{attempt},"start":{r0},"end":{r1},"value":{{"released":true}}"#
                ),
            )?;
        }
        now = r1 + random.below(5_000);
        if settings.double_grant && attempt == tenures / 2 {
            // The next one is granted before this one has called its release.
            now = r0.saturating_sub(5_000).max(a1);
            let (late, end) = (now, r1 + 1_000);
            event(
                out,
                r1,
                settings.clients,
                format_args!(
                    r#""type":"invoke","f":"acquire","lock":"l{key}","attempt":{},"start":{late}"#,
                    tenures + 1
                ),
            )?;
            event(
                out,
                r1,
                settings.clients,
                format_args!(
                    r#""type":"ok","f":"acquire","lock":"l{key}","attempt":{},"start":{late},"end":{},"value":{{"granted_after":{late}}}"#,
                    tenures + 1,
                    late + 1_000
                ),
            )?;
            event(
                out,
                r1,
                settings.clients,
                format_args!(
                    r#""type":"invoke","f":"release","lock":"l{key}","attempt":{},"start":{end}"#,
                    tenures + 1
                ),
            )?;
            event(
                out,
                end,
                settings.clients,
                format_args!(
                    r#""type":"ok","f":"release","lock":"l{key}","attempt":{},"start":{end},"end":{end},"value":{{"released":true}}"#,
                    tenures + 1
                ),
            )?;
            now = end + 1_000;
        }
    }
    Ok(())
}
