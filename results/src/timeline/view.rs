//! Which part of a run is shown? The window round the first finding, the lanes that matter in it, and the
//! operations for which there is room.

use std::collections::{BTreeMap, BTreeSet};

use fencepost_checker::{
    history::Function,
    verdict::{Anomaly, Verdict},
};

use crate::recording::{Fault, Hold, Moment, Operation, Outcome, Recording, same_process};

const OPERATIONS_MAX: usize = 300;
const HOLDS_MAX: usize = 140;
const FAULTS_MAX: usize = 60;
const CLIENTS_MAX: usize = 10;
const LOCKS_MAX: usize = 3;

/// The weight of what is drawn only as far as there is room.
const BUSY: u8 = 3;

/// The least window, nanoseconds.
const WINDOW_MIN_NS: u64 = 20_000_000;

/// The window of a run without a finding, nanoseconds, unless its leases are longer.
const WINDOW_QUIET_NS: u64 = 3_000_000_000;

/// What of a run is shown.
pub(super) struct View<'r> {
    /// From when until when, nanoseconds of the run.
    pub(super) window: (u64, u64),
    pub(super) locks: Vec<String>,
    pub(super) clients: Vec<String>,
    pub(super) keys: Vec<String>,
    pub(super) holds: Vec<&'r Hold>,
    pub(super) operations: Vec<&'r Operation>,
    pub(super) faults: Vec<&'r Fault>,
    pub(super) moments: Vec<&'r Moment>,
    /// The finding that the picture is about.
    pub(super) finding: Option<Finding>,
    /// The others, as instant and id.
    pub(super) other_findings: Vec<(u64, String)>,
    /// What is not shown, in words.
    pub(super) left_out: String,
    /// The run's test, for the title.
    pub(super) test: String,
    /// The run's end, nanoseconds.
    pub(super) end: u64,
}

/// The finding that a picture is about.
pub(super) struct Finding {
    pub(super) id: String,
    pub(super) at: u64,
    /// Indices of the events that prove it.
    pub(super) witness: BTreeSet<u64>,
    /// The attempts whose holds meet.
    pub(super) attempts: Vec<u64>,
    /// Those whose holds meet, and who did what proves it.
    processes: BTreeSet<String>,
}

impl Finding {
    fn new(anomaly: &Anomaly, recording: &Recording) -> Self {
        let witness: BTreeSet<u64> = anomaly.witness.iter().copied().collect();
        let mut attempts: Vec<u64> = anomaly.intervals.iter().map(|meeting| meeting.attempt).collect();
        if attempts.is_empty() {
            let proving = recording.operations.iter().filter(|operation| proves(operation, &witness));
            attempts = proving.filter_map(|operation| operation.attempt).collect();
        }
        let mut seen = BTreeSet::new();
        attempts.retain(|attempt| seen.insert(*attempt));
        let mut processes: BTreeSet<String> =
            anomaly.intervals.iter().map(|meeting| meeting.process.clone()).collect();
        let of_finding = |operation: &&Operation| {
            proves(operation, &witness) || operation.attempt.is_some_and(|attempt| seen.contains(&attempt))
        };
        processes.extend(recording.operations.iter().filter(of_finding).map(|o| o.process.clone()));
        Self { id: anomaly.id.clone(), at: anomaly.at_ns.min(recording.end), witness, attempts, processes }
    }

    /// Is this operation part of the proof?
    pub(super) fn is_proven_by(&self, operation: &Operation) -> bool {
        proves(operation, &self.witness)
    }
}

fn proves(operation: &Operation, witness: &BTreeSet<u64>) -> bool {
    witness.contains(&operation.index) || operation.completion.is_some_and(|index| witness.contains(&index))
}

impl<'r> View<'r> {
    /// Chooses what is shown.
    pub(super) fn new(recording: &'r Recording, verdict: Option<&Verdict>) -> Self {
        let anomalies = verdict.map_or(&[][..], |verdict| &verdict.anomalies);
        let certain = || anomalies.iter().filter(|anomaly| anomaly.count > 0);
        let first = certain().next();
        let finding = first.map(|anomaly| Finding::new(anomaly, recording));
        let window = match (first, &finding) {
            (Some(anomaly), Some(finding)) => window_round(recording, anomaly, finding),
            _ => quiet_window(recording),
        };
        let (from, until) = window;
        let others = certain().skip(1).map(|anomaly| (anomaly.at_ns, anomaly.id.clone()));
        let other_findings = others.filter(|(at, _)| (from..=until).contains(at)).collect();
        let mut view = View {
            window,
            locks: Vec::new(),
            clients: Vec::new(),
            keys: Vec::new(),
            holds: Vec::new(),
            operations: Vec::new(),
            faults: Vec::new(),
            moments: Vec::new(),
            finding,
            other_findings,
            left_out: String::new(),
            test: recording.header.test.clone(),
            end: recording.end,
        };
        view.select(recording);
        view
    }

