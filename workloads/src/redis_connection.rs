//! A client's connection to one Redis server, and how its errors are sorted: certainly no effect, or nobody knows.

use std::time::Duration;

use fencepost_checker::history::{Cause, Source};
use redis::{
    AsyncConnectionConfig, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, aio::MultiplexedConnection,
};

use crate::lock::{OpError, Outcome, error, too_late};

/// Deletes the key if it is the caller's.
pub(crate) const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
/// Prolongs the key if it is the caller's.
pub(crate) const COMPARE_AND_EXPIRE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
     return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";

/// The connection: opened again at the next request after it broke, never behind the caller's back.
pub(crate) struct RedisConnection {
    response_timeout: Duration,
    client: redis::Client,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
}

/// A request that did not succeed, and whether it may have reached the server.
pub(crate) struct Failed {
    pub(crate) may_have_acted: bool,
    pub(crate) error: OpError,
}

impl Failed {
    pub(crate) fn granted_too_late() -> Self {
        Self { may_have_acted: true, error: too_late() }
    }
}

impl<T> From<Failed> for Outcome<T> {
    fn from(failed: Failed) -> Self {
        if failed.may_have_acted { Self::Info(failed.error) } else { Self::Fail(failed.error) }
    }
}

impl RedisConnection {
    pub(crate) fn new(client: redis::Client, response_timeout: Duration) -> Self {
        Self { response_timeout, client, connection: tokio::sync::Mutex::new(None) }
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref() {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(Some(self.response_timeout))
            .set_connection_timeout(Some(self.response_timeout));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    /// Runs a request on the connection and sorts its error.
    pub(crate) async fn ask<T: FromRedisValue>(&self, request: Request<'_>) -> Result<T, Failed> {
        let mut connection = self.connection().await.map_err(|failure| Failed {
            may_have_acted: false,
            error: error(Cause::Unavailable, Source::Library, failure.to_string()),
        })?;
        let is_script = matches!(request, Request::Script(_));
        let answer = match request {
            Request::Command(command) => command.query_async(&mut connection).await,
            Request::Script(script) => script.invoke_async(&mut connection).await,
        };
        match answer {
            Ok(value) => Ok(value),
            Err(failure) => Err(self.sort(failure, is_script).await),
        }
    }

    async fn sort(&self, failure: RedisError, is_script: bool) -> Failed {
        let text = failure.to_string();
        if failure.is_timeout() {
            return Failed { may_have_acted: true, error: error(Cause::Timeout, Source::Library, text) };
        }
        if failure.is_io_error() || failure.is_connection_dropped() || failure.is_unrecoverable_error() {
            *self.connection.lock().await = None;
            return Failed { may_have_acted: true, error: error(Cause::Unavailable, Source::Library, text) };
        }
        // The server itself said no. A script may have failed half-way, unless the server took no commands at all.
        let took_none = matches!(
            failure.kind(),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading | ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown
            )
        );
        let may_have_acted = is_script && !took_none;
        Failed { may_have_acted, error: error(Cause::Refused, Source::Server, text) }
    }
}

pub(crate) enum Request<'a> {
    Command(&'a redis::Cmd),
    Script(&'a redis::ScriptInvocation<'a>),
}
