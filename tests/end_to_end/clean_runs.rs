//! Does the checker leave healthy locks alone? Fifty runs without a fault or with pauses only, on a token fence.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::Test;

const RUNS: usize = 50;
/// Runs mostly sleep; more at once than there are cores also means that workers are slow now and then.
const AT_ONCE: usize = 5;

#[test]
fn fifty_clean_runs_in_a_row() {
    let next = AtomicUsize::new(0);
    let (next, one) = (&next, &one_clean_run);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(move || {
                while let Some(number) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < RUNS)
                {
                    one(number);
                }
            });
        }
    });
}

fn one_clean_run(number: usize) {
    let lock = ["redis", "sqlite", "redis?renew=on", "redis?aof=always"][number % 4];
    let nemesis =
        ["none", "pause-holder?share=0.1", "pause", "pause-holder?for=0.4ttl&share=0.3"][number / 4 % 4];
    let workload = ["counter", "daily-report"][number % 2];
    let seed = (1000 + number).to_string();
    let words =
        ["--lock", lock, "--workload", workload, "--nemesis", nemesis, "--fence", "token", "--seed", &seed];
    let pace = ["--ttl", "400ms", "--hold", "5ms..20ms", "--retry", "10ms", "--time", "4s", "--clients", "4"];
    let test = Test::run(&[&words[..], &pace[..]].concat());
    let what = format!("run {number}: {lock} {workload} {nemesis}: {}", test.stderr);
    assert_eq!(test.code, 0, "{what}");
    assert_eq!(test.verdict["valid"], true, "{what}");
    for (count, least) in [("acquires_ok", 20), ("writes_accepted", 20), ("rivals_met", 1)] {
        assert!(test.count(count) >= least, "{count} is {}, {what}", test.count(count));
    }
}
