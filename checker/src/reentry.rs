//! Which acquires of an owner are one hold? Of a reentrant lock: those that returned while it held already.

use std::collections::BTreeSet;

use crate::{
    contract::Term,
    history::Released,
    ledger::{Attempt, Call, Ledger, Outcome, Release, Renewal},
    names::FastMap,
};

/// The outermost hold of an owner, with its re-entries.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Numbers of its attempts, the outermost first.
    pub(crate) members: Vec<u32>,
    /// The outermost attempt; re-entries appear as renewals, the release is that of the whole.
    pub(crate) attempt: Attempt,
    /// All its releases, in the order of their calls: when, and whether its outcome is known.
    pub(crate) releases: Vec<(u64, bool)>,
    /// The releases of re-entries.
    pub(crate) inner: Vec<Call>,
    /// An acquire of unknown outcome may be counted, too.
    pub(crate) doubtful: bool,
    /// A release of unknown outcome may have ended it at any time.
    pub(crate) uncertain: bool,
}

impl Hold {
    fn new(number: u32, attempt: Attempt, doubtful: bool) -> Self {
        let (releases, inner) = (Vec::new(), Vec::new());
        Self { members: vec![number], attempt, releases, inner, doubtful, uncertain: false }
    }

    /// The outermost acquire, while its release is still to come.
    fn begun(number: u32, attempt: &Attempt, doubtful: bool) -> Self {
        let mut attempt = attempt.clone();
        (attempt.release, attempt.gave_up) = (None, None);
        attempt.releases_more.clear();
        Self::new(number, attempt, doubtful)
    }
}

/// What an owner does, in order of time.
enum Step {
    /// An acquire returned ok.
    Entered(u32),
    /// A release was called.
    Left(u32),
    /// A release has said that there was nothing to free.
    Undone,
    /// The client died: what it held may lapse unseen.
    Died,
}

/// Joins attempts, by number in rising order, to holds. An owner's certain count is the acquires that returned
/// ok less the releases called, over all his history; he holds while it is at least one. It may be below zero:
/// the release of an acquire of unknown outcome may hit a later hold.
pub(crate) fn join(ledger: &Ledger, term: Term, attempts: &[u32]) -> Vec<Hold> {
    let mut owners: FastMap<(u32, u64), Vec<u32>> = FastMap::default();
    let mut order = Vec::new();
    for number in attempts {
        let attempt = &ledger.attempts[*number as usize];
        // An acquire without an answer names no owner: the process may have named itself later.
        let named = ledger.process[attempt.process as usize].owner;
        let unknown = attempt.outcome == Outcome::Info;
        let owner = named.filter(|_| unknown).unwrap_or(attempt.owner);
        let entry = owners.entry((attempt.lock, owner)).or_default();
        if entry.is_empty() {
            order.push((attempt.lock, owner));
        }
        entry.push(*number);
    }
    let mut holds = Vec::new();
    for owner in order {
        holds.extend(join_owner(ledger, term, &owners[&owner]));
    }
    holds.sort_by_key(|hold| hold.members[0]);
    holds
}

fn steps(ledger: &Ledger, attempts: &[u32]) -> Vec<(u64, Step)> {
    let mut steps = Vec::new();
    for number in attempts {
        let attempt = &ledger.attempts[*number as usize];
        let counted = attempt.outcome == Outcome::Ok;
        if counted {
            steps.push((attempt.acquire.end, 1, Step::Entered(*number)));
        }
        for release in attempt.releases() {
            steps.push((release.call.start, 0, Step::Left(*number)));
            if !counted && release.released == Some(Released::No) {
                steps.push((release.call.end, 2, Step::Undone));
            }
        }
    }
    let processes = attempts.iter().map(|number| ledger.attempts[*number as usize].process);
    let deaths: BTreeSet<u64> = processes.filter_map(|process| Some(ledger.death_of(process)?.0)).collect();
    steps.extend(deaths.into_iter().map(|at| (at, 3, Step::Died)));
    steps.sort_by_key(|(at, order, _)| (*at, *order));
    steps.into_iter().map(|(at, _, step)| (at, step)).collect()
}

fn join_owner(ledger: &Ledger, term: Term, attempts: &[u32]) -> Vec<Hold> {
    let of = |number: u32| &ledger.attempts[number as usize];
    let doubtful = attempts.iter().any(|number| of(*number).outcome == Outcome::Info);
    let unknown = attempts.iter().copied().filter(|number| of(*number).outcome == Outcome::Info);
    let mut holds: Vec<Hold> =
        unknown.map(|number| Hold::new(number, of(number).clone(), doubtful)).collect();
    let mut open: Option<Hold> = None;
    let mut count = 0i64;
    // Releases of unknown outcome: where a hold may have lapsed, they may hit any later one.
    let mut adrift = 0;
    for (at, step) in steps(ledger, attempts) {
        match step {
            Step::Undone => count += 1,
            Step::Died => {
                count = count.min(0);
                holds.extend(open.take());
            }
            Step::Entered(number) => {
                count += 1;
                match open.as_mut() {
                    Some(hold) => reenter(hold, of(number), number),
                    None => {
                        let mut hold = Hold::begun(number, of(number), doubtful);
                        hold.uncertain = count < 1 || (term != Term::None && adrift > 0);
                        open = Some(hold);
                    }
                }
            }
            Step::Left(number) => {
                count -= 1;
                let release = release_at(of(number), at);
                let known = release.is_some_and(|release| release.outcome == Outcome::Ok);
                adrift += usize::from(!known);
                let Some(hold) = open.as_mut() else { continue };
                hold.releases.push((at, known));
                if count >= 1 {
                    hold.inner.extend(release.map(|release| release.call));
                } else {
                    (hold.attempt.release, hold.attempt.gave_up) = (release, Some(at));
                    holds.extend(open.take());
                }
            }
        }
    }
    holds.extend(open);
    holds
}

fn reenter(hold: &mut Hold, again: &Attempt, number: u32) {
    hold.members.push(number);
    hold.attempt.renewals.push(Renewal {
        call: again.acquire,
        outcome: Outcome::Ok,
        after: again.granted_after,
        by: again.granted_by.max(again.acquire.end),
        reentry: true,
    });
    hold.attempt.renewals.extend(&again.renewals);
    let least = [hold.attempt.ttl_ms_min, again.ttl_ms_min];
    hold.attempt.ttl_ms_min = least.into_iter().flatten().min();
    hold.attempt.ttl_ms_max = hold.attempt.ttl_ms_max.max(again.ttl_ms_max);
    hold.attempt.lost = [hold.attempt.lost, again.lost].into_iter().flatten().min();
}

fn release_at(attempt: &Attempt, at: u64) -> Option<Release> {
    attempt.releases().find(|release| release.call.start == at).copied()
}
