//! `fence-breach`: the fence let a lower token pass after a higher one.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    ledger::{Access, Answer},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "fence-breach",
        summary: "the fence let a lower token pass after a higher one",
        documentation: "The resource's own record shows an accepted write with a token below one that it had \
                        already committed: the check is missing, racy, or forgot its maximum, for instance \
                        because that lives in memory.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
    find,
    tell,
};

/// Is the fence one that shall turn lower tokens away?
pub(super) fn checks_tokens(case: &Case<'_>) -> bool {
    matches!(case.ledger.header.fence.as_str(), "unchecked" | "token" | "token-write" | "token-racy")
}

fn find(case: &Case<'_>) -> Vec<Finding> {
    if !checks_tokens(case) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for writes in case.commits() {
        let mut highest: Option<(u64, u32)> = None;
        for number in writes {
            let access = &case.ledger.accesses[number as usize];
            let (Some(place), Some(token)) = (case.place_of_access(access), access.token) else { continue };
            let committed = highest.filter(|(highest, _)| token < *highest).map(|(_, place)| place);
            if let Some(above) = committed.or(seen_before(case, access, place)) {
                let at = access.call.end;
                findings.push(Finding::new(KIND.severity, case, at, [place, above]).about(number));
            }
            if highest.is_none_or(|(highest, _)| token > highest) {
                highest = Some((token, place));
            }
        }
    }
    findings
}

/// A fence that checks every access must not let a write pass below what it had seen, as it says itself.
fn seen_before(case: &Case<'_>, access: &Access, place: u32) -> Option<u32> {
    let every = case.ledger.header.fence == "token";
    (every && access.token < access.highest_token_before).then_some(place)
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [low, high] = finding.tenures;
    let passed = &case.ledger.accesses[finding.subject as usize];
    let token = passed.token.unwrap_or(0);
    let above = case.accesses().map(|(_, access)| access).find(|access| {
        access.write
            && access.answer == Answer::Accepted
            && (access.key, access.incarnation) == (passed.key, passed.incarnation)
            && access.position < passed.position
            && access.token > passed.token
    });
    let highest = above.and_then(|access| access.token).or(passed.highest_token_before).unwrap_or(0);
    let text = format!(
        "the fence \"{}\" let a write of {} to \"{}\" pass with token {token} by {} although it had already taken token {highest} before",
        case.ledger.header.fence,
        case.ledger.process_name(passed.process),
        case.ledger.keys.name(passed.key),
        ms(passed.call.end),
    );
    let mut told = Told::new(text).tenure(case, low).tenure(case, high).access(passed);
    told = told.interval(case, low, "operation", passed.call.start, passed.call.end);
    if let Some(above) = above {
        let place = case.place_of_access(above).unwrap_or(high);
        told = told.tenure(case, place).access(above).interval(
            case,
            place,
            "operation",
            above.call.start,
            above.call.end,
        );
    }
    told
}