    fn select(&mut self, recording: &'r Recording) {
        let (from, until) = self.window;
        let inside = |begin: u64, end: u64| begin <= until && end >= from;
        let operations: Vec<_> = recording.operations.iter().filter(|o| inside(o.start, o.end)).collect();
        let holds: Vec<_> = recording
            .holds
            .iter()
            .filter(|hold| !hold.doubtful && inside(hold.called, hold.believed_end))
            .collect();
        let faults: Vec<_> = recording.faults.iter().filter(|fault| inside(fault.begin, fault.end)).collect();

        let locks = self.rank(&operations, |operation| operation.lock.clone());
        let clients = self.rank_clients(&operations, &holds);
        let keys = self.rank(&operations, |operation| operation.key.clone());
        self.locks = first_in_order(&locks, LOCKS_MAX);
        self.clients = first_in_order(&clients, CLIENTS_MAX);
        self.keys = first_in_order(&keys, LOCKS_MAX);

        let shown = |operation: &&Operation| self.clients.contains(&operation.process);
        let mut chosen: Vec<_> = operations.iter().copied().filter(shown).collect();
        chosen.sort_by_key(|operation| self.weight(operation));
        let ordinary = chosen.partition_point(|operation| self.weight(operation).0 < BUSY);
        let busy = chosen.split_off(ordinary);
        chosen.truncate(OPERATIONS_MAX);
        // Thinned out evenly: a gap would look as if nobody had asked.
        let stride = busy.len().div_ceil((OPERATIONS_MAX - chosen.len()).max(1)).max(1);
        chosen.extend(busy.into_iter().step_by(stride).take(OPERATIONS_MAX - chosen.len()));
        let (operations_all, holds_all) = (operations.len(), holds.len());
        self.operations = chosen;
        self.operations.sort_by_key(|operation| operation.start);

        let mut chosen: Vec<_> = holds.into_iter().filter(|hold| self.locks.contains(&hold.lock)).collect();
        chosen.sort_by_key(|hold| (!self.meets(hold.attempt), self.distance(hold.begin)));
        chosen.truncate(HOLDS_MAX);
        self.holds = chosen;
        self.holds.sort_by_key(|hold| (hold.begin, hold.attempt));

        self.moments =
            recording.moments.iter().filter(|moment| inside(moment.at, moment.at)).take(FAULTS_MAX).collect();
        let faults_all = faults.len();
        self.faults = faults.into_iter().take(FAULTS_MAX).collect();
        let missing = [
            (operations_all - self.operations.len(), "operation"),
            (holds_all - self.holds.len(), "hold"),
            (faults_all - self.faults.len(), "fault"),
            (clients.len() - self.clients.len(), "client"),
            (locks.len() - self.locks.len(), "lock"),
            (keys.len().saturating_sub(self.keys.len()), "key"),
        ];
        self.left_out = missing
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| {
                let plural = if *count == 1 { "" } else { "s" };
                format!("{} {what}{plural}", crate::draw::axis::thousands(*count as u64))
            })
            .collect::<Vec<_>>()
            .join(", ");
    }

    /// Names by importance: those of the proof first, then the busiest.
    fn rank(&self, operations: &[&Operation], name: impl Fn(&Operation) -> Option<String>) -> Vec<String> {
        let mut weights: BTreeMap<String, (bool, usize)> = BTreeMap::new();
        for operation in operations {
            if let Some(name) = name(operation) {
                let weight = weights.entry(name).or_default();
                weight.0 |= self.finding.as_ref().is_some_and(|finding| finding.is_proven_by(operation))
                    || operation.attempt.is_some_and(|attempt| self.meets(attempt));
                weight.1 += 1;
            }
        }
        let mut names: Vec<_> = weights.into_iter().collect();
        names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        names.into_iter().map(|(name, _)| name).collect()
    }

    /// The clients by importance: those of the finding, then those that hold, then the rest; the busiest first.
    fn rank_clients(&self, operations: &[&Operation], holds: &[&Hold]) -> Vec<String> {
        let mut weights: BTreeMap<&str, (bool, bool, usize)> = BTreeMap::new();
        for operation in operations {
            weights.entry(&operation.process).or_default().2 += 1;
        }
        // A holder that is stopped for the whole window calls nothing in it.
        for hold in holds {
            weights.entry(&hold.process).or_default().1 = true;
        }
        if let Some(finding) = &self.finding {
            for (process, weight) in &mut weights {
                weight.0 = finding.processes.contains(*process);
            }
        }
        let mut names: Vec<_> = weights.into_iter().collect();
        names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        names.into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// Small for what must be seen.
    fn weight(&self, operation: &Operation) -> (u8, u64) {
        let proof = self.finding.as_ref().is_some_and(|finding| finding.is_proven_by(operation));
        let rank = match (&operation.f, operation.outcome) {
            _ if proof => 0,
            (_, Outcome::Busy) => BUSY,
            (Function::Held | Function::Renew | Function::Read, _) => 2,
            _ => 1,
        };
        (rank, self.distance(operation.start))
    }

    fn distance(&self, at: u64) -> u64 {
        self.finding.as_ref().map_or(at, |finding| finding.at.abs_diff(at))
    }

    /// Is this attempt's hold one of those that meet in the finding?
    pub(super) fn meets(&self, attempt: u64) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.attempts.contains(&attempt))
    }

    /// The token that came with an operation, or that its tenure was granted.
    pub(super) fn token_of(&self, operation: &Operation) -> Option<u64> {
        let granted = || self.holds.iter().find(|hold| Some(hold.attempt) == operation.attempt)?.token;
        operation.token.or_else(granted)
    }

    /// The faults that strike this client.
    pub(super) fn faults_of(&self, client: &str) -> Vec<&'r Fault> {
        let strikes = |fault: &&&Fault| fault.targets.iter().any(|target| same_process(target, client));
        self.faults.iter().filter(strikes).copied().collect()
    }
}

