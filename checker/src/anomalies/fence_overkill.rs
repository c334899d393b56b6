//! `fence-overkill`: the fence turned a rightful access away.

use std::collections::HashSet;

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
        name: "fence-overkill",
        summary: "the fence turned a rightful access away",
        documentation: "The access carried a token at least as high as the highest that the resource itself \
                        named in its refusal, or the resource named one that nobody had ever brought.",
        options: &[],
    },
    severity: Severity::Violation,
    analysis: Analysis::Resource,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let fence = case.ledger.header.fence.as_str();
    if !matches!(fence, "token" | "token-write" | "token-racy") {
        return Vec::new();
    }
    let strict = fence == "token-write";
    let rejections: Vec<u32> = case
        .accesses()
        .filter(|(_, access)| access.answer == Answer::Rejected)
        .map(|(number, _)| number)
        .collect();
    if rejections.is_empty() {
        return Vec::new();
    }
    // While more is to come it cannot be told anyway.
    // Where lines are missing, the one that brought the highest token may be among them.
    let seen = if case.live || case.ledger.is_torn() { Seen(FastMap::default()) } else { Seen::new(case) };
    let mut findings = Vec::new();
    for number in rejections {
        let access = &case.ledger.accesses[number as usize];
        let (Some(token), Some(highest)) = (access.token, access.highest_token_before) else { continue };
        let Some(place) = case.place_of_access(access) else { continue };
        let enough = token > highest || (token == highest && !strict);
        if enough || seen.is_unheard_of(access, highest) {
            let finding = Finding::new(KIND.severity, case, access.call.end, [place, place]);
            findings.push(finding.if_firm(enough).about(number));
        }
    }
    findings
}

/// The tokens that were brought to each key, by when; only of keys that were empty when the history began.
struct Seen(FastMap<u32, Vec<(u64, u64)>>);

impl Seen {
    fn new(case: &Case<'_>) -> Self {
        let mut keys: FastMap<u32, Vec<(u64, u64)>> = FastMap::default();
        let mut fresh = HashSet::new();
        for access in &case.ledger.accesses {
            if let Some(token) = access.token {
                keys.entry(access.key).or_default().push((access.call.start, token));
            }
            let first = access.write && access.replaced == Some(0) && access.highest_token_before == Some(0);
            let empty = !access.write && access.position == Some(0) && access.highest_token_before == Some(0);
            if access.answer == Answer::Accepted && (first || empty) {
                fresh.insert(access.key);
            }
        }
        keys.retain(|key, _| fresh.contains(key));
        for tokens in keys.values_mut() {
            tokens.sort_unstable();
            let mut highest = 0;
            for (_, token) in tokens {
                highest = highest.max(*token);
                *token = highest;
            }
        }
        Self(keys)
    }

    /// Nobody had brought a token this high when the rejection returned.
    fn is_unheard_of(&self, access: &Access, highest: u64) -> bool {
        let Some(tokens) = self.0.get(&access.key) else { return false };
        let count = tokens.partition_point(|(start, _)| *start < access.call.end);
        count.checked_sub(1).is_none_or(|last| tokens[last].1 < highest)
    }
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let place = finding.tenures[0];
    let access = &case.ledger.accesses[finding.subject as usize];
    let (token, highest) = (access.token.unwrap_or(0), access.highest_token_before.unwrap_or(0));
    let enough = token >= highest;
    let reason = if enough {
        format!("naming {highest} as the highest that it had seen")
    } else {
        format!("naming {highest} as the highest, which nobody had ever brought")
    };
    let text = format!(
        "the fence \"{}\" turned {} of {} to \"{}\" with token {token} away at {}, {reason}",
        case.ledger.header.fence,
        if access.write { "a write" } else { "a read" },
        case.ledger.process_name(access.process),
        case.ledger.keys.name(access.key),
        ms(access.call.end),
    );
    let mut told = Told::new(text).events(case.attempt(place).acquire.events()).access(access);
    if !enough {
        // That nobody had brought it shows only where all that was brought is there.
        let brought = case.ledger.accesses.iter().filter(|other| other.key == access.key);
        let first = brought.clone().find(|other| other.highest_token_before == Some(0));
        let top = brought.filter(|other| other.call.start < access.call.end).max_by_key(|other| other.token);
        for other in first.into_iter().chain(top) {
            told = told.access(other);
        }
    }
    told.interval(case, place, "operation", access.call.start, access.call.end)
}
