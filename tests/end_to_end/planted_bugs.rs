//! Has the checker teeth? Every planted bug must be caught in a real run, and its healthy twin left alone.

use crate::support::Test;

/// How often a bug is sought before its absence counts: faults strike by chance and by timing.
const TRIES: usize = 3;

/// Runs the broken form until everything required was found, then the healthy twin, which must show none of it.
fn caught(broken: &str, required: &[&str], healthy: &str) {
    let mut missing: Vec<_> = required.to_vec();
    let mut last = None;
    for _ in 0..TRIES {
        let test = Test::run(&broken.split_whitespace().collect::<Vec<_>>());
        missing.retain(|id| test.found(id) == 0);
        last = Some(test);
        if missing.is_empty() {
            break;
        }
    }
    let summary = last.map(|test| (test.all_found().join(", "), test.stderr));
    assert!(missing.is_empty(), "{broken}: not found: {missing:?}; the last run: {summary:?}");
    left_alone(healthy, required);
}

fn left_alone(healthy: &str, forbidden: &[&str]) {
    let test = Test::run(&healthy.split_whitespace().collect::<Vec<_>>());
    for id in forbidden {
        assert_eq!(test.found(id), 0, "{healthy}: {id} in the healthy twin: {:#}", test.verdict["anomalies"]);
    }
    assert!(test.count("acquires_ok") >= 5, "{healthy}: a twin that does nothing proves nothing");
}

macro_rules! planted {
    ($($name:ident: $broken:literal finds [$($id:literal),+], unlike $healthy:literal;)*) => {
        $(#[test]
        fn $name() {
            caught($broken, &[$($id),+], $healthy);
        })*
    };
}

