//! The operations of a lock, as its models see them.

use super::{About, Judgement, Limits, Told, in_parts, judge};
use crate::{
    case::{Case, ms},
    contract::Term,
    history::Released,
    ledger::{Attempt, Outcome, Release},
    search::{Interval, Spec},
    tenure::disturbance,
};

/// What is done to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It is granted.
    Acquire,
    /// A release says that it freed it.
    Free,
    /// A release says that there was nothing to free.
    Find,
    /// A release does not say; it frees what is its own.
    MayFree,
    /// The lease runs out.
    Expire,
    /// A renewal that came too late takes it anew.
    Retake,
}

/// Who holds, in words.
pub(crate) fn holder(attempt: Option<u64>) -> String {
    attempt.map_or_else(|| "free".to_owned(), |attempt| format!("held by attempt {attempt}"))
}

/// An operation on a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) what: What,
    pub(crate) attempt: u64,
    pub(crate) owner: u64,
    pub(crate) shared: bool,
    pub(crate) permits: u32,
    pub(crate) token: Option<u64>,
    /// It is called after its acquire has returned, and nothing takes the lock anew for this attempt: once it
    /// does not hold, it never will again.
    pub(crate) after_acquire: bool,
}

/// What an owner does to a lock that knows owners, and not their attempts: his operations of one kind do the same.
pub(crate) fn kin_of_owner(operation: &Operation) -> Option<u64> {
    let plain = operation.token.is_none() || !matches!(operation.what, What::Acquire | What::Retake);
    plain.then_some(operation.owner.wrapping_mul(8).wrapping_add(operation.what as u64))
}

/// Judges each lock by a model. `leases`: holds may run out when their lease may have ended.
pub(crate) fn each<M: Spec<Operation = Operation> + Sync>(
    case: &Case<'_>,
    model: &str,
    spec: &M,
    leases: bool,
    limits: &Limits<'_>,
) -> Judgement {
    let mut attempts = vec![Vec::new(); case.locks.len()];
    for (number, attempt) in case.ledger.attempts.iter().enumerate() {
        attempts[attempt.lock as usize].push(number as u32);
    }
    let locks: Vec<(u32, Vec<u32>)> = (0..).zip(attempts).collect();
    in_parts(&locks, limits, |(number, attempts), limits| {
        let operations = operations(case, attempts, leases, unit_of(model));
        judge(model, &about(case, *number), spec, operations, None, limits)
    })
}

/// A lock, to tell of.
pub(crate) fn about(case: &Case<'_>, lock: u32) -> About {
    About { lock: Some(case.ledger.locks.name(lock).to_owned()), key: None }
}

/// Which operations are left out together, to find the smallest history without an order: those that a model
/// ties together.
fn unit_of(model: &str) -> fn(&Attempt) -> u64 {
    match model {
        "reentrant-mutex" | "reentrant-fenced-mutex" => |attempt| attempt.owner,
        // Anybody's release frees anybody's hold.
        "unowned-mutex" => |_| 0,
        _ => |attempt| attempt.id,
    }
}

fn operations(
    case: &Case<'_>,
    attempts: &[u32],
    leases: bool,
    unit: fn(&Attempt) -> u64,
) -> Vec<Told<Operation>> {
    let mut all = Vec::new();
    for number in attempts.iter().copied() {
        let attempt = &case.ledger.attempts[number as usize];
        let first = all.len();
        let known = attempt.outcome == Outcome::Ok;
        let operation = |what| Operation {
            what,
            attempt: attempt.id,
            owner: attempt.owner,
            shared: attempt.shared,
            permits: attempt.permits,
            token: attempt.token,
            after_acquire: known && !(leases && retakes(case, number)),
        };
        all.push(told(case, attempt, operation(What::Acquire), "acquire", attempt.acquire, known));
        for release in attempt.releases() {
            let (what, known) = meaning(release);
            all.push(told(case, attempt, operation(what), "release", release.call, known));
        }
        if leases {
            expiries(case, number, attempt, &operation, &mut all);
        }
        let last = all.len();
        for told in &mut all[first..last] {
            told.unit = unit(attempt);
        }
    }
    all
}

fn retakes(case: &Case<'_>, number: u32) -> bool {
    case.place_of(number).is_some_and(|place| !case.tenure(place).retaken.is_empty())
}

fn meaning(release: &Release) -> (What, bool) {
    match (release.outcome, release.released) {
        (Outcome::Info, _) => (What::MayFree, false),
        (Outcome::Ok, Some(Released::Yes)) => (What::Free, true),
        (Outcome::Ok, Some(Released::No)) => (What::Find, true),
        (Outcome::Ok, Some(Released::Unknown) | None) => (What::MayFree, true),
    }
}

/// When the service may take the lock back by itself.
fn expiries(
    case: &Case<'_>,
    number: u32,
    attempt: &Attempt,
    operation: &dyn Fn(What) -> Operation,
    all: &mut Vec<Told<Operation>>,
) {
    let Some(place) = case.place_of(number) else { return };
    let tenure = case.tenure(place);
    // What moves that instant is part of the proof.
    let mut proof: Vec<u64> = case.proofs(attempt).flat_map(|renewal| renewal.call.events()).collect();
    proof.extend(attempt.lost.map(|(_, event)| event));
    proof.extend(case.ledger.death_of(attempt.process).map(|(_, event)| event));
    if case.contract().term == Term::Session {
        proof.extend(disturbance(case.ledger, attempt));
    }
    if case.ledger.is_torn() {
        proof.push(case.ledger.process[attempt.process as usize].heard_event);
    }
    let Some(granted) = tenure.granted else {
        all.push(expiry(operation(What::Expire), attempt.acquire.start, proof));
        return;
    };
    // The lease of a grant that was slower than it may run out before the grant is seen.
    let mut first = operation(What::Expire);
    first.after_acquire &= granted.end >= attempt.acquire.end;
    all.push(expiry(first, granted.end, proof));
    for segment in &tenure.retaken {
        let renewal = attempt.renewals.iter().find(|renewal| renewal.by == segment.start);
        if let Some(renewal) = renewal {
            all.push(told(case, attempt, operation(What::Retake), "renewal", renewal.call, true));
        }
        all.push(expiry(operation(What::Expire), segment.end, Vec::new()));
    }
}

fn expiry(operation: Operation, from: u64, events: Vec<u64>) -> Told<Operation> {
    let words = format!("the end of that lease, not before {}", ms(from));
    Told { interval: Interval::unknown(operation, from), words, events, unit: 0 }
}

fn told(
    case: &Case<'_>,
    attempt: &Attempt,
    operation: Operation,
    name: &str,
    call: crate::ledger::Call,
    known: bool,
) -> Told<Operation> {
    let process = case.ledger.process_name(attempt.process);
    let token = operation.token.map_or_else(String::new, |token| format!(" with token {token}"));
    let result = match (operation.what, known) {
        (What::Acquire, true) => "granted",
        (What::Find, _) => "nothing to free",
        (What::Free, _) => "freed",
        (_, true) => "ok",
        (_, false) => "of unknown outcome",
    };
    let words =
        format!("{process}'s {name} (attempt {}) from {} ({result}{token})", attempt.id, ms(call.start));
    let interval = Interval { operation, start: call.start, end: known.then_some(call.end) };
    Told { interval, words, events: call.events().collect(), unit: 0 }
}
