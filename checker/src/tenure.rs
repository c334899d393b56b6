//! When did an attempt hold the lock, in every interpretation of the history?
//!
//! ```text
//!        a0   g0            a1                      E                 certain end
//!  ------|----|======...=====|-----------------------|.................|--------> time
//!      acquire request    acquire      granted          perhaps held     over
//!      called  sent       returned
//! ```
//!
//! An *operation* may be recorded too wide, a *hold* only too narrow: it begins when the acquire has returned,
//! and its lease counts from before the request was sent.

use std::num::NonZeroU64;

use crate::{
    contract::{Contract, ReleaseCheck, Renews, Term},
    history::Released,
    ledger::{Attempt, FOREVER, Ledger, MS, Outcome, Release, Renewal},
};

/// A stretch of time, nanoseconds. Of a grant that was slower than its lease, `start` lies behind `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Segment {
    /// Can these two not both be true of a lock that excludes?
    ///
    /// Also where `start >= end`: the grant came into force at some instant in between, and then lasted at
    /// least until `end`.
    pub(crate) fn clashes(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// One attempt up to release, loss or death.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    /// The number of its attempt in the ledger.
    pub(crate) attempt: u32,
    /// What the service guarantees, from the acquire on; `None`: perhaps it never held.
    pub(crate) granted: Option<Segment>,
    /// Further stretches, each opened by a renewal that came too late to prolong the one before.
    pub(crate) retaken: Vec<Segment>,
    /// From here on the client may hold by a renewal that took the lock anew; such holds are ordered by nothing.
    pub(crate) adrift_from: u64,
    /// By then it is over, for certain.
    pub(crate) certain_end: Option<u64>,
    /// What the client takes for its hold; `None`: it was never told that it has one.
    pub(crate) believed: Option<Segment>,
    /// Beyond this instant `granted` rests on the assumption that the session stays.
    pub(crate) proven_until: u64,
    /// An acquire of unknown outcome that held at an instant of this stretch, as its own release proved.
    pub(crate) held_within: Option<Box<Segment>>,
}

impl Tenure {
    /// All stretches in which it held for certain.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment> {
        self.granted.into_iter().chain(self.retaken.iter().copied())
    }

    /// Did both hold at one instant?
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        self.segments().any(|mine| other.segments().any(|theirs| mine.clashes(theirs)))
    }
}

/// The bounds of a contract, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) contract: Contract,
    rho: f64,
    epsilon: u64,
    granularity: u64,
    /// Clock faults and failovers of the server: what was known of the ends of leases is void across them.
    upheavals: Vec<(u64, u64)>,
}

impl Bounds {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        let contract = ledger.contract();
        Self {
            granularity: contract.granularity_ms.saturating_mul(MS),
            contract,
            rho: ledger.header.rho,
            epsilon: ledger.header.epsilon_ns,
            upheavals: ledger
                .faults
                .iter()
                .filter(|fault| fault.moves_clock() || fault.f.contains("failover"))
                .map(|fault| (fault.begin, fault.end.unwrap_or(FOREVER)))
                .collect(),
        }
    }

    /// A lease of this length, counted from `from`, lasts at least until then.
    pub(crate) fn least_end(&self, from: u64, ttl_ms: u64) -> u64 {
        let least = (ttl_ms.saturating_mul(MS) as f64 * (1.0 - self.rho)).floor() as u64;
        from.saturating_add(least).saturating_sub(self.epsilon.saturating_add(self.granularity))
    }

    /// A lease of this length, counted from `from`, lasts at most until then.
    pub(crate) fn most_end(&self, from: u64, ttl_ms: u64) -> u64 {
        let most = (ttl_ms.saturating_mul(MS) as f64 * (1.0 + self.rho)).ceil() as u64;
        from.saturating_add(most).saturating_add(self.epsilon.saturating_add(self.granularity))
    }

    /// When the lease of an attempt has certainly run out, given the renewals called before `before`.
    ///
    /// `abandoned`: a library that gives up or is killed may leave one background renewal behind of which the
    /// history does not tell. It counts from before the lease ran out, so it adds a term at most.
    pub(crate) fn lease_over(&self, attempt: &Attempt, before: u64, abandoned: bool) -> Option<u64> {
        let contract = &self.contract;
        let hidden = contract.renews == Renews::Hidden || contract.prolongs;
        if contract.term != Term::Lease || hidden || attempt.outcome != Outcome::Ok {
            return None;
        }
        let abandoned = u64::from(abandoned && contract.renews == Renews::Recorded);
        let most = attempt.ttl_ms_max?.get();
        let earlier = || attempt.renewals.iter().filter(move |renewal| renewal.call.start < before);
        let from = earlier()
            .filter(|renewal| renewal.outcome == Outcome::Ok)
            .map(|renewal| renewal.by)
            .fold(attempt.granted_by, u64::max);
        if earlier().any(|renewal| renewal.outcome == Outcome::Info) {
            // It may take effect at any instant to come, and a renewal may take anew what it finds free.
            return None;
        }
        let over =
            self.most_end(from, most).saturating_add(abandoned.saturating_mul(most.saturating_mul(MS)));
        let touches = |(begin, end): &(u64, u64)| *begin <= over && *end >= attempt.acquire.start;
        let disturbed = self.upheavals.iter().any(touches);
        (!disturbed).then_some(over)
    }
}

