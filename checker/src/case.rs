//! What do the judges look at? The ledger with every attempt's intervals, lock by lock.

use std::{
    collections::{BTreeSet, HashSet},
    num::NonZeroU64,
};

use crate::{
    contract::{Contract, Mode, Term},
    ledger::{Access, Answer, Attempt, Call, Ledger, MS, Outcome, Renewal},
    names::FastMap,
    reentry::{self, Hold},
    sweep::{Span, Spans},
    tenure::{self, Bounds, Segment, Tenure},
    verdict::{FaultInForce, Meeting, Severity},
};

/// Two tenures that held at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clash {
    /// Granted first.
    pub(crate) first: u32,
    /// Granted although the first was in force.
    pub(crate) second: u32,
    /// From when on both hold, nanoseconds.
    pub(crate) from: u64,
    /// It rests on the assumption that a session stays.
    pub(crate) session_stays: bool,
}

/// One lock's tenures.
#[derive(Debug, Default)]
pub(crate) struct LockCase {
    /// Places of its tenures, by the end of their acquire.
    pub(crate) tenures: Vec<u32>,
    /// Numbers of the acquires that it refused.
    pub(crate) refused: Vec<u32>,
    /// What the service guaranteed.
    pub(crate) granted: Spans,
    /// What clients took for their holds.
    pub(crate) believed: Spans,
    /// Where the service broke its promise; one for each tenure that it should not have granted.
    pub(crate) clashes: Vec<Clash>,
    /// Places of the tenures that take part in one.
    pub(crate) tainted: HashSet<u32>,
}

/// Everything that the judges look at.
pub(crate) struct Case<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) bounds: Bounds,
    pub(crate) tenures: Vec<Tenure>,
    pub(crate) locks: Vec<LockCase>,
    /// Numbers of the accesses that are looked at.
    pub(crate) accesses: Vec<u32>,
    /// The place of an attempt's tenure, where that is not its number.
    places: Option<FastMap<u32, u32>>,
    /// Attempts joined to one reentrant hold, by the number of the outermost.
    joined: FastMap<u32, Hold>,
    /// Only a part of the history is looked at, the rest is still to come.
    pub(crate) live: bool,
    /// Answers "it is yours" from this number on are looked at.
    pub(crate) helds_from: usize,
    /// What the server said is looked at from this number on.
    pub(crate) evidence_from: usize,
}

impl<'a> Case<'a> {
    /// The whole history.
    pub(crate) fn whole(ledger: &'a Ledger) -> Self {
        let attempts: Vec<u32> = (0..ledger.attempts.len() as u32).collect();
        Self::new(ledger, &attempts, (0..ledger.accesses.len() as u32).collect(), false)
    }

    /// Some attempts, by number in rising order, and some accesses, while others are still to come.
    pub(crate) fn part(ledger: &'a Ledger, attempts: &[u32], accesses: Vec<u32>) -> Self {
        Self::new(ledger, attempts, accesses, true)
    }

    fn new(ledger: &'a Ledger, attempts: &[u32], accesses: Vec<u32>, live: bool) -> Self {
        let bounds = Bounds::new(ledger);
        let mut case = Self {
            ledger,
            bounds,
            tenures: Vec::with_capacity(attempts.len()),
            locks: Vec::new(),
            accesses,
            places: None,
            joined: FastMap::default(),
            live,
            helds_from: 0,
            evidence_from: 0,
        };
        if case.contract().reentrant {
            case.admit_reentrant(attempts);
        } else {
            case.admit(attempts);
        }
        case.arrange();
        case
    }

    pub(crate) fn contract(&self) -> &Contract {
        &self.bounds.contract
    }

    fn admit(&mut self, attempts: &[u32]) {
        for number in attempts {
            let attempt = &self.ledger.attempts[*number as usize];
            self.tenures.push(tenure::of_attempt(self.ledger, &self.bounds, *number, attempt, &[]));
        }
        let identical = attempts.last().is_none_or(|last| *last as usize + 1 == attempts.len());
        if !identical {
            let places = attempts.iter().enumerate().map(|(place, number)| (*number, place as u32));
            self.places = Some(places.collect());
        }
    }

    fn admit_reentrant(&mut self, attempts: &[u32]) {
        let mut places = FastMap::default();
        for mut hold in reentry::join(self.ledger, self.contract().term, attempts) {
            let (number, place) = (hold.members[0], self.tenures.len() as u32);
            places.extend(hold.members.iter().map(|number| (*number, place)));
            if hold.doubtful && hold.attempt.outcome == Outcome::Ok {
                // An acquire of unknown outcome may be what its release freed.
                for release in hold.attempt.release.iter_mut().chain(&mut hold.attempt.releases_more) {
                    release.released = None;
                }
            }
            let mut tenure =
                tenure::of_attempt(self.ledger, &self.bounds, number, &hold.attempt, &hold.releases);
            if hold.uncertain {
                (tenure.granted, tenure.held_within) = (None, None);
                tenure.retaken.clear();
            }
            self.tenures.push(tenure);
            self.joined.insert(number, hold);
        }
        self.places = Some(places);
    }

