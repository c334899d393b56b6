//! `token-regression`: a later tenure got a token that is not higher.

use super::{
    Analysis, AnomalyKind,
    token_duplicate::{may_be_one_hold, tokens},
};
use crate::{
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "token-regression",
        summary: "a later tenure got a token that is not higher",
        documentation: "One tenure certainly precedes another and its token is not lower. A fence then turns the \
                        rightful holder away or lets the expired one in. Tokens must be drawn in the very step \
                        that grants, from a source that survives what the lock survives.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Tokens,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for lock in &case.locks {
        let drawn: Vec<(u32, u64)> = tokens(case, lock).collect();
        let by_time = before_asked(case, &drawn);
        let by_exclusion = before_ended(case, &drawn);
        for ((place, _), (asked, ended)) in drawn.iter().zip(by_time.iter().zip(&by_exclusion)) {
            let Some(earlier) = asked.or(*ended) else { continue };
            let same = case.attempt(earlier).token == case.attempt(*place).token;
            if same && may_be_one_hold(case, earlier, *place) {
                continue;
            }
            // Drawn one after the other, whatever the lock did; else only exclusion orders them.
            let ordered = asked.is_some();
            let lock = case.lock_number(*place);
            let at = case.attempt(*place).acquire.end;
            findings.push(
                Finding::new(KIND.severity, case, at, [earlier, *place])
                    .if_certain(ordered || (case.excluded(lock) && case.clock_is_sound()))
                    .if_firm(ordered),
            );
        }
    }
    findings
}

/// For each, one with a token not lower that was granted before this one was asked for.
fn before_asked(case: &Case<'_>, drawn: &[(u32, u64)]) -> Vec<Option<u32>> {
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by_key(|index| case.attempt(drawn[*index].0).acquire.start);
    let mut found = vec![None; drawn.len()];
    // They come in the order of their grants.
    let mut granted = drawn.iter().peekable();
    let mut highest: Option<(u64, u32)> = None;
    for index in order {
        let (place, token) = drawn[index];
        let asked = case.attempt(place).acquire.start;
        while let Some((earlier, token)) =
            granted.next_if(|(earlier, _)| case.attempt(*earlier).acquire.end < asked)
        {
            if highest.is_none_or(|(highest, _)| *token > highest) {
                highest = Some((*token, *earlier));
            }
        }
        found[index] = highest.filter(|(highest, _)| *highest >= token).map(|(_, earlier)| earlier);
    }
    found
}

/// For each, one with a token not lower that was granted before this one can have ended.
fn before_ended(case: &Case<'_>, drawn: &[(u32, u64)]) -> Vec<Option<u32>> {
    let end = |place: u32| case.tenure(place).granted.map_or(0, |granted| granted.end);
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by_key(|index| end(drawn[*index].0));
    let mut found = vec![None; drawn.len()];
    let mut granted = drawn.iter().filter(|(place, _)| case.tenure(*place).granted.is_some()).peekable();
    // The highest and the one below it: the highest may be this tenure's own.
    let mut highest: [Option<(u64, u32)>; 2] = [None; 2];
    for index in order {
        let (place, token) = drawn[index];
        while let Some((earlier, token)) =
            granted.next_if(|(earlier, _)| case.attempt(*earlier).acquire.end < end(place))
        {
            let new = Some((*token, *earlier));
            if highest[0].is_none_or(|(highest, _)| *token > highest) {
                highest = [new, highest[0]];
            } else if highest[1].is_none_or(|(highest, _)| *token > highest) {
                highest[1] = new;
            }
        }
        let mut others = highest.iter().flatten().filter(|(_, earlier)| *earlier != place);
        found[index] = others
            .find(|(highest, earlier)| *highest >= token && case.precedes(*earlier, place))
            .map(|(_, earlier)| *earlier);
    }
    found
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [earlier, later] = finding.tenures;
    let ordered = case.granted_before_asked(earlier, later);
    let reason = if ordered {
        format!("which was asked for only at {}", ms(case.attempt(later).acquire.start))
    } else {
        "which can have come only after it".to_owned()
    };
    let text = format!(
        "of lock \"{}\", the tenure of {}, granted at {}, has a token that is not below that of {}, granted at {}, {reason}",
        case.lock_name(later),
        case.who(earlier),
        ms(case.attempt(earlier).acquire.end),
        case.who(later),
        ms(case.attempt(later).acquire.end),
    );
    let mut told = Told::new(text).assume(!ordered, "exclusion");
    for place in [earlier, later] {
        told = told.tenure(case, place);
        for segment in case.tenure(place).segments().take(1) {
            told = told.interval(case, place, "granted", segment.start, segment.end);
        }
    }
    told
}
