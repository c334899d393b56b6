//! How does a history become a verdict? A fold: [`Checker::push`] every event, then [`Checker::finish`].

use crate::{
    history::{Event, Header},
    plan::Plan,
    verdict::Verdict,
};

/// The checker: the same code while a run goes on and afterwards.
#[derive(Debug)]
pub struct Checker {
    #[expect(dead_code, reason = "read by the analyses")]
    header: Header,
    events: u64,
}

impl Checker {
    /// A checker for a history with this header.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, events: 0 }
    }

    /// Takes one event into account.
    pub fn push(&mut self, _event: &Event<'_>) {
        self.events += 1;
    }

    /// Findings so far that no later event can take back, by anomaly id and count: for live progress and
    /// `--stop-on-violation`. Cheap enough to be asked several times a second.
    #[must_use]
    pub fn found_so_far(&mut self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The verdict on all that was pushed. `plan` is that of the run, if there was one: only then can a
    /// history be vacuous.
    #[must_use]
    pub fn finish(self, _plan: Option<&Plan>) -> Verdict {
        let mut verdict = Verdict::empty();
        verdict.counts.events = self.events;
        verdict
    }
}