    /// Sorts the tenures by lock and looks for clashes.
    fn arrange(&mut self) {
        self.locks.resize_with(self.ledger.locks.len(), LockCase::default);
        let mut tenures = vec![Vec::new(); self.locks.len()];
        let mut granted = vec![Vec::new(); self.locks.len()];
        let mut believed = vec![Vec::new(); self.locks.len()];
        for (place, tenure) in self.tenures.iter().enumerate() {
            let attempt = self.attempt_of(tenure);
            let lock = attempt.lock as usize;
            let span = |segment: Segment| Span {
                start: segment.start,
                end: segment.end,
                owner: attempt.owner,
                tenure: place as u32,
            };
            tenures[lock].push(place as u32);
            granted[lock].extend(tenure.segments().map(span));
            if self.ledger.excludes(attempt, self.bounds.contract.mode) {
                believed[lock].extend(tenure.believed.map(span));
            }
        }
        let spans = granted.into_iter().zip(believed);
        for (lock, (mut tenures, (granted, believed))) in tenures.into_iter().zip(spans).enumerate() {
            tenures.sort_by_key(|place| self.attempt(*place).acquire.end);
            let granted = Spans::new(granted);
            let clashes = crate::clash::find(self, &tenures, &granted);
            let tainted = clashes.iter().flat_map(|clash| [clash.first, clash.second]).collect();
            let believed = Spans::new(believed);
            let refused = Vec::new();
            self.locks[lock] = LockCase { tenures, refused, granted, believed, clashes, tainted };
        }
        // While more is to come, nothing is said of them.
        let refused = self.ledger.refused.iter().enumerate().filter(|_| !self.live);
        for (number, refused) in refused {
            self.locks[refused.lock as usize].refused.push(number as u32);
        }
    }

    /// The attempt behind the tenure at this place.
    pub(crate) fn attempt(&self, place: u32) -> &Attempt {
        self.attempt_of(&self.tenures[place as usize])
    }

    fn attempt_of(&self, tenure: &Tenure) -> &Attempt {
        if self.joined.is_empty() {
            return &self.ledger.attempts[tenure.attempt as usize];
        }
        match self.joined.get(&tenure.attempt) {
            Some(hold) => &hold.attempt,
            None => &self.ledger.attempts[tenure.attempt as usize],
        }
    }

    pub(crate) fn tenure(&self, place: u32) -> &Tenure {
        &self.tenures[place as usize]
    }

    /// The place of an attempt's tenure.
    pub(crate) fn place_of(&self, attempt: u32) -> Option<u32> {
        match &self.places {
            None => Some(attempt).filter(|place| (*place as usize) < self.tenures.len()),
            Some(places) => places.get(&attempt).copied(),
        }
    }

    /// The place of the tenure that an access belongs to.
    pub(crate) fn place_of_access(&self, access: &Access) -> Option<u32> {
        self.place_of(access.attempt?)
    }

    /// The numbers of the attempts that make up the tenure at this place.
    pub(crate) fn members(&self, place: u32) -> Vec<u32> {
        let own = self.tenure(place).attempt;
        self.joined.get(&own).map_or_else(|| vec![own], |hold| hold.members.clone())
    }

    /// May the owner of this reentrant hold have got the lock by an acquire of which nobody knows the outcome?
    pub(crate) fn doubtful(&self, place: u32) -> bool {
        self.joined.get(&self.tenure(place).attempt).is_some_and(|hold| hold.doubtful)
    }

    pub(crate) fn lock_of(&self, place: u32) -> &LockCase {
        &self.locks[self.attempt(place).lock as usize]
    }

    /// May nobody else hold together with this one?
    pub(crate) fn exclusive(&self, place: u32) -> bool {
        self.ledger.excludes(self.attempt(place), self.contract().mode)
    }

    /// Was A granted before B, for certain, if the lock excludes?
    pub(crate) fn precedes(&self, a: u32, b: u32) -> bool {
        let (earlier, later) = (self.tenure(a), self.tenure(b));
        match (earlier.granted, later.granted) {
            (Some(first), Some(second)) => first.start < second.end && !earlier.clashes(later),
            _ => false,
        }
    }

    /// Did A have the lock before B even asked for it?
    pub(crate) fn granted_before_asked(&self, a: u32, b: u32) -> bool {
        self.attempt(a).outcome == Outcome::Ok && self.attempt(a).acquire.end < self.attempt(b).acquire.start
    }

