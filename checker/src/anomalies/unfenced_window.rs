//! `unfenced-window`: an expired holder's write slipped in before the new holder showed its token.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{Answer, FOREVER},
    names::FastMap,
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "unfenced-window",
        summary: "an expired holder's write slipped in before the new holder showed its token",
        documentation: "The fence learns of a new holder only from its first access. Until then a write of the \
                        expired holder passes. It is harmless for blind overwrites; with a read by the new \
                        holder before it, it becomes a lost-update: fence reads, too.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Resource,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let fence = case.ledger.header.fence.as_str();
    let writes_only = fence == "token-write";
    if !writes_only && !matches!(fence, "token" | "token-racy" | "owner" | "version") {
        return Vec::new();
    }
    let mut first_checked: FastMap<u32, u64> = FastMap::default();
    for (_, access) in case.accesses().filter(|(_, access)| access.write || !writes_only) {
        if let Some(place) = case.place_of_access(access) {
            let first = first_checked.entry(place).or_insert(FOREVER);
            *first = access.call.start.min(*first);
        }
    }
    let mut findings = Vec::new();
    for (number, access) in case.accesses() {
        let known = access.answer == Answer::Accepted && access.resolved_by.is_none();
        let Some(place) = case.place_of_access(access).filter(|_| access.write && known) else { continue };
        if !case.exclusive(place) {
            continue;
        }
        let (granted, owner) = (&case.lock_of(place).granted, case.attempt(place).owner);
        let Some(rival) = granted.enclosing(access.call.start, access.call.end, owner) else { continue };
        let unknown = first_checked.get(&rival.tenure).is_none_or(|first| *first > access.call.end);
        if unknown && !case.tenure(place).clashes(case.tenure(rival.tenure)) {
            findings.push(
                Finding::new(KIND.severity, case, access.call.end, [place, rival.tenure])
                    .if_certain(case.clock_is_sound())
                    .if_firm(false)
                    .about(number),
            );
        }
    }
    findings
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [old, new] = finding.tenures;
    let access = &case.ledger.accesses[finding.subject as usize];
    let text = format!(
        "a write of {} to \"{}\" was accepted by {} while {} had lock \"{}\", granted at {}, because the fence had not yet heard of the new holder",
        case.who(old),
        case.ledger.keys.name(access.key),
        ms(access.call.end),
        case.who(new),
        case.lock_name(old),
        ms(case.attempt(new).acquire.end),
    );
    let mut told = Told::new(text).tenure(case, old).tenure(case, new).access(access).interval(
        case,
        old,
        "operation",
        access.call.start,
        access.call.end,
    );
    for segment in case.tenure(new).segments() {
        told = told.interval(case, new, "granted", segment.start, segment.end);
    }
    told
}
