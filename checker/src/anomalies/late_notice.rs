//! `late-notice`: the holder was told of the loss only after another owner had the lock.

use super::{Analysis, AnomalyKind};
use crate::{
    case::{Case, Finding, Told, ms},
    registry::Item,
    verdict::Severity,
};

/// The registry item.
pub(super) const KIND: AnomalyKind = AnomalyKind {
    item: Item {
        name: "late-notice",
        summary: "the holder was told of the loss only after another owner had the lock",
        documentation: "From the rival's grant to the notice the holder acted on a lock that it did not have. \
                        The metric notice_ms says for how long. No notice can be early enough in every case: \
                        fence the resource.",
        options: &[],
    },
    severity: Severity::Hazard,
    analysis: Analysis::Exclusion,
    find,
    tell,
};

fn find(case: &Case<'_>) -> Vec<Finding> {
    let notices = (0..case.tenures.len() as u32).filter_map(|place| notice(case, place));
    notices
        .map(|notice| Finding::new(KIND.severity, case, notice.told_at, [notice.holder, notice.rival]))
        .collect()
}

/// A notice that came after the loss.
pub(crate) struct Notice {
    pub(crate) holder: u32,
    pub(crate) rival: u32,
    /// By then the lock was lost: the first rival's acquire had returned.
    pub(crate) lost_by: u64,
    pub(crate) told_at: u64,
}

/// The notice that this tenure got after another owner had the lock.
pub(crate) fn notice(case: &Case<'_>, place: u32) -> Option<Notice> {
    let attempt = case.attempt(place);
    let (told_at, _) = attempt.lost?;
    if !case.exclusive(place) {
        return None;
    }
    let granted = &case.lock_of(place).granted;
    let later = &granted.all()[granted.count_before(attempt.acquire.end.saturating_add(1))..];
    let mut meanwhile = later.iter().take_while(|span| span.start < told_at);
    let rival = meanwhile.find(|span| span.owner != attempt.owner)?;
    Some(Notice { holder: place, rival: rival.tenure, lost_by: rival.start, told_at })
}

fn tell(case: &Case<'_>, finding: &Finding) -> Told {
    let [holder, rival] = finding.tenures;
    let lost_by = case.attempt(rival).acquire.end;
    let text = format!(
        "{} was told at {} that lock \"{}\" was lost, {} after {} had got it",
        case.who(holder),
        ms(finding.at),
        case.lock_name(holder),
        ms(finding.at.saturating_sub(lost_by)),
        case.who(rival),
    );
    Told::new(text)
        .tenure(case, holder)
        .tenure(case, rival)
        .interval(case, holder, "believed", case.attempt(holder).acquire.end, finding.at)
        .interval(case, rival, "granted", lost_by, finding.at)
}