    /// Nothing rests on the length of leases, or the host's clock ran evenly.
    pub(crate) fn clock_is_sound(&self) -> bool {
        self.contract().term != Term::Lease || self.ledger.host_clock_steps.is_empty()
    }

    /// Nothing that is still to come can shorten this tenure.
    pub(crate) fn settled(&self, place: u32, until: u64) -> bool {
        let attempt = self.attempt(place);
        let ended = [
            attempt.release.map(|release| release.call.start),
            attempt.lost.map(|(at, _)| at),
            self.ledger.death_of(attempt.process).map(|(at, _)| at),
        ];
        let ended = ended.into_iter().flatten().min();
        let heard = self.ledger.process[attempt.process as usize].heard;
        let end = self.tenure(place).segments().map(|segment| segment.end).max().unwrap_or(0);
        ended.is_some_and(|end| end < until) || (heard > end && end < until)
    }

    /// The accesses that are looked at.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (u32, &'a Access)> {
        self.accesses.iter().map(|number| (*number, &self.ledger.accesses[*number as usize]))
    }

    /// The accepted writes of each key and incarnation whose place in the commit order is known, in that order.
    pub(crate) fn commits(&self) -> Vec<Vec<u32>> {
        let mut keys: FastMap<(u32, u32), Vec<u32>> = FastMap::default();
        for (number, access) in self.accesses() {
            if access.write && access.answer == Answer::Accepted && access.position.is_some() {
                keys.entry((access.key, access.incarnation)).or_default().push(number);
            }
        }
        let mut keys: Vec<_> = keys.into_iter().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        let by_position = |number: &u32| self.ledger.accesses[*number as usize].position;
        keys.into_iter()
            .map(|(_, mut writes)| {
                writes.sort_by_key(by_position);
                writes
            })
            .collect()
    }

    /// The lock that a finding on an access is filed under: that of its attempt.
    pub(crate) fn lock_number(&self, place: u32) -> u32 {
        self.attempt(place).lock
    }

    /// Does any finding doubt that this lock excludes?
    pub(crate) fn excluded(&self, lock: u32) -> bool {
        self.locks[lock as usize].clashes.is_empty()
    }

    /// Faults in force at an instant, or within a ttl before it.
    pub(crate) fn during(&self, from: u64, to: u64, ttl_ms: Option<u64>) -> Vec<FaultInForce> {
        let before = from.saturating_sub(ttl_ms.unwrap_or(1000).saturating_mul(MS));
        let in_force = self
            .ledger
            .faults
            .iter()
            .filter(|fault| fault.begin <= to.max(from) && fault.end.is_none_or(|end| end >= before));
        in_force
            .map(|fault| FaultInForce {
                fault: fault.id,
                f: fault.f.to_string(),
                targets: fault.targets.iter().map(ToString::to_string).collect(),
                begin_ns: fault.begin,
                end_ns: fault.end,
            })
            .collect()
    }
}

/// A finding, not yet told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// It is one in every interpretation of the history.
    pub(crate) certain: bool,
    /// No later event can take it back, once its tenures are settled.
    pub(crate) firm: bool,
    pub(crate) lock: u32,
    /// The instant at which the promise is broken, nanoseconds.
    pub(crate) at: u64,
    /// The places of the tenures that it is about, the same one twice if it is only one.
    pub(crate) tenures: [u32; 2],
    /// The number of what decided it: of an access, a renewal, …, as its kind knows.
    pub(crate) subject: u32,
}

impl Finding {
    /// Its tenures say it all.
    pub(crate) const NO_SUBJECT: u32 = u32::MAX;

    /// A certain finding about two tenures.
    pub(crate) fn new(severity: Severity, case: &Case<'_>, at: u64, tenures: [u32; 2]) -> Self {
        let lock = case.lock_number(tenures[0]);
        Self { severity, certain: true, firm: true, lock, at, tenures, subject: Self::NO_SUBJECT }
    }

    /// Only possible, unless `certain`.
    pub(crate) fn if_certain(mut self, certain: bool) -> Self {
        self.certain &= certain;
        self
    }

    /// Not to be told before the history has ended, unless `firm`.
    pub(crate) fn if_firm(mut self, firm: bool) -> Self {
        self.firm &= firm;
        self
    }

    pub(crate) fn about(mut self, subject: u32) -> Self {
        self.subject = subject;
        self
    }
}

/// A finding as a reader sees it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) witness: BTreeSet<u64>,
    pub(crate) intervals: Vec<Meeting>,
    pub(crate) assumes: Vec<&'static str>,
}

