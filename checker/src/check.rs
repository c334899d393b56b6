//! How does a history become a verdict? A fold: [`Checker::push`] every event, then [`Checker::finish`].

use crate::{
    case::Case,
    history::{Event, Header},
    judge,
    ledger::Ledger,
    live::Live,
    models::{Limits, MODELS, ModelKind},
    plan::Plan,
    registry::{self, Choice, ChoiceError, Options},
    search::Budget,
    verdict::Verdict,
};

/// The checker: the same code while a run goes on and afterwards.
///
/// ```
/// use fencepost_checker::{check::Checker, history::{Event, Header}, verdict::Valid};
///
/// // Two clients hold a lock that never expires, and neither has released it.
/// let lines = [
///     r#"{"index":0,"time":1,"process":"c1","type":"invoke","f":"acquire","lock":"l"}"#,
///     r#"{"index":1,"time":2,"process":"c1","type":"ok","f":"acquire","lock":"l"}"#,
///     r#"{"index":2,"time":3,"process":"c2","type":"invoke","f":"acquire","lock":"l"}"#,
///     r#"{"index":3,"time":4,"process":"c2","type":"ok","f":"acquire","lock":"l"}"#,
///     r#"{"index":4,"time":5,"process":"c1","type":"invoke","f":"release","lock":"l"}"#,
///     r#"{"index":5,"time":6,"process":"c1","type":"ok","f":"release","lock":"l"}"#,
/// ];
/// let mut checker = Checker::new(Header::default());
/// for line in lines {
///     let event: Event = serde_json::from_str(line)?;
///     checker.push(&event);
/// }
/// let verdict = checker.finish(None);
/// assert_eq!(verdict.valid, Valid::False);
/// assert_eq!(verdict.anomalies[0].id, "double-grant");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Checker {
    ledger: Ledger,
    live: Live,
    model: Option<Model>,
}

/// A model to judge by, too, and what that may cost.
#[derive(Debug)]
struct Model {
    kind: &'static ModelKind,
    options: Options,
    budget: Budget,
}

impl Checker {
    /// A checker for a history with this header.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { ledger: Ledger::new(header), live: Live::default(), model: None }
    }

    /// Judges by a model, too: is there an order of the operations that it allows?
    ///
    /// # Errors
    /// [`ChoiceError`] if there is no such model, or it has no such option.
    pub fn with_model(mut self, choice: &Choice, budget: Budget) -> Result<Self, ChoiceError> {
        let number = registry::find("model", MODELS, |kind| kind.item, &choice.name)?;
        let kind = &MODELS[number];
        let options = Options::check("model", kind.item, choice)?;
        (kind.check)(&options)?;
        self.model = Some(Model { kind, options, budget });
        Ok(self)
    }

    /// Takes one event into account. A completion without an invoke is passed over: readers refuse it.
    pub fn push(&mut self, event: &Event<'_>) {
        self.ledger.push(event);
    }

    /// Findings so far that no later event can take back, by anomaly id and count: for live progress and
    /// `--stop-on-violation`. Cheap enough to be asked several times a second: it looks at what is not yet
    /// settled, and says nothing of the last fifth of a second, of which workers may still have to tell.
    ///
    /// The verdict may hold more, and the counts of the verdict are never below these.
    #[must_use]
    pub fn found_so_far(&mut self) -> Vec<(&'static str, u64)> {
        self.live.look(&self.ledger)
    }

    /// The verdict on all that was pushed. `plan` is that of the run, if there was one: only then can a
    /// history be vacuous.
    #[must_use]
    pub fn finish(self, plan: Option<&Plan>) -> Verdict {
        self.finish_unless(plan, &|| false)
    }

    /// As [`finish`](Self::finish); `stop` is asked now and then, from several threads,
    /// whether a search under a model shall give up: then the verdict says unknown, of which lock or key, and why.
    #[must_use]
    pub fn finish_unless(mut self, plan: Option<&Plan>, stop: &(dyn Fn() -> bool + Sync)) -> Verdict {
        self.ledger.close();
        let case = Case::whole(&self.ledger);
        let judgement = self
            .model
            .as_ref()
            .map(|model| (model.kind.judge)(&case, &model.options, &Limits { budget: model.budget, stop }));
        judge::verdict(&case, plan, judgement)
    }
}
