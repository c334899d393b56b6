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

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    scan(case, |number, write, read| {
        let Some(place) = case.place_of_access(write) else { return };
        let Some(replaced) = write.replaced.filter(|_| write.answer == Answer::Accepted) else { return };
        let stays = read.incarnation == write.incarnation;
        if stays && Some(replaced) != seen(read) && !is_own(case, replaced, read) {
            let at = write.call.end.min(case.ledger.time_last);
            findings.push(Finding::new(KIND.severity, case, at, [place, place]).about(number));
        }
    });
    findings
}

/// The write that a read saw; 0: nothing was there, and the first write replaces number 0.
fn seen(read: &Access) -> Option<u64> {
    read.write_id.or((read.position == Some(0)).then_some(0))
}

/// Is it a write of the reader's own attempt, called since the read, or one of unknown outcome that may have
/// landed since?
fn is_own(case: &Case<'_>, id: u64, read: &Access) -> bool {
    case.ledger.write_of(id).is_some_and(|write| {
        let late = write.answer == Answer::Unknown || write.resolved_by.is_some();
        write.attempt == read.attempt && (late || write.call.start >= read.call.start)
    })
}

/// Goes through the writes of attempts that had read their key, with the last read before each.
fn scan(case: &Case<'_>, mut each: impl FnMut(u32, &Access, &Access)) {
    let mut reads: FastMap<(u32, u32), &Access> = FastMap::default();
    for (number, access) in case.accesses() {
        let Some(attempt) = access.attempt else { continue };
        let key = (attempt, access.key);
        if access.write {
            if let Some(read) = reads.get(&key) {
                each(number, access, read);
            }
        } else if access.answer == Answer::Accepted && seen(access).is_some() {
            reads.insert(key, access);
        }
    }
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let write = &case.ledger.accesses[finding.subject as usize];
    let mut read = None;
    scan(case, |number, _, before| {
        if number == finding.subject {
            read = Some(before.clone());
        }
    });
    let replaced = write.replaced.unwrap_or(0);
    let lost = case.ledger.write_of(replaced);
    let author = lost.map_or_else(String::new, |lost| match case.place_of_access(lost) {
        Some(author) => format!(" by {}", case.who(author)),
        None => format!(" by {}", case.ledger.process_name(lost.process)),
    });
    let text = format!(
        "the write of {} to \"{}\", accepted by {}, replaced write {replaced}{author}, which its read at {} had not seen (it saw write {}): that update is lost",
        case.who(place),
        case.ledger.keys.name(write.key),
        ms(write.call.end.min(case.ledger.time_last)),
        ms(read.as_ref().map_or(0, |read| read.call.end)),
        read.as_ref().and_then(seen).unwrap_or(0),
    );
    let mut told = Told::new(text).tenure(case, place).access(write);
    if let Some(read) = &read {
        told = told.access(read).interval(case, place, "operation", read.call.start, read.call.end);
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