impl Told {
    pub(crate) fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// Adds what proves when a tenure held: its acquire, renewals, releases, loss and death.
    pub(crate) fn tenure(mut self, case: &Case<'_>, place: u32) -> Self {
        let attempt = case.attempt(place);
        self.witness.extend(attempt.acquire.events());
        self.witness.extend(case.proofs(attempt).flat_map(|renewal| renewal.call.events()));
        self.witness.extend(attempt.releases().flat_map(|release| release.call.events()));
        if let Some(hold) = case.joined.get(&case.tenure(place).attempt) {
            self.witness.extend(hold.inner.iter().flat_map(Call::events));
        }
        if case.contract().term == Term::Session {
            self.witness.extend(tenure::disturbance(case.ledger, attempt));
        }
        self.witness.extend(attempt.lost.map(|(_, event)| event));
        self.witness.extend(case.ledger.death_of(attempt.process).map(|(_, event)| event));
        // That the history is whole, or how far it goes, is part of the proof.
        self.witness.extend(case.ledger.ended);
        if case.ledger.is_torn() {
            self.witness.insert(case.ledger.process[attempt.process as usize].heard_event);
        }
        self
    }

    pub(crate) fn events(mut self, events: impl IntoIterator<Item = u64>) -> Self {
        self.witness.extend(events);
        self
    }

    pub(crate) fn access(self, access: &Access) -> Self {
        self.events(access.call.events()).events(access.resolved_by)
    }

    pub(crate) fn interval(mut self, case: &Case<'_>, place: u32, what: &str, begin: u64, end: u64) -> Self {
        let attempt = case.attempt(place);
        self.intervals.push(Meeting {
            process: case.ledger.process_name(attempt.process).to_owned(),
            attempt: attempt.id,
            what: what.to_owned(),
            begin_ns: begin,
            end_ns: end.min(case.ledger.time_last.max(begin)),
        });
        self
    }

    pub(crate) fn assume(mut self, when: bool, what: &'static str) -> Self {
        if when {
            self.assumes.push(what);
        }
        self
    }
}

/// Milliseconds for people: `1204.3 ms`.
pub(crate) fn ms(ns: u64) -> String {
    let tenths = (ns + MS / 20) / (MS / 10);
    if tenths.is_multiple_of(10) {
        format!("{} ms", tenths / 10)
    } else {
        format!("{}.{} ms", tenths / 10, tenths % 10)
    }
}

impl Case<'_> {
    /// `c3 (token 9)`, `c3/t1`.
    pub(crate) fn who(&self, place: u32) -> String {
        let attempt = self.attempt(place);
        let name = self.ledger.process_name(attempt.process);
        match attempt.token {
            Some(token) => format!("{name} (token {token})"),
            None => name.to_owned(),
        }
    }

    /// The renewals that a witness needs: of those that answered ok the fewest that lead from one to the next
    /// without a gap, up to the last; of the others all.
    pub(crate) fn proofs<'b>(&self, attempt: &'b Attempt) -> impl Iterator<Item = &'b Renewal> {
        // Where terms differ, the shortest and the longest count for all.
        let alike = attempt.ttl_ms_min == attempt.ttl_ms_max && !self.contract().reentrant;
        let ok = |renewal: &Renewal| alike && renewal.outcome == Outcome::Ok;
        let ttl_ms = attempt.ttl_ms_min.map_or(0, NonZeroU64::get);
        let mut end = self.bounds.least_end(attempt.granted_after, ttl_ms);
        let mut needed = vec![true; attempt.renewals.len()];
        for (pair, needed) in attempt.renewals.windows(2).zip(&mut needed) {
            let (this, next) = (&pair[0], &pair[1]);
            // The next one comes in time even without this one.
            *needed = !(ok(this) && ok(next) && next.by < end);
            if *needed {
                end = end.max(self.bounds.least_end(this.after, ttl_ms));
            }
        }
        attempt.renewals.iter().zip(needed).filter(|(_, needed)| *needed).map(|(renewal, _)| renewal)
    }

    /// `lock "daily-sales"`.
    pub(crate) fn lock_name(&self, place: u32) -> &str {
        self.ledger.locks.name(self.attempt(place).lock)
    }

    /// `until 2049 ms`, or why there is no end.
    pub(crate) fn until(&self, place: u32) -> String {
        let attempt = self.attempt(place);
        let segments = self.tenure(place).segments();
        let end = segments.map(|segment| segment.end).max().unwrap_or(0);
        let release = attempt.release.map(|release| release.call.start);
        if release == Some(end) {
            format!("released it only at {}", ms(end))
        } else if attempt.lost.is_some_and(|(at, _)| at == end) {
            format!("was told of the loss only at {}", ms(end))
        } else if self.ledger.death_of(attempt.process).is_some_and(|(at, _)| at == end) {
            format!("lived until {}", ms(end))
        } else if end >= self.ledger.time_last && self.contract().term != Term::Lease {
            "never released it".to_owned()
        } else {
            format!("had it at least until {}", ms(end))
        }
    }

    /// Is only one owner at a time allowed?
    pub(crate) fn is_mutex(&self) -> bool {
        self.contract().mode == Mode::Exclusive
    }
}
