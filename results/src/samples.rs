//! Plans, verdicts and histories for this crate's tests.

use std::{cell::Cell, collections::BTreeMap};

use fencepost_checker::{
    history::Function,
    plan::{Drive, Expectation, OnLost, Plan, Span, Vacuity},
    verdict::{Anomaly, FaultInForce, Meeting, Severity, Valid, Verdict},
};

use crate::{
    expectation::Outcome,
    recording::Recording,
    suite::{
        cell::expand,
        file::SuiteFile,
        result::{Attempt, CellResult, CellState, SuiteResult},
    },
};

/// A plan as of a run on redis with stopped holders.
pub(crate) fn plan() -> Plan {
    Plan {
        fencepost: 1,
        name: "redis/daily-report/pause-holder".to_owned(),
        started_at: "2026-12-01T02:00:11Z".to_owned(),
        command: "fencepost run --lock redis --workload daily-report --nemesis pause-holder --seed 7"
            .to_owned(),
        seed: 7,
        lock: "redis".parse().unwrap(),
        workload: "daily-report".parse().unwrap(),
        nemeses: vec!["pause-holder".parse().unwrap()],
        fence: "none".to_owned(),
        resource: "service".parse().unwrap(),
        clients: 3,
        actors: 1,
        keys: 1,
        ttl_ms: 1_000,
        time_ms: 10_000,
        hold: Span { min_ms: 20.0, max_ms: 60.0 },
        think: Span { min_ms: 1.0, max_ms: 5.0 },
        wait_ms: 0,
        retry_ms: 50,
        on_lost: OnLost::Stop,
        drive: Drive::Free,
        stop_on_violation: false,
        grace_ms: 500,
        vacuity: Vacuity::Judged,
        expectation: Expectation::default(),
        versions: BTreeMap::new(),
        capabilities: BTreeMap::new(),
        machine: BTreeMap::new(),
    }
}

/// Writes histories, with stamps in milliseconds.
pub(crate) struct Script {
    header: String,
    /// Time, nanoseconds, and the line without its index.
    events: Vec<(u64, String)>,
}

impl Script {
    /// A history of a lease lock with atomic tokens.
    pub(crate) fn new() -> Self {
        let contract = r#"{"term":"lease","token":"atomic","granularity_ms":1}"#;
        let header = format!(
            r#"{{"fencepost":1,"test":"redis/daily-report/pause-holder","seed":7,"contract":{contract},"fence":"none","resource":"service"}}"#
        );
        Self { header, events: Vec::new() }
    }

