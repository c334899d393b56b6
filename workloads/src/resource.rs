//! What is a protected resource to Fencepost? A registry item that runs as a server of its own and takes reads
//! and writes of which it keeps a record in commit order.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use fencepost_checker::{
    history::LogEntry,
    registry::{Choice, Item, Options},
};

use crate::{lock::OpError, server::ServerSpec, worker::Gates};

/// Who accesses what.
#[derive(Clone, Debug)]
pub struct Access {
    /// The key.
    pub key: String,
    /// The token to show, if the fence wants one.
    pub token: Option<u64>,
    /// The owner of the hold.
    pub owner: String,
    /// The call in whose name gates are passed.
    pub call: crate::lock::Call,
}

impl Access {
    /// Waits here if the nemesis asked for it.
    pub async fn gate(&self, name: &'static str) {
        let gates: &Gates = &self.call.gates;
        gates.pass(name, &self.call).await;
    }
}

/// What was to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The new content.
    pub content: String,
    /// The write's number, unique in a run.
    pub write_id: u64,
    /// The position that the attempt had read, if it had.
    pub version: Option<u64>,
}

/// What a read returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// The content; empty before the first write.
    pub content: String,
    /// The write that made it; 0 before the first.
    pub write_id: u64,
    /// Its position; 0 before the first.
    pub position: u64,
    /// The resource's life.
    pub incarnation: String,
    /// The highest token of earlier accesses; 0 for none.
    pub highest_token_before: u64,
}

/// What an accepted write returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReply {
    /// The position that it took.
    pub position: u64,
    /// The write that it replaced; 0 for none.
    pub replaced: u64,
    /// The highest token of earlier accesses; 0 for none.
    pub highest_token_before: u64,
    /// The resource's life.
    pub incarnation: String,
}

/// How an access ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessOutcome<T> {
    /// It was made.
    Accepted(T),
    /// The fence turned it away.
    Rejected {
        /// The highest token that the fence knows of.
        highest_token_before: u64,
        /// The fence's words.
        why: String,
    },
    /// It certainly was not made, for another reason.
    Failed(OpError),
    /// Nobody knows.
    Unknown(OpError),
}

/// The resource's own record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The resource's life.
    pub incarnation: String,
    /// Accepted writes, in commit order.
    pub log: Vec<LogEntry<'static>>,
}

/// A client's connection to the resource.
#[async_trait]
pub trait ResourceClient: Send + Sync {
    /// Reads a key.
    async fn read(&self, access: &Access) -> AccessOutcome<ReadReply>;

    /// Writes a key.
    async fn write(&self, access: &Access, write: &Write) -> AccessOutcome<WriteReply>;

    /// Claims a key for the access's owner.
    async fn claim(&self, access: &Access) -> AccessOutcome<()>;

    /// The next number of a counter kept at the resource.
    ///
    /// # Errors
    /// If there is no answer; the counter may have risen all the same.
    async fn next_token(&self, name: &str) -> Result<u64, OpError>;

    /// The record from the `from`th accepted write on, of which at most `limit`.
    ///
    /// # Errors
    /// If there is no answer.
    async fn dump(&self, from: u64, limit: u64) -> Result<Dump, OpError>;
}

/// What a resource is set up with.
#[derive(Clone, Debug)]
pub struct ResourceSetup {
    /// The resource's options.
    pub options: Options,
    /// The fence and its options.
    pub fence: Choice,
}

/// A kind of protected resource.
#[async_trait]
pub trait Resource: Sync {
    /// Its name, summary, documentation and options.
    fn item(&self) -> Item;

    /// Its server.
    fn server(&self, setup: &ResourceSetup) -> Arc<dyn ServerSpec>;

    /// Its server's program, if that is not to be looked for on PATH.
    fn program(&self) -> Option<PathBuf>;

    /// A connection; it is opened at the first access, and again after it broke.
    fn connect(&self, setup: &ResourceSetup, endpoint: &str) -> Arc<dyn ResourceClient>;
}
