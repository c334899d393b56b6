//! A lease row in an SQLite database shared by all clients: the embedded default. Its clock is the client's.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fencepost_checker::{
    contract::{Contract, LeaseClock, ReleaseCheck, Renews, Term, TokenSource},
    history::{Cause, Released, Source},
    registry::{Item, Options},
};
use fencepost_nemesis::clock::raw::RunClock;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::{
    lock::{
        Call, Grant, Lock, LockClient, OpenError, Opening, Outcome, Renewal, error, poll, too_late,
        validity_ms,
    },
    server::ServerSpec,
};

/// How long a client waits for another one's transaction; only one that is stopped in the middle of its own
/// keeps others waiting.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct Sqlite;

#[async_trait]
impl Lock for Sqlite {
    fn item(&self) -> Item {
        Item {
            name: "sqlite",
            summary: "lease row in an embedded SQLite database; needs no server",
            documentation: "Acquire is one conditional upsert and a counter's increment in one immediate \
                transaction; release deletes the row if it is still the caller's. Leases are judged by the clients' \
                clocks, in whole milliseconds.",
            options: &[],
        }
    }

    fn contract(&self, _: &Options) -> Contract {
        Contract {
            term: Term::Lease,
            granularity_ms: 1,
            renews: Renews::Never,
            release: ReleaseCheck::OwnerChecked,
            token: TokenSource::Atomic,
            clock: LeaseClock::Client,
            ..Contract::default()
        }
    }

    fn gates(&self, _: &Options) -> &'static [&'static str] {
        &[]
    }

    fn servers(&self, _: &Options) -> Vec<Arc<dyn ServerSpec>> {
        Vec::new()
    }

    async fn open(&self, _: &Options, opening: Opening) -> Result<Arc<dyn LockClient>, OpenError> {
        let connection = connect_patiently(&opening.scratch.join("lock.sqlite"))
            .await
            .map_err(|error| OpenError { lock: "sqlite", why: error.to_string() })?;
        Ok(Arc::new(Client {
            connection: Arc::new(Mutex::new(connection)),
            clock: opening.clock,
            holds: Mutex::new(HashMap::new()),
        }))
    }
}