/// The most important names, in their natural order: `c2` before `c10`.
fn first_in_order(names: &[String], most: usize) -> Vec<String> {
    let mut names: Vec<String> = names.iter().take(most).cloned().collect();
    names.sort_by_key(|name| {
        let digits: String = name
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .take(9)
            .collect();
        (digits.parse::<u64>().unwrap_or(0), name.clone())
    });
    names
}

/// From before the first hold or event of the proof to after the last, with a margin.
fn window_round(recording: &Recording, anomaly: &Anomaly, finding: &Finding) -> (u64, u64) {
    let end = recording.end;
    let mut stamps = vec![finding.at];
    for operation in recording.operations.iter().filter(|operation| finding.is_proven_by(operation)) {
        stamps.extend([operation.start, operation.end]);
    }
    for hold in recording.holds.iter().filter(|hold| finding.attempts.contains(&hold.attempt)) {
        stamps.extend([hold.called, hold.believed_end]);
    }
    stamps.extend(anomaly.intervals.iter().map(|meeting| meeting.begin_ns));
    let from = stamps.iter().copied().min().unwrap_or(0).min(end);
    let until = stamps.iter().copied().max().unwrap_or(end).min(end);
    let margin = ((until - from) / 12).max(WINDOW_MIN_NS / 2);
    (from.saturating_sub(margin), until + margin)
}

/// Without a finding: round the first fault, else from the beginning.
fn quiet_window(recording: &Recording) -> (u64, u64) {
    let first = recording.faults.first().map(|fault| fault.begin).unwrap_or(0);
    let lease = longest_lease(recording);
    let length = WINDOW_QUIET_NS.max(lease.saturating_mul(3)).min(recording.end.max(WINDOW_MIN_NS));
    let from = first.saturating_sub(length / 5).min(recording.end.saturating_sub(length));
    // A dense run gets a shorter window rather than one with gaps.
    let mut starts: Vec<u64> =
        recording.operations.iter().map(|o| o.start).filter(|start| *start >= from).collect();
    starts.sort_unstable();
    let full = starts.get(OPERATIONS_MAX).map_or(u64::MAX, |start| start.saturating_sub(1));
    (from, (from + length).min(full).max(from + WINDOW_MIN_NS))
}

/// Of the leases that ran out, the longest.
fn longest_lease(recording: &Recording) -> u64 {
    recording
        .holds
        .iter()
        .filter_map(|hold| hold.expiries().next().map(|at| at.saturating_sub(hold.called)))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, Script};

    /// Twenty clients that only ask, while two hold and one of the story does nothing but hold.
    fn crowd() -> String {
        let mut script = Script::new();
        for client in 10..30u32 {
            for ask in 0..13u32 {
                script.busy(
                    12.0 + 100.0 * f64::from(ask),
                    &format!("c{client}"),
                    u64::from(client) * 1_000 + u64::from(ask),
                );
            }
        }
        script.acquire(10.0, 11.0, "c31", 1, 1);
        script.acquire(1_020.0, 1_021.0, "c32", 2, 2);
        script.write(1_060.0, "c32", 2, 2, 1, "ok");
        script.release(1_064.0, "c32", 2, true);
        script.acquire(1_100.0, 1_101.0, "c33", 3, 3);
        script.release(1_110.0, "c33", 3, true);
        script.text()
    }

    #[test]
    fn who_holds_has_a_lane_before_who_only_asks() {
        let recording = Recording::parse(crowd().as_bytes()).unwrap();
        let view = View::new(&recording, None);
        assert_eq!(view.clients.len(), CLIENTS_MAX);
        for client in ["c31", "c32", "c33"] {
            assert!(view.clients.iter().any(|shown| shown == client), "{client}: {:?}", view.clients);
        }
    }

    #[test]
    fn who_is_in_the_finding_comes_first() {
        let recording = Recording::parse(crowd().as_bytes()).unwrap();
        let mut verdict = samples::stale_write_verdict();
        let anomaly = &mut verdict.anomalies[0];
        anomaly.witness.clear();
        for (meeting, (process, attempt)) in anomaly.intervals.iter_mut().zip([("c31", 1), ("c29", 7)]) {
            (meeting.process, meeting.attempt) = (process.to_owned(), attempt);
        }
        let view = View::new(&recording, Some(&verdict));
        let operations: Vec<_> = recording.operations.iter().collect();
        let holds: Vec<_> = recording.holds.iter().collect();
        assert_eq!(view.rank_clients(&operations, &holds)[..4], ["c31", "c29", "c32", "c33"]);
    }
}
