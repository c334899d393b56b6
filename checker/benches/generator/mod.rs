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

/// Writes the history of a register under the hands of many clients: every write differs, and each operation takes
/// effect at an instant between its call and its return.
///
/// # Errors
/// If it cannot be written.
#[allow(dead_code, reason = "not every measurement needs it")]
pub(crate) fn register(
    clients: u64,
    operations: u64,
    seed: u64,
    out: &mut impl Write,
) -> std::io::Result<()> {
    writeln!(out, r#"{{"fencepost":1,"test":"generated","seed":{seed},"fence":"none"}}"#)?;
    let mut random = Random(seed);
    // Call, effect, return, client, write.
    let mut all: Vec<(u64, u64, u64, u64, bool)> = Vec::new();
    let mut free = vec![0u64; clients as usize];
    for _ in 0..operations {
        let client = random.below(clients);
        let call = free[client as usize] + 1_000 + random.below(20_000);
        let effect = call + 100 + random.below(50_000);
        let end = effect + 100 + random.below(50_000);
        free[client as usize] = end;
        all.push((call, effect, end, client, random.chance(0.5)));
    }
    all.sort_by_key(|operation| operation.1);
    let (mut last, mut position) = (0u64, 0u64);
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (number, (call, _, end, client, write)) in all.into_iter().enumerate() {
        let f = if write { "write" } else { "read" };
        let replaced = last;
        if write {
            last = number as u64 + 1;
            position += 1;
        }
        let head = format!(r#""process":"c{client}","f":"{f}","key":"k","start":{call}"#);
        lines.push((
            call,
            format!(r#"{{"time":{call},"type":"invoke",{head},"value":{{"write_id":{last}}}}}"#),
        ));
        lines.push((end, format!(
            r#"{{"time":{end},"type":"ok",{head},"end":{end},"value":{{"write_id":{last},"position":{position},"replaced":{replaced},"incarnation":"i"}}}}"#
        )));
    }
    lines.sort_by_key(|(time, _)| *time);
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