/// All clients open the database at once, and the switch to the write-ahead log does not wait for others.
async fn connect_patiently(path: &Path) -> rusqlite::Result<Connection> {
    const BETWEEN_TRIES: Duration = Duration::from_millis(5);
    const TRIES: u32 = 400;
    let mut tries = 0;
    loop {
        tries += 1;
        match connect(path) {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == rusqlite::ErrorCode::DatabaseBusy && tries < TRIES =>
            {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            result => return result,
        }
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The database is as short-lived as the run: nothing is gained by waiting for the disk.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS lease (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until_ms INTEGER NOT NULL);
         CREATE TABLE IF NOT EXISTS token (name TEXT PRIMARY KEY, value INTEGER NOT NULL);",
    )?;
    Ok(connection)
}

struct Client {
    connection: Arc<Mutex<Connection>>,
    clock: RunClock,
    /// The owner's name of each actor's present or last hold.
    holds: Mutex<HashMap<(String, String), String>>,
}

impl Client {
    /// Runs a transaction off the async thread; a database that stays locked certainly changed nothing.
    async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Outcome<T> {
        let connection = Arc::clone(&self.connection);
        let done = tokio::task::spawn_blocking(move || {
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match done.await {
            Ok(Ok(value)) => Outcome::Ok(value),
            Ok(Err(rusqlite::Error::SqliteFailure(failure, text)))
                if failure.code == rusqlite::ErrorCode::DatabaseBusy =>
            {
                Outcome::Fail(error(Cause::Unavailable, Source::Server, text.unwrap_or_default()))
            }
            Ok(Err(failure)) => Outcome::Info(error(Cause::Other, Source::Server, failure.to_string())),
            Err(panic) => Outcome::Info(error(Cause::Other, Source::Library, panic.to_string())),
        }
    }

    fn owner(&self, call: &Call) -> Option<String> {
        let key = (call.process.clone(), call.lock.clone());
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    async fn try_acquire(&self, call: &Call) -> Outcome<Grant> {
        let owner = format!("{}#{}", call.process, call.attempt);
        let (name, ttl, clock) = (call.lock.clone(), call.ttl, self.clock);
        let mine = owner.clone();
        let granted = self.transact(move |connection| grant(connection, clock, &name, &mine, ttl)).await;
        match granted {
            Outcome::Ok(Some((token, granted_after, granted_by))) => {
                let key = (call.process.clone(), call.lock.clone());
                self.holds.lock().unwrap_or_else(PoisonError::into_inner).insert(key, owner.clone());
                let validity_ms = validity_ms(ttl, granted_after, self.clock.now_ns());
                if validity_ms <= 0 {
                    return Outcome::Info(too_late());
                }
                Outcome::Ok(Grant {
                    token: Some(token),
                    validity_ms: Some(validity_ms),
                    ttl_ms: Some(ttl.as_millis() as u64),
                    owner,
                    granted_after,
                    granted_by,
                })
            }
            Outcome::Ok(None) => Outcome::busy(),
            Outcome::Fail(error) => Outcome::Fail(error),
            Outcome::Info(error) => Outcome::Info(error),
        }
    }
}

/// The client's clock, in the milliseconds that the row is kept in.
fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_epoch.map_or(0, |elapsed| elapsed.as_millis() as i64)
}

fn grant(
    connection: &mut Connection,
    clock: RunClock,
    name: &str,
    owner: &str,
    ttl: Duration,
) -> rusqlite::Result<Option<(u64, u64, u64)>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The term counts from the reading of the clock, and that is read inside the transaction: a wait for the
    // database must not shorten the lease that others respect.
    let granted_after = clock.now_ns();
    let now = now_ms();
    let taken = transaction
        .prepare_cached(
            "INSERT INTO lease (name, owner, until_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms
             WHERE until_ms <= ?4",
        )?
        .execute((name, owner, now + ttl.as_millis() as i64, now))?;
    if taken == 0 {
        return Ok(None);
    }
    let token: i64 = transaction
        .prepare_cached(
            "INSERT INTO token (name, value) VALUES (?1, 1)
             ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
        )?
        .query_row([name], |row| row.get(0))?;
    transaction.commit()?;
    Ok(Some((token as u64, granted_after, clock.now_ns())))
}

#[async_trait]
impl LockClient for Client {
    async fn acquire(&self, call: &Call) -> Outcome<Grant> {
        poll(call.wait, || self.try_acquire(call)).await
    }

    async fn renew(&self, call: &Call) -> Outcome<Renewal> {
        let Some(owner) = self.owner(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        let (name, ttl, clock) = (call.lock.clone(), call.ttl, self.clock);
        let renewed = self.transact(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let granted_after = clock.now_ns();
            let now = now_ms();
            let changed = transaction.execute(
                "UPDATE lease SET until_ms = ?3 WHERE name = ?1 AND owner = ?2 AND until_ms > ?4",
                (&name, &owner, now + ttl.as_millis() as i64, now),
            )?;
            transaction.commit()?;
            Ok((changed == 1).then(|| (granted_after, clock.now_ns())))
        });
        match renewed.await {
            Outcome::Ok(Some((granted_after, granted_by))) => {
                Outcome::Ok(Renewal { ttl_ms: ttl.as_millis() as u64, granted_after, granted_by })
            }
            Outcome::Ok(None) => {
                Outcome::Fail(error(Cause::NotHeld, Source::Server, "the lease is not yours"))
            }
            Outcome::Fail(error) => Outcome::Fail(error),
            Outcome::Info(error) => Outcome::Info(error),
        }
    }

    async fn release(&self, call: &Call) -> Outcome<Released> {
        let Some(owner) = self.owner(call) else {
            return Outcome::Fail(error(Cause::NotHeld, Source::Library, "never acquired"));
        };
        let name = call.lock.clone();
        let deleted = self.transact(move |connection| {
            let mut delete = connection
                .prepare_cached("DELETE FROM lease WHERE name = ?1 AND owner = ?2 AND until_ms > ?3")?;
            delete.execute((name, owner, now_ms()))
        });
        deleted.await.map(|rows| if rows == 1 { Released::Yes } else { Released::No })
    }

    async fn held(&self, call: &Call) -> Outcome<bool> {
        let Some(owner) = self.owner(call) else { return Outcome::Ok(false) };
        let name = call.lock.clone();
        let found = self.transact(move |connection| {
            connection
                .query_row(
                    "SELECT 1 FROM lease WHERE name = ?1 AND owner = ?2 AND until_ms > ?3",
                    (name, owner, now_ms()),
                    |_| Ok(()),
                )
                .optional()
        });
        found.await.map(|row| row.is_some())
    }
}
