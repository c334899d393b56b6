//! What is a workload? A registry item that turns its options into the steps of a tenure.

use fencepost_checker::{
    plan::Span,
    registry::{ChoiceError, Item, Options},
};

use crate::protocol::Step;

/// A kind of work that people take locks for.
pub trait Workload: Sync {
    /// Its name, summary, documentation and options.
    fn item(&self) -> Item;

    /// The lock's name.
    fn lock(&self) -> &'static str;

    /// The name of the resource's key.
    fn key(&self) -> &'static str;

    /// The steps of one tenure; `hold` is the length of the work in it.
    ///
    /// # Errors
    /// If an option's value is off.
    fn steps(&self, options: &Options, hold: Span) -> Result<Vec<Step>, ChoiceError>;
}

/// All workloads, by name.
pub const WORKLOADS: &[&dyn Workload] =
    &[&crate::counter::Counter, &crate::daily_report::DailyReport, &crate::mutex::Mutex];
