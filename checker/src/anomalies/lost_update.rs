//! `lost-update`: a read-modify-write overwrote a write that it had not read.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{Access, Answer},
    names::FastMap,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "lost-update",
        summary: "a read-modify-write overwrote a write that it had not read",
        documentation: "The write replaced another than the one that its attempt had read: what came in between \
                        is lost. The resource returns what each write replaced, so this is its own evidence.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
    find,
    tell,
};

/// What an attempt knows of a key.
struct Known {
    /// The read, by number.
    read: u32,
    incarnation: u32,
    /// The write that it saw.
    seen: u64,
    /// Its own writes called since.
    own: Vec<u64>,
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    scan(case, |number, access, known| {
        let Some(place) = case.place_of_access(access) else { return };
        let Some(replaced) = access.replaced.filter(|_| access.answer == Answer::Accepted) else { return };
        let stays = known.incarnation == access.incarnation;
        if stays && replaced != known.seen && !known.own.contains(&replaced) {
            let at = access.call.end.min(case.ledger.time_last);
            findings.push(Finding::new(KIND.severity, case, at, [place, place]).about(number));
        }
    });
    findings
}

/// Goes through the writes of attempts that had read their key, with what they knew of it.
fn scan(case: &Case<'_>, mut each: impl FnMut(u32, &Access, &Known)) {
    let mut knowledge: FastMap<(u32, u32), Known> = FastMap::default();
    for (number, access) in case.accesses() {
        let Some(attempt) = access.attempt else { continue };
        let key = (attempt, access.key);
        if access.write {
            if let Some(known) = knowledge.get_mut(&key) {
                each(number, access, known);
                known.own.extend(access.write_id);
            }
            continue;
        }
        // Nothing was there: the first write replaces number 0.
        let seen = access.write_id.or((access.position == Some(0)).then_some(0));
        if let (Answer::Accepted, Some(seen)) = (access.answer, seen) {
            let incarnation = access.incarnation;
            knowledge.insert(key, Known { read: number, incarnation, seen, own: Vec::new() });
        }
    }
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let write = &case.ledger.accesses[finding.subject as usize];
    let mut read = None;
    let mut own = Vec::new();
    scan(case, |number, _, known| {
        if number == finding.subject {
            read = Some(&case.ledger.accesses[known.read as usize]);
            own.clone_from(&known.own);
        }
    });
    let replaced = write.replaced.unwrap_or(0);
    let lost = case.accesses().map(|(_, access)| access);
    let mut lost = lost.filter(|access| access.write && access.write_id == Some(replaced));
    let lost = lost.next();
    let author = lost.map_or_else(String::new, |lost| match case.place_of_access(lost) {
        Some(author) => format!(" by {}", case.who(author)),
        None => format!(" by {}", case.ledger.process_name(lost.process)),
    });
    let text = format!(
        "the write of {} to \"{}\", accepted by {}, replaced write {replaced}{author}, which its read at {} had not seen (it saw write {}): that update is lost",
        case.who(place),
        case.ledger.keys.name(write.key),
        ms(write.call.end.min(case.ledger.time_last)),
        ms(read.map_or(0, |read| read.call.end)),
        read.and_then(|read| read.write_id).unwrap_or(0),
    );
    let mut told = Told::new(text).tenure(case, place).access(write);
    if let Some(access) = read {
        told = told.access(access).interval(case, place, "operation", access.call.start, access.call.end);
    }
    // Its own writes in between are part of what it knew.
    let owned = case.accesses().map(|(_, access)| access);
    for access in owned.filter(|access| access.write && access.write_id.is_some_and(|id| own.contains(&id))) {
        told = told.access(access);
    }
    if let Some(lost) = lost {
        told = told.access(lost);
        if let Some(author) = case.place_of_access(lost) {
            told =
                told.tenure(case, author).interval(case, author, "operation", lost.call.start, lost.call.end);
        }
    }
    told.interval(case, place, "operation", write.call.start, write.call.end)
}
