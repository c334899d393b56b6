//! What goes over the wire between a worker and the service: one JSON object a line, one reply a request.

use serde::{Deserialize, Serialize};

/// Which part of a write this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Part {
    /// Check and write in one statement.
    #[default]
    Whole,
    /// The check alone.
    Check,
    /// The write alone, unchecked.
    Commit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub(super) enum Request {
    Read { key: String, token: Option<u64> },
    Write(WriteRequest),
    Claim { key: String, owner: String },
    NextToken { name: String },
    Dump { from: u64, limit: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WriteRequest {
    pub(super) key: String,
    pub(super) content: String,
    pub(super) write_id: u64,
    pub(super) token: Option<u64>,
    pub(super) owner: String,
    pub(super) version: Option<u64>,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reply {
    Read { content: String, write_id: u64, position: u64, highest_token_before: u64, incarnation: String },
    Written { position: u64, replaced: u64, highest_token_before: u64, incarnation: String },
    Passed {},
    Claimed {},
    Rejected { highest_token_before: u64, why: String },
    Token { value: u64 },
    Dump { incarnation: String, log: Vec<Entry> },
    Error { text: String },
}

/// One accepted write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) position: u64,
    pub(super) write_id: u64,
    pub(super) replaced: u64,
    pub(super) token: Option<u64>,
    pub(super) highest_token_before: u64,
}