/// What ends a hold before its lease: the call of its release, a delivered notice, death; in a torn history the
/// last that was heard of its process.
fn stop_of(ledger: &Ledger, attempt: &Attempt) -> u64 {
    let release = attempt.release.map_or(FOREVER, |release| release.call.start);
    let lost = attempt.lost.map_or(FOREVER, |(at, _)| at);
    let death = ledger.death_of(attempt.process).map_or(FOREVER, |(at, _)| at);
    let unheard = match attempt.release {
        // Its release may be the line that is missing.
        None if ledger.is_torn() => ledger.process[attempt.process as usize].heard,
        _ => FOREVER,
    };
    release.min(lost).min(death).min(unheard)
}

/// The intervals of one attempt. `releases` are those of a reentrant hold, in the order of their calls, each with
/// whether its outcome is known; of any other hold, empty.
pub(crate) fn of_attempt(
    ledger: &Ledger,
    bounds: &Bounds,
    number: u32,
    attempt: &Attempt,
    releases: &[(u64, bool)],
) -> Tenure {
    let stop = stop_of(ledger, attempt);
    let mut tenure = Tenure {
        attempt: number,
        granted: None,
        retaken: Vec::new(),
        adrift_from: FOREVER,
        certain_end: bounds.lease_over(attempt, FOREVER, true),
        believed: None,
        proven_until: FOREVER,
        held_within: None,
    };
    // A renewal that nobody recorded may have taken the lock anew as well as prolonged it: it adds no proof.
    let proof = proof_by_release(bounds, attempt, bounds.lease_over(attempt, FOREVER, false));
    if attempt.outcome == Outcome::Ok {
        grant(ledger, bounds, attempt, stop, releases, &mut tenure);
        // A renewal after the client was told of the loss may have taken anew what the release then freed.
        // So may a re-entry have, under another session.
        let session = bounds.contract.term == Term::Session;
        let anew = |renewal: &Renewal| renewal.call.start >= stop || (session && renewal.reentry);
        if let Some(proof) = proof.filter(|_| !attempt.renewals.iter().any(anew)) {
            prolong(&mut tenure, stop.min(proof.call.start));
        }
        tenure.believed = Some(belief(ledger, bounds, attempt, stop));
    } else if let Some(proof) = proof {
        tenure.held_within = Some(Box::new(Segment {
            start: attempt.acquire.start.max(proof.call.start),
            end: proof.call.end,
        }));
    }
    let freed = attempt.releases().filter(|release| release.released == Some(Released::Yes));
    let freed = freed.map(|release| release.call.end).min();
    tenure.certain_end = [tenure.certain_end, freed].into_iter().flatten().min();
    tenure
}

/// The release by which the service itself says that the attempt held when it was called.
fn proof_by_release<'a>(
    bounds: &Bounds,
    attempt: &'a Attempt,
    certain_end: Option<u64>,
) -> Option<&'a Release> {
    if bounds.contract.release != ReleaseCheck::OwnerChecked {
        return None;
    }
    let proof = attempt.releases().find(|release| release.released == Some(Released::Yes))?;
    let in_time = certain_end.is_none_or(|end| proof.call.start < end);
    // A renewal under way while the release was, or of unknown outcome, may have taken the lock anew in between: then
    // it was not held throughout.
    let doubtful = attempt.renewals.iter().any(|renewal| match renewal.outcome {
        Outcome::Ok => renewal.call.end > proof.call.start && renewal.call.start < proof.call.end,
        Outcome::Info => renewal.call.start < proof.call.end,
    });
    (in_time && !doubtful).then_some(proof)
}

fn prolong(tenure: &mut Tenure, end: u64) {
    if let Some(last) = tenure.retaken.last_mut().or(tenure.granted.as_mut()) {
        last.end = last.end.max(end);
    }
}

