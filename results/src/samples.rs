//! Plans, verdicts and histories for this crate's tests.

use std::collections::BTreeMap;

use fencepost_checker::plan::{Drive, Expectation, OnLost, Plan, Span, Vacuity};

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
