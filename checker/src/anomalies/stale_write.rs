//! `stale-write`: an old holder's write landed on top of a newer holder's.

use super::{Analysis, AnomalyKind, fence_breach, token_duplicate, token_regression};
use crate::{
    case::{Case, Finding, Told, ms},
    contract::TokenSource,
    ledger::{Access, Answer},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "stale-write",
        summary: "an old holder's write landed on top of a newer holder's",
        documentation: "In the resource's own commit order an accepted write of one tenure stands after an \
                        accepted write of a tenure that it certainly precedes. The newer holder's work was \
                        overwritten.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let commits = case.commits();
    if commits.is_empty() {
        return findings;
    }
    let trusted = trusted_tokens(case);
    for writes in commits {
        let mut newest = Newest::default();
        for number in writes {
            let access = &case.ledger.accesses[number as usize];
            let Some(place) = case.place_of_access(access).filter(|place| case.exclusive(*place)) else {
                continue;
            };
            let in_order = access.call.end <= case.tenure(place).adrift_from;
            if in_order && !newest.is_breached_by(case, access) {
                findings.extend(newest.overwritten_by(case, place, number, &trusted));
            }
            newest.admit(case, place, access);
        }
    }
    findings
}

/// May the tokens of each lock order what its intervals leave open?
fn trusted_tokens(case: &Case<'_>) -> Vec<bool> {
    let mut trusted = vec![case.contract().token == TokenSource::Atomic; case.locks.len()];
    if trusted.iter().any(|trusted| *trusted) {
        let doubts = (token_duplicate::KIND.find)(case).into_iter();
        for doubt in doubts.chain((token_regression::KIND.find)(case)) {
            trusted[doubt.lock as usize] = false;
        }
    }
    trusted
}

/// Of the writes committed so far, those of the tenures that came last, by each way to tell.
#[derive(Default)]
struct Newest {
    /// By the end of what was granted, with its place.
    ended: Top,
    /// By when the acquire was called.
    asked: Top,
    /// By token.
    token: Top,
}

/// The two highest values, of different tenures.
#[derive(Default)]
struct Top([Option<(u64, u32)>; 2]);

impl Top {
    fn admit(&mut self, value: u64, place: u32) {
        let new = Some((value, place));
        let [first, second] = self.0;
        self.0 = match first {
            Some((highest, leader)) if leader == place => [Some((highest.max(value), place)), second],
            Some((highest, _)) if highest >= value => {
                let runner_up = second.is_none_or(|(next, other)| value > next || other == place);
                [first, if runner_up { new } else { second }]
            }
            _ => [new, first],
        };
    }

    fn others(&self, place: u32) -> impl Iterator<Item = (u64, u32)> {
        self.0.into_iter().flatten().filter(move |(_, other)| *other != place)
    }
}

impl Newest {
    fn admit(&mut self, case: &Case<'_>, place: u32, access: &Access) {
        self.asked.admit(case.attempt(place).acquire.start, place);
        if let Some(granted) = case.tenure(place).granted {
            self.ended.admit(granted.end, place);
        }
        if let Some(token) = access.token {
            self.token.admit(token, place);
        }
    }

    /// The fence should have stopped this one: that is a finding of its own.
    fn is_breached_by(&self, case: &Case<'_>, access: &Access) -> bool {
        let highest = self.token.0[0].map(|(token, _)| token);
        fence_breach::checks_tokens(case) && access.token < highest && access.token.is_some()
    }

    fn overwritten_by(&self, case: &Case<'_>, place: u32, number: u32, trusted: &[bool]) -> Option<Finding> {
        let lock = case.lock_number(place);
        let rival = |other: &u32| {
            case.lock_number(*other) == lock && !case.tenure(place).clashes(case.tenure(*other))
        };
        let found = |other: u32, certain: bool, firm: bool| {
            let at = case.ledger.accesses[number as usize].call.end;
            Finding::new(KIND.severity, case, at, [place, other])
                .if_certain(certain)
                .if_firm(firm)
                .about(number)
        };
        let places = |top: &Top| top.others(place).map(|(_, other)| other).filter(rival).collect::<Vec<_>>();
        if let Some(other) =
            places(&self.asked).into_iter().find(|other| case.granted_before_asked(place, *other))
        {
            return Some(found(other, true, true));
        }
        let ordered = case.excluded(lock) && case.clock_is_sound();
        if let Some(other) = places(&self.ended).into_iter().find(|other| case.precedes(place, *other)) {
            return Some(found(other, ordered, false));
        }
        let token = case.attempt(place).token?;
        let mut newer = self.token.others(place).filter(|(other, _)| *other > token);
        let (_, other) = newer.find(|(_, other)| rival(other) && !case.precedes(*other, place))?;
        trusted[lock as usize].then(|| found(other, ordered, false))
    }
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [old, new] = finding.tenures;
    let stale = &case.ledger.accesses[finding.subject as usize];
    let covered = case.accesses().map(|(_, access)| access).filter(|access| {
        access.write
            && access.answer == Answer::Accepted
            && (access.key, access.incarnation) == (stale.key, stale.incarnation)
            && access.position < stale.position
            && case.place_of_access(access) == Some(new)
    });
    let covered = covered.max_by_key(|access| access.position);
    let key = case.ledger.keys.name(stale.key);
    let text = format!(
        "the write of {} to \"{key}\", {}, stands on top of that of {}, {}, although {} had lock \"{}\" before (granted at {} against {})",
        case.who(old),
        place_of(stale),
        case.who(new),
        covered.map_or_else(String::new, place_of),
        case.ledger.process_name(case.attempt(old).process),
        case.lock_name(old),
        ms(case.attempt(old).acquire.end),
        ms(case.attempt(new).acquire.end),
    );
    let mut told = Told::new(text)
        .tenure(case, old)
        .tenure(case, new)
        .access(stale)
        .assume(!case.granted_before_asked(old, new), "exclusion");
    for (place, access) in [(new, covered), (old, Some(stale))] {
        if let Some(access) = access {
            told = told.access(access).interval(case, place, "operation", access.call.start, access.call.end);
        }
    }
    told
}

fn place_of(access: &Access) -> String {
    format!("accepted by {} as number {}", ms(access.call.end), access.position.unwrap_or(0))
}