planted! {
    no_lock_at_all:
        "--lock none --workload mutex --time 2s" finds ["double-grant"],
        unlike "--lock sqlite --workload mutex --time 2s";
    no_lock_at_all_loses_updates:
        "--lock none --workload counter --time 3s" finds ["lost-update"],
        unlike "--lock sqlite --workload counter --time 3s";
    blind_delete:
        "--lock redis?release=del --workload mutex --nemesis pause-holder?at=release --time 8s"
        finds ["unnoticed-loss", "double-grant"],
        unlike "--lock redis --workload mutex --nemesis pause-holder?at=release --time 8s";
    blind_delete_that_promises_a_check:
        "--lock redis?release=del&promise=owner-checked --workload mutex --nemesis pause-holder?at=release --time 8s"
        finds ["foreign-release", "double-grant"],
        unlike "--lock redis --workload mutex --nemesis pause-holder?at=release --time 8s";
    get_then_delete:
        "--lock redis?release=get-del --workload mutex --nemesis pause-holder?at=release.between --time 8s"
        finds ["double-grant"],
        unlike "--lock redis?release=get-del --workload mutex --time 4s";
    get_then_set:
        "--lock redis?acquire=get-set --workload mutex --nemesis pause-holder?at=acquire.between&for=100ms --time 5s"
        finds ["double-grant"],
        unlike "--lock redis --workload mutex --nemesis pause-holder?at=release&for=100ms --time 5s";
    setnx_without_a_term:
        "--lock redis?acquire=setnx-expire --workload mutex --nemesis kill-holder?at=acquire.between --time 8s"
        finds ["stuck-lock"],
        unlike "--lock redis --workload mutex --nemesis kill-holder?at=release --time 8s";
    a_renewal_that_takes_the_lock_again:
        "--lock redis?renew=retake --workload mutex --clients 3 --ttl 300ms --think 100ms..200ms --nemesis pause-holder?at=release&share=0.4 --time 10s"
        finds ["lost-continuity"],
        unlike "--lock redis?renew=on --workload mutex --clients 3 --ttl 300ms --think 100ms..200ms --nemesis pause-holder?at=release&share=0.4 --time 8s";
    a_renewal_that_takes_the_lock_again_unrivalled:
        "--lock redis?renew=retake --workload mutex --clients 1 --nemesis pause-holder?at=release --time 6s"
        finds ["resurrection"],
        unlike "--lock redis?renew=on --workload mutex --clients 1 --nemesis pause-holder?at=release --time 8s";
    a_library_that_asks_its_own_memory:
        "--lock redis?held=local --workload counter?check=held --nemesis pause-holder?at=held --time 8s"
        finds ["false-held"],
        unlike "--lock redis --workload counter?check=held --nemesis pause-holder?at=held --time 8s";
    asking_before_the_write_does_not_help:
        "--lock redis --workload counter?check=held --nemesis pause-holder?at=write.between --time 8s"
        finds ["lost-update"],
        unlike "--lock redis --workload counter?check=held --nemesis pause-holder?at=write.between --fence token --time 8s";
    a_token_drawn_after_the_lock:
        "--lock redis?token=after --workload mutex --hold 60ms..100ms --nemesis pause-holder?at=acquire.between&share=0.2 --time 8s"
        finds ["token-regression", "invalid-grant"],
        unlike "--lock redis --workload mutex --nemesis pause-holder?at=release --time 8s";
    a_token_drawn_before_the_lock:
        "--lock redis?token=before --workload mutex --nemesis pause-holder?at=acquire.between --time 8s"
        finds ["token-regression"],
        unlike "--lock redis --workload mutex --nemesis pause-holder?at=release --time 8s";
    a_server_without_memory:
        "--lock redis?aof=no --workload counter --nemesis kill-server --time 8s"
        finds ["double-grant", "token-duplicate"],
        unlike "--lock redis?aof=always --workload counter --nemesis kill-server --time 8s";
    a_renewal_refused_by_a_server_without_memory:
        "--lock redis?aof=no&renew=on --workload mutex --clients 1 --nemesis kill-server?at=hold --time 8s"
        finds ["premature-expiry", "token-duplicate"],
        unlike "--lock redis?aof=always&renew=on --workload mutex --clients 1 --nemesis kill-server?at=hold --time 10s";
    a_client_that_ignores_the_notice:
        "--lock redis?renew=on --workload daily-report --nemesis pause-holder?at=hold --on-lost ignore --time 8s"
        finds ["act-after-loss"],
        unlike "--lock redis?renew=on --workload daily-report --nemesis pause-holder?at=hold --time 8s";
    a_notice_that_comes_late:
        "--lock redis?renew=on --workload mutex --nemesis pause-holder?at=hold --time 8s" finds ["late-notice"],
        unlike "--lock redis?renew=on --workload mutex --time 4s";
    an_expired_holder_goes_on:
        "--lock sqlite --workload mutex --nemesis pause-holder --time 6s" finds ["belief-overlap"],
        unlike "--lock sqlite --workload mutex --nemesis pause-holder?for=0.3ttl --time 6s";
    no_fence:
        "--lock redis --workload daily-report --nemesis pause-holder --time 8s" finds ["stale-write"],
        unlike "--lock redis --workload daily-report --nemesis pause-holder --fence token --time 8s";
    a_fence_that_compares_nothing:
        "--lock redis --workload daily-report --nemesis pause-holder --fence unchecked --time 8s" finds ["fence-breach"],
        unlike "--lock redis --workload daily-report --nemesis pause-holder --fence token --time 8s";
    a_fence_that_checks_too_early:
        "--lock redis --workload daily-report --nemesis pause-holder?at=write.between --fence token-racy --time 8s"
        finds ["fence-breach"],
        unlike "--lock redis --workload daily-report --nemesis pause-holder --fence token --time 8s";
    a_service_that_checks_too_early:
        "--lock redis --workload daily-report --nemesis pause-holder?at=write.between --fence token
         --resource service?check=check-then-write --time 8s"
        finds ["fence-breach"],
        unlike "--lock redis --workload daily-report --nemesis pause-holder --fence token --time 8s";
    a_fence_that_forgets:
        "--lock sqlite --workload daily-report --nemesis crash-resource --fence token
         --resource service?storage=memory --time 10s"
        finds ["fence-breach"],
        unlike "--lock sqlite --workload daily-report --nemesis crash-resource --fence token --time 8s";
    a_fence_that_is_too_strict:
        "--lock sqlite --workload daily-report --fence token --resource service?check=too-strict --time 3s"
        finds ["fence-overkill"],
        unlike "--lock sqlite --workload daily-report --fence token --time 3s";
    a_fence_on_writes_only_loses_updates:
        "--lock redis --workload counter --nemesis pause-holder --fence token-write --ttl 500ms --time 10s"
        finds ["lost-update"],
        unlike "--lock redis --workload counter --nemesis pause-holder --fence token --ttl 500ms --time 10s";
    a_fence_on_writes_only_leaves_a_window:
        "--lock redis --workload daily-report --nemesis pause-holder --fence token-write --ttl 500ms --time 10s"
        finds ["unfenced-window"],
        unlike "--lock redis --workload daily-report --fence token-write --time 5s";
    a_redlock_whose_majority_forgets:
        "--lock redlock --workload mutex --nemesis kill-server?nodes=3 --time 8s" finds ["double-grant"],
        unlike "--lock redlock?aof=always --workload mutex --nemesis kill-server?nodes=3 --time 8s";
    a_redlock_on_a_bare_majority:
        "--lock redlock?reach=majority --workload mutex --nemesis kill-server --time 10s" finds ["double-grant"],
        unlike "--lock redlock?reach=majority --workload mutex --nemesis kill-server?down=1.2ttl --time 8s";
    a_claim_that_comes_late:
        "--lock redis?token=none --workload counter --nemesis pause-holder --fence owner?claim=late --time 8s"
        finds ["lost-update"],
        unlike "--lock redis?token=none --workload counter --nemesis pause-holder --fence owner --time 8s";
}

#[test]
fn the_version_fence_needs_no_token() {
    left_alone(
        "--lock redis?token=none --workload counter --nemesis pause-holder --fence version --time 6s",
        &["lost-update", "stale-write"],
    );
}