/// The stretches that the service guarantees to an acquire that returned ok.
fn grant(
    ledger: &Ledger,
    bounds: &Bounds,
    attempt: &Attempt,
    stop: u64,
    releases: &[(u64, bool)],
    tenure: &mut Tenure,
) {
    let lease = bounds.contract.term == Term::Lease;
    // A lease of unknown length guarantees nothing but the instant of its grant.
    let least = attempt.ttl_ms_min.map_or(0, NonZeroU64::get);
    let end_from = |from| if lease { bounds.least_end(from, least) } else { FOREVER };
    let mut start = attempt.acquire.end;
    let mut end = end_from(attempt.granted_after);
    let mut cap = stop;
    let mut void = false;
    let mut segments = Vec::new();
    for renewal in sorted(&attempt.renewals).iter().filter(|renewal| renewal.call.start < stop) {
        if renewal.outcome == Outcome::Info {
            tenure.adrift_from = tenure.adrift_from.min(renewal.call.start);
            continue;
        }
        if renewal.by < end {
            end = end.max(end_from(renewal.after));
            continue;
        }
        segments.extend((!void).then_some(Segment { start, end: end.min(cap) }));
        tenure.adrift_from = tenure.adrift_from.min(renewal.call.start);
        (start, end) = (renewal.by, end_from(renewal.after));
        if renewal.reentry {
            // After a lapse the service counts from one again, whatever the client counts.
            let first = releases.iter().find(|(at, _)| *at > renewal.call.start);
            cap = stop.min(first.map_or(FOREVER, |(at, _)| *at));
            // And a release that nobody answered may hit the new hold.
            void = releases.iter().any(|(at, known)| *at < renewal.by && !known);
        }
    }
    segments.extend((!void).then_some(Segment { start, end: end.min(cap) }));
    let mut segments = segments.into_iter();
    tenure.granted = segments.next();
    tenure.retaken = segments.collect();
    if bounds.contract.term == Term::Session {
        tenure.proven_until = session_proof(ledger, attempt);
        let (undisturbed, _) = first_disturbance(ledger, attempt, tenure.proven_until);
        if let Some(granted) = tenure.granted.as_mut() {
            granted.end = granted.end.min(undisturbed);
        }
    }
}

fn sorted(renewals: &[Renewal]) -> std::borrow::Cow<'_, [Renewal]> {
    if renewals.is_sorted_by_key(|renewal| renewal.by) {
        return renewals.into();
    }
    let mut sorted = renewals.to_vec();
    sorted.sort_by_key(|renewal| renewal.by);
    sorted.into()
}

/// The call of the last operation by which the server confirmed the session.
fn session_proof(ledger: &Ledger, attempt: &Attempt) -> u64 {
    // A re-entry is counted by the client alone, or begins a session of its own.
    let renewed = attempt.renewals.iter();
    let renewed = renewed.filter(|renewal| renewal.outcome == Outcome::Ok && !renewal.reentry);
    let renewed = renewed.map(|renewal| renewal.after);
    let reentered = attempt.renewals.iter().any(|renewal| renewal.reentry);
    let released = attempt.releases();
    let released = released.filter(|release| release.released == Some(Released::Yes) && !reentered);
    let released = released.map(|release| release.call.start);
    let proof = renewed.chain(released).fold(attempt.acquire.end, u64::max);
    proof.min(stop_of(ledger, attempt))
}

/// From when on the session may have ended: the first fault, error or silence after `proof` that touches
/// client, link or server, with its events.
fn first_disturbance(ledger: &Ledger, attempt: &Attempt, proof: u64) -> (u64, Vec<u64>) {
    let process = ledger.process_name(attempt.process);
    let client = ledger.process[attempt.process as usize].client;
    let faults = ledger
        .faults
        .iter()
        .filter(|fault| fault.strikes(process) || fault.strikes_server())
        .filter(|fault| fault.end.is_none_or(|end| end > proof))
        .map(|fault| (fault.begin, fault.events.clone()));
    let troubles = ledger
        .troubles
        .iter()
        .filter(|trouble| trouble.lock == attempt.lock && trouble.call.end > proof)
        .map(|trouble| (trouble.call.start, trouble.call.events().collect()));
    let stalls = ledger
        .stalls
        .iter()
        .filter(|stall| stall.client == client && stall.until > proof)
        .map(|stall| (stall.from, vec![stall.event]));
    let first = faults.chain(troubles).chain(stalls).min();
    first.map_or((FOREVER, Vec::new()), |(at, events)| (at.max(proof), events))
}

/// The events after which the session of a tenure may have ended.
pub(crate) fn disturbance(ledger: &Ledger, attempt: &Attempt) -> Vec<u64> {
    first_disturbance(ledger, attempt, session_proof(ledger, attempt)).1
}

/// What the client acts on: a stopped one goes on believing.
fn belief(ledger: &Ledger, bounds: &Bounds, attempt: &Attempt, stop: u64) -> Segment {
    let start = attempt.acquire.end;
    let mut end = stop.min(attempt.gave_up.unwrap_or(FOREVER)).min(ledger.time_last.max(start));
    if let (true, Some(validity)) = (bounds.contract.honours_validity, attempt.validity_ms) {
        let proven = attempt.renewals.iter().filter(|renewal| renewal.outcome == Outcome::Ok);
        let from = proven.map(|renewal| renewal.call.end).fold(start, u64::max);
        let validity = u64::try_from(validity).unwrap_or(0).saturating_mul(MS);
        end = end.min(from.saturating_add(validity));
    }
    Segment { start, end: end.max(start) }
}
