//! Which acquires of an owner are one hold? Of a reentrant lock: those that returned while it held already.

use crate::{
    ledger::{Attempt, Ledger, Outcome, Renewal},
    names::FastMap,
};

/// The outermost hold of an owner, with its re-entries.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Numbers of its attempts, the outermost first.
    pub(crate) members: Vec<u32>,
    /// The outermost attempt; re-entries appear as renewals, the release is that of the whole.
    pub(crate) attempt: Attempt,
    /// The calls of all its releases, in order.
    pub(crate) releases: Vec<u64>,
    /// An acquire of unknown outcome may be counted, too.
    pub(crate) doubtful: bool,
}

/// What an owner does, in order of time.
enum Step {
    Entered(u32),
    Left(u32),
}

/// Joins attempts, by number in rising order, to holds. An owner's certain count is the acquires that returned
/// ok less the releases called; he holds while it is at least one.
pub(crate) fn join(ledger: &Ledger, attempts: &[u32]) -> Vec<Hold> {
    let mut owners: FastMap<(u32, u64), Vec<u32>> = FastMap::default();
    let mut order = Vec::new();
    for number in attempts {
        let attempt = &ledger.attempts[*number as usize];
        let entry = owners.entry((attempt.lock, attempt.owner)).or_default();
        if entry.is_empty() {
            order.push((attempt.lock, attempt.owner));
        }
        entry.push(*number);
    }
    let mut holds = Vec::new();
    for owner in order {
        holds.extend(join_owner(ledger, &owners[&owner]));
    }
    holds.sort_by_key(|hold| hold.members[0]);
    holds
}

fn join_owner(ledger: &Ledger, attempts: &[u32]) -> Vec<Hold> {
    let of = |number: u32| &ledger.attempts[number as usize];
    let doubtful = attempts.iter().any(|number| of(*number).outcome == Outcome::Info);
    let mut steps = Vec::new();
    let mut holds = Vec::new();
    for number in attempts {
        let attempt = of(*number);
        if attempt.outcome == Outcome::Info {
            holds.push(Hold {
                members: vec![*number],
                attempt: attempt.clone(),
                releases: Vec::new(),
                doubtful,
            });
            continue;
        }
        steps.push((attempt.acquire.end, 1, Step::Entered(*number)));
        steps.extend(attempt.releases().map(|release| (release.call.start, 0, Step::Left(*number))));
    }
    steps.sort_by_key(|(at, order, _)| (*at, *order));
    let mut open: Option<(Hold, usize)> = None;
    for (at, _, step) in steps {
        open = match (step, open.take()) {
            (Step::Entered(number), None) => {
                let mut attempt = of(number).clone();
                (attempt.release, attempt.gave_up) = (None, None);
                attempt.releases_more.clear();
                Some((Hold { members: vec![number], attempt, releases: Vec::new(), doubtful }, 1))
            }
            (Step::Entered(number), Some((mut hold, count))) => {
                reenter(&mut hold, of(number), number);
                Some((hold, count + 1))
            }
            (Step::Left(number), Some((mut hold, count))) => {
                hold.releases.push(at);
                if count > 1 {
                    Some((hold, count - 1))
                } else {
                    leave(&mut hold, of(number), at);
                    holds.push(hold);
                    None
                }
            }
            (Step::Left(_), None) => None,
        };
    }
    holds.extend(open.map(|(hold, _)| hold));
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

fn leave(hold: &mut Hold, last: &Attempt, at: u64) {
    let release = last.releases().find(|release| release.call.start == at);
    hold.attempt.release = release.copied();
    hold.attempt.gave_up = Some(at);
}