    /// One event.
    #[expect(clippy::too_many_arguments, reason = "a line of a script, read in columns")]
    pub(crate) fn event(
        &mut self,
        ms: f64,
        who: &str,
        kind: &str,
        f: &str,
        attempt: u64,
        start_ms: f64,
        more: &str,
    ) {
        let ns = |ms: f64| (ms * 1e6) as u64;
        let end = if kind == "invoke" { String::new() } else { format!(r#""end":{},"#, ns(ms)) };
        let time = ns(ms) + 20_000;
        let line = format!(
            r#""time":{time},"process":"{who}","type":"{kind}","f":"{f}","lock":"daily-sales","attempt":{attempt},"start":{},{end}{more}}}"#,
            ns(start_ms),
        );
        self.events.push((time, line));
    }

    /// An operation from its call to its return, where nothing happens in between.
    #[expect(clippy::too_many_arguments, reason = "a line of a script, read in columns")]
    pub(crate) fn operation(
        &mut self,
        from_ms: f64,
        until_ms: f64,
        who: &str,
        f: &str,
        attempt: u64,
        kind: &str,
        more: &str,
    ) {
        let key = if matches!(f, "read" | "write") { r#""key":"report""# } else { r#""value":{}"# };
        self.event(from_ms, who, "invoke", f, attempt, from_ms, key);
        self.event(until_ms, who, kind, f, attempt, from_ms, more);
    }

    /// A fault on a client.
    pub(crate) fn fault(&mut self, ms: f64, phase: &str, number: u64, target: &str) {
        let ns = (ms * 1e6) as u64;
        let line = format!(
            r#""time":{ns},"process":"nemesis","type":"info","f":"pause-holder","fault":{number},"start":{ns},"end":{ns},"value":{{"targets":["{target}"],"phase":"{phase}"}}}}"#
        );
        self.events.push((ns, line));
    }

    /// All lines, in the order of time.
    pub(crate) fn text(&self) -> String {
        let mut events = self.events.clone();
        events.sort_by_key(|(time, _)| *time);
        let mut text = format!("{}\n", self.header);
        for (index, (_, line)) in events.iter().enumerate() {
            text += &format!("{{\"index\":{index},{line}\n");
        }
        text
    }

    pub(crate) fn acquire(&mut self, from_ms: f64, until_ms: f64, who: &str, attempt: u64, token: u64) {
        let more = format!(r#""value":{{"token":{token},"ttl_ms":1000}}"#);
        self.operation(from_ms, until_ms, who, "acquire", attempt, "ok", &more);
    }

    pub(crate) fn busy(&mut self, from_ms: f64, who: &str, attempt: u64) {
        let more = r#""value":{"error":{"cause":"busy","source":"server"}}"#;
        self.operation(from_ms, from_ms + 0.4, who, "acquire", attempt, "fail", more);
    }

    pub(crate) fn write(
        &mut self,
        from_ms: f64,
        who: &str,
        attempt: u64,
        token: u64,
        position: u64,
        kind: &str,
    ) {
        let more = format!(
            r#""key":"report","value":{{"token":{token},"write_id":{attempt},"position":{position},"replaced":0,"highest_token_before":0}}"#
        );
        self.operation(from_ms, from_ms + 1.2, who, "write", attempt, kind, &more);
    }

    pub(crate) fn release(&mut self, from_ms: f64, who: &str, attempt: u64, released: bool) {
        let more = format!(r#""value":{{"released":{released}}}"#);
        self.operation(from_ms, from_ms + 0.5, who, "release", attempt, "ok", &more);
    }
}

/// The classic story: a holder stopped past its lease writes after its successor.
pub(crate) fn stale_write() -> String {
    let mut script = Script::new();
    script.acquire(10.0, 11.0, "c1", 1, 1);
    script.fault(50.0, "begin", 1, "c1");
    for retry in 0..21 {
        script.busy(15.0 + 48.0 * f64::from(retry), "c2", 100 + u64::try_from(retry).unwrap());
    }
    script.acquire(1_020.0, 1_021.0, "c2", 2, 2);
    script.write(1_060.0, "c2", 2, 2, 1, "ok");
    script.release(1_064.0, "c2", 2, true);
    script.fault(1_550.0, "end", 1, "c1");
    script.write(1_551.0, "c1", 1, 1, 2, "ok");
    script.release(1_554.0, "c1", 1, false);
    script.text()
}

/// A verdict on [`stale_write`].
pub(crate) fn stale_write_verdict() -> Verdict {
    let recording = Recording::parse(stale_write().as_bytes()).unwrap();
    let writes = recording.operations.iter().filter(|operation| operation.f == Function::Write);
    let witness = writes.filter_map(|write| write.completion).collect();
    let text = "c1 (token 1) wrote 'report' at 1.551 s, after c2 (token 2), whose hold began when c1's lease had run out at 1.009 s: the newer report is overwritten by the older one";
    let meeting = |hold: &crate::recording::Hold| Meeting {
        process: hold.process.clone(),
        attempt: hold.attempt,
        what: "believed".to_owned(),
        begin_ns: hold.begin,
        end_ns: hold.believed_end,
    };
    let fault = FaultInForce {
        fault: 1,
        f: "pause-holder".to_owned(),
        targets: vec!["c1".to_owned()],
        begin_ns: 50_000_000,
        end_ns: Some(1_550_000_000),
    };
    let anomaly = Anomaly {
        id: "stale-write".to_owned(),
        severity: Severity::Violation,
        lock: Some("daily-sales".to_owned()),
        count: 1,
        possible: 0,
        text: text.to_owned(),
        witness,
        intervals: recording.holds.iter().map(meeting).collect(),
        at_ns: 1_551_500_000,
        during: vec![fault],
        assumes: Vec::new(),
    };
    Verdict {
        valid: Valid::False,
        summary: "the lock let a stale report overwrite a newer one".to_owned(),
        anomalies: vec![anomaly],
        ..Verdict::empty()
    }
}

/// A run of many short tenures, one after the other, by clients in turn; the others find the lock busy.
pub(crate) fn busy_run(tenures: u32, clients: u32) -> String {
    let mut script = Script::new();
    for tenure in 0..tenures {
        let (from, attempt) = (5.0 + 52.0 * f64::from(tenure), u64::from(tenure) + 1);
        let holder = format!("c{}", tenure % clients + 1);
        script.acquire(from, from + 0.6, &holder, attempt, attempt);
        for other in (0..clients).filter(|other| *other != tenure % clients).take(2) {
            script.busy(from + 20.0, &format!("c{}", other + 1), 100_000 + attempt * 100 + u64::from(other));
        }
        let kind = if tenure % 9 == 5 { "fail" } else { "ok" };
        script.write(from + 41.0, &holder, attempt, attempt, attempt, kind);
        script.release(from + 44.0, &holder, attempt, true);
        if tenure == 12 {
            script.fault(from + 1.0, "begin", 1, &holder);
            script.fault(from + 40.0, "end", 1, &holder);
        }
    }
    script.text()
}

/// A suite of five cells, one for each way to end.
pub(crate) fn suite() -> SuiteResult {
    let text = "name = 'nightly'\n[[cells]]\nlocks = ['redis', 'sqlite']\nworkloads = ['counter']\n\
                [[cells]]\nlocks = ['redis']\nworkloads = ['counter']\nnemeses = ['pause-holder']\nfences = ['none', 'token']\n\
                [[cells]]\nlocks = ['sqlite']\nworkloads = ['counter']\nnemeses = ['pause-holder']\nfences = ['token']\n";
    let mut suite = suite_of(text);
    let [redis, sqlite, failed, unknown, skipped] = suite.cells.as_mut_slice() else { panic!("five cells") };
    for (result, outcome) in [
        (&mut *redis, Outcome::Expected),
        (sqlite, Outcome::Expected),
        (&mut *failed, Outcome::Forbidden),
        (&mut *unknown, Outcome::Unknown),
    ] {
        result.state = CellState::Judged { outcome };
        result.holds = 300;
    }
    redis.attempts.push(Attempt {
        seed: 1,
        run: Some("runs/redis_counter/latest".to_owned()),
        code: 0,
        took_ms: 5_000,
    });
    failed.reasons = vec!["lost-update on counter was found twice and is forbidden".to_owned()];
    unknown.reasons = vec!["too few acquires".to_owned()];
    skipped.state = CellState::Skipped;
    skipped.reasons = vec!["redis-server is not installed".to_owned()];
    suite
}

/// A suite that varies lease and pause.
pub(crate) fn sweep() -> SuiteResult {
    let text = "name = 'sweep'\n[[cells]]\nlocks = ['redis']\nworkloads = ['counter']\nttls = ['250ms', '500ms', '1s']\n\
                nemeses = ['pause-holder?for=0.5ttl', 'pause-holder?for=0.9ttl', 'pause-holder?for=1.2ttl', 'pause-holder?for=2ttl']\n";
    let mut suite = suite_of(text);
    for result in &mut suite.cells {
        let long = result.cell.nemeses[0].contains("for=1.2") || result.cell.nemeses[0].contains("for=2");
        result.state = CellState::Judged { outcome: Outcome::Expected };
        result.faults = 10;
        result.found.extend(long.then(|| ("lost-update".to_owned(), 9)));
    }
    suite
}

fn suite_of(text: &str) -> SuiteResult {
    let (file, _) = SuiteFile::parse(text).unwrap();
    let cells = expand(&file, &[]).unwrap();
    SuiteResult {
        fencepost: 1,
        name: file.name,
        description: file.description,
        started_at: "2026-12-01T02:00:11Z".to_owned(),
        command: "fencepost suite nightly.toml".to_owned(),
        cells: (1..).zip(cells).map(|(number, cell)| CellResult::new(number, cell)).collect(),
    }
}

/// A history without sense, and a verdict to go with it: whatever is read must be drawn.
pub(crate) fn chaos(seed: u64) -> (String, Verdict) {
    let state = Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let random = |below: u64| {
        // xorshift64 (Marsaglia 2003)
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x % below
    };
    let mut script = Script::new();
    let (mut now, operations) = (0.0, random(400));
    for number in 0..operations {
        now += random(1 << random(12)) as f64 / 7.0;
        let who = format!("c{}", random(14) + 1);
        let f = ["acquire", "release", "write", "read", "renew", "held"][random(6) as usize];
        let kind = ["ok", "ok", "fail", "info"][random(4) as usize];
        let (attempt, token) = (random(number + 1), random(1 << random(40)));
        let ttl = if random(20) == 0 { u64::MAX } else { random(2_000) };
        let key = if matches!(f, "read" | "write") { r#""key":"k","# } else { "" };
        let more = format!(
            r#"{key}"value":{{"token":{token},"ttl_ms":{ttl},"write_id":{number},"position":{number}}}"#
        );
        let length = random(1 << random(10)) as f64 / 5.0;
        script.operation(now, now + length, &format!("{who}/{number}"), f, attempt, kind, &more);
        if random(15) == 0 {
            let phase = ["begin", "end", "skipped"][random(3) as usize];
            script.fault(now, phase, random(6), ["c1", "lock/redis", "resource"][random(3) as usize]);
        }
        if random(25) == 0 {
            script.event(
                now,
                &who,
                "info",
                "renewed",
                attempt,
                now,
                &format!(r#""value":{{"ttl_ms":{ttl}}}"#),
            );
            script.event(now, &who, "info", "lost", attempt, now, r#""value":{}"#);
        }
    }
    let mut verdict = stale_write_verdict();
    for anomaly in &mut verdict.anomalies {
        anomaly.at_ns = random(1 << random(63));
        anomaly.witness = (0..random(30)).map(|_| random(2 * operations + 1)).collect();
        anomaly.id = "x".repeat(random(1 << random(9)) as usize);
        for meeting in &mut anomaly.intervals {
            meeting.attempt = random(operations + 1);
            meeting.begin_ns = random(1 << random(60));
        }
    }
    (script.text(), verdict)
}
