//! Known stories, played step by step on real locks: the runner drives every client and decides what happens
//! between any two steps.

pub mod stopped_holder;

use fencepost_checker::history::Event;
use tokio::sync::{mpsc, oneshot};

/// What happens in a story, as it happens.
#[derive(Debug)]
pub enum Beat {
    /// A client's step returned.
    Step(Box<Event<'static>>),
    /// A client was stopped.
    Stopped {
        /// Which.
        process: String,
        /// When, nanoseconds of the run.
        at_ns: u64,
    },
    /// A stopped client goes on.
    Resumed {
        /// Which.
        process: String,
        /// When, nanoseconds of the run.
        at_ns: u64,
    },
    /// The audience may think; the story goes on at its sign.
    Pause {
        /// What comes next.
        next: &'static str,
        /// The sign.
        go_on: oneshot::Sender<()>,
    },
}

/// Where a story is told.
pub type Audience = mpsc::UnboundedSender<Beat>;
