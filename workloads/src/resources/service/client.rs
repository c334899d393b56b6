//! A worker's connection to the service. What was sent and not answered has an unknown outcome.

use std::time::Duration;

use async_trait::async_trait;
use fencepost_checker::history::{Cause, LogEntry, Source};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::Mutex,
};

use super::wire::{Entry, Part, Reply, Request, WriteRequest};
use crate::{
    lock::{OpError, error},
    resource::{Access, AccessOutcome, Dump, ReadReply, ResourceClient, Write, WriteReply},
};

const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// A crashed service is started again within some tens of milliseconds: a refused connect is tried again.
const CONNECT_TRIES: u32 = 20;
const BETWEEN_CONNECTS: Duration = Duration::from_millis(5);

pub(super) struct Client {
    endpoint: String,
    two_phase: bool,
    connection: Mutex<Option<BufReader<TcpStream>>>,
}

/// A request without an answer.
struct NoAnswer {
    sent: bool,
    error: OpError,
}

impl<T> From<NoAnswer> for AccessOutcome<T> {
    fn from(no_answer: NoAnswer) -> Self {
        if no_answer.sent { Self::Unknown(no_answer.error) } else { Self::Failed(no_answer.error) }
    }
}

impl Client {
    pub(super) fn new(endpoint: &str, two_phase: bool) -> Self {
        Self { endpoint: endpoint.to_owned(), two_phase, connection: Mutex::new(None) }
    }

    async fn ask(&self, request: &Request) -> Result<Reply, NoAnswer> {
        let mut slot = self.connection.lock().await;
        let connection = match slot.take() {
            Some(connection) if is_alive(&connection) => connection,
            _ => self.connect().await?,
        };
        let lost = |cause, text: String| NoAnswer { sent: true, error: error(cause, Source::Library, text) };
        match tokio::time::timeout(REPLY_TIMEOUT, exchange(connection, request)).await {
            Ok(Ok((connection, reply))) => {
                *slot = Some(connection);
                Ok(reply)
            }
            Ok(Err(failure)) => Err(lost(Cause::Unavailable, format!("the resource: {failure}"))),
            Err(_) => Err(lost(Cause::Timeout, "the resource did not answer".to_owned())),
        }
    }

    async fn connect(&self) -> Result<BufReader<TcpStream>, NoAnswer> {
        let mut tries = 0;
        loop {
            tries += 1;
            match tokio::time::timeout(REPLY_TIMEOUT, TcpStream::connect(&self.endpoint)).await {
                Ok(Ok(stream)) => {
                    // Without it the answer waits for an acknowledgement that the other side delays by 40 ms.
                    let _ = stream.set_nodelay(true);
                    return Ok(BufReader::new(stream));
                }
                Ok(Err(_)) if tries < CONNECT_TRIES => tokio::time::sleep(BETWEEN_CONNECTS).await,
                Ok(Err(failure)) => return Err(unreachable(format!("the resource: {failure}"))),
                Err(_) => return Err(unreachable("the resource does not accept".to_owned())),
            }
        }
    }
}

fn unreachable(text: String) -> NoAnswer {
    NoAnswer { sent: false, error: error(Cause::Unavailable, Source::Library, text) }
}

/// A connection that the other side has closed shows it by being readable: then nothing was sent yet, and a
/// new one can be opened without doubt about the request.
fn is_alive(connection: &BufReader<TcpStream>) -> bool {
    let mut byte = [0];
    matches!(connection.get_ref().try_read(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

async fn exchange(
    mut connection: BufReader<TcpStream>,
    request: &Request,
) -> std::io::Result<(BufReader<TcpStream>, Reply)> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    connection.get_mut().write_all(&line).await?;
    let mut answer = String::new();
    if connection.read_line(&mut answer).await? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok((connection, serde_json::from_str(&answer)?))
}

/// What every access can be answered besides what it hoped for.
fn otherwise<T>(reply: Reply) -> AccessOutcome<T> {
    match reply {
        Reply::Rejected { highest_token_before, why } => {
            AccessOutcome::Rejected { highest_token_before, why }
        }
        Reply::Error { text } => AccessOutcome::Unknown(error(Cause::Other, Source::Server, text)),
        other => {
            AccessOutcome::Unknown(error(Cause::Other, Source::Library, format!("unexpected: {other:?}")))
        }
    }
}

impl From<Entry> for LogEntry<'static> {
    fn from(entry: Entry) -> Self {
        Self {
            key: entry.key.into(),
            position: entry.position,
            write_id: entry.write_id,
            replaced: entry.replaced,
            token: entry.token,
            highest_token_before: entry.highest_token_before,
        }
    }
}

#[async_trait]
impl ResourceClient for Client {
    async fn read(&self, access: &Access) -> AccessOutcome<ReadReply> {
        match self.ask(&Request::Read { key: access.key.clone(), token: access.token }).await {
            Ok(Reply::Read { content, write_id, position, highest_token_before, incarnation }) => {
                AccessOutcome::Accepted(ReadReply {
                    content,
                    write_id,
                    position,
                    incarnation,
                    highest_token_before,
                })
            }
            Ok(reply) => otherwise(reply),
            // A read changes nothing that matters to anybody else.
            Err(no_answer) => no_answer.into(),
        }
    }

    async fn write(&self, access: &Access, write: &Write) -> AccessOutcome<WriteReply> {
        let request = |part| {
            Request::Write(WriteRequest {
                key: access.key.clone(),
                content: write.content.clone(),
                write_id: write.write_id,
                token: access.token,
                owner: access.owner.clone(),
                version: write.version,
                part,
            })
        };
        let part = if self.two_phase {
            match self.ask(&request(Part::Check)).await {
                Ok(Reply::Passed {}) => {}
                Ok(reply) => return otherwise(reply),
                // Nothing was written by a check.
                Err(no_answer) => return AccessOutcome::Failed(no_answer.error),
            }
            access.gate("write.between").await;
            Part::Commit
        } else {
            Part::Whole
        };
        match self.ask(&request(part)).await {
            Ok(Reply::Written { position, replaced, highest_token_before, incarnation }) => {
                AccessOutcome::Accepted(WriteReply { position, replaced, highest_token_before, incarnation })
            }
            Ok(reply) => otherwise(reply),
            Err(no_answer) => no_answer.into(),
        }
    }

    async fn claim(&self, access: &Access) -> AccessOutcome<()> {
        match self.ask(&Request::Claim { key: access.key.clone(), owner: access.owner.clone() }).await {
            Ok(Reply::Claimed {}) => AccessOutcome::Accepted(()),
            Ok(reply) => otherwise(reply),
            Err(no_answer) => no_answer.into(),
        }
    }

    async fn next_token(&self, name: &str) -> Result<u64, OpError> {
        match self.ask(&Request::NextToken { name: name.to_owned() }).await {
            Ok(Reply::Token { value }) => Ok(value),
            Ok(other) => Err(error(Cause::Other, Source::Server, format!("no token: {other:?}"))),
            Err(no_answer) => Err(no_answer.error),
        }
    }

    async fn dump(&self, from: u64, limit: u64) -> Result<Dump, OpError> {
        match self.ask(&Request::Dump { from, limit }).await {
            Ok(Reply::Dump { incarnation, log }) => {
                Ok(Dump { incarnation, log: log.into_iter().map(Into::into).collect() })
            }
            Ok(other) => Err(error(Cause::Other, Source::Server, format!("no dump: {other:?}"))),
            Err(no_answer) => Err(no_answer.error),
        }
    }
}
