//! How does the fence decide, and how is the record kept? All in SQL: the condition is part of the statement
//! of the access itself.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, OptionalExtension, named_params};

use super::wire::{Entry, Part, Reply, Request, WriteRequest};

/// What the service was told to do wrong, or right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) fence: String,
    /// The highest token is compared in memory, not in the row.
    pub(super) in_memory: bool,
    /// The next token is turned away, too.
    pub(super) too_strict: bool,
}

pub(super) struct Store {
    connection: Connection,
    rules: Rules,
    incarnation: String,
    /// For `in_memory`: what the fence remembers, and forgets at a restart.
    highest: HashMap<String, u64>,
}

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS life (incarnation TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS item (
        key TEXT PRIMARY KEY, content TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '', token INTEGER,
        write_id INTEGER NOT NULL DEFAULT 0, replaced INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0,
        highest_token INTEGER NOT NULL DEFAULT 0, highest_token_before INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS log (
        place INTEGER PRIMARY KEY, key TEXT NOT NULL, position INTEGER NOT NULL, write_id INTEGER NOT NULL,
        replaced INTEGER NOT NULL, token INTEGER, highest_token_before INTEGER NOT NULL);
    CREATE TRIGGER IF NOT EXISTS record AFTER UPDATE OF write_id ON item BEGIN
        INSERT INTO log (key, position, write_id, replaced, token, highest_token_before)
        VALUES (new.key, new.position, new.write_id, new.replaced, new.token, new.highest_token_before);
    END;";

impl Store {
    pub(super) fn open(path: &Path, rules: Rules) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // What a killed process has written survives in the page cache; the machine itself does not crash.
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.execute_batch(SCHEMA)?;
        connection.execute(
            "INSERT INTO life SELECT lower(hex(randomblob(4))) WHERE NOT EXISTS (SELECT 1 FROM life)",
            [],
        )?;
        let incarnation = connection.query_row("SELECT incarnation FROM life", [], |row| row.get(0))?;
        Ok(Self { connection, rules, incarnation, highest: HashMap::new() })
    }

    pub(super) fn answer(&mut self, request: Request) -> Reply {
        let answered = match request {
            Request::Read { key, token } => self.read(&key, token),
            Request::Write(write) => self.write(&write),
            Request::Claim { key, owner } => self.claim(&key, &owner),
            Request::NextToken { name } => self.next_token(&name),
            Request::Dump { from, limit } => self.dump(from, limit),
        };
        answered.unwrap_or_else(|error| Reply::Error { text: error.to_string() })
    }

    fn ensure(&self, key: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached("INSERT OR IGNORE INTO item (key) VALUES (?1)")?.execute([key])?;
        Ok(())
    }

    /// Does the fence read tokens, and on reads as well?
    fn checks_tokens(&self) -> bool {
        matches!(self.rules.fence.as_str(), "token" | "token-racy")
    }

    fn read(&mut self, key: &str, token: Option<u64>) -> rusqlite::Result<Reply> {
        self.ensure(key)?;
        let sql = if self.checks_tokens() {
            "UPDATE item SET highest_token_before = highest_token,
                    highest_token = max(highest_token, coalesce(:token, 0))
             WHERE key = :key AND (:unchecked OR coalesce(:token, 0) >= highest_token)
             RETURNING content, write_id, position, highest_token_before"
        } else {
            "SELECT content, write_id, position, highest_token FROM item WHERE key = :key AND (:unchecked OR 1)
                AND (:token IS NULL OR 1)"
        };
        if self.checks_tokens() && self.rules.in_memory && !self.passes_in_memory(key, token) {
            return self.rejected(key);
        }
        let incarnation = self.incarnation.clone();
        let row = self.connection.prepare_cached(sql)?.query_row(
            named_params! {":key": key, ":token": token.map(signed), ":unchecked": self.rules.in_memory},
            |row| {
                Ok(Reply::Read {
                    content: row.get(0)?,
                    write_id: unsigned(row.get(1)?),
                    position: unsigned(row.get(2)?),
                    highest_token_before: unsigned(row.get(3)?),
                    incarnation,
                })
            },
        );
        self.or_rejected(key, row.optional()?)
    }

    fn write(&mut self, write: &WriteRequest) -> rusqlite::Result<Reply> {
        self.ensure(&write.key)?;
        let condition = self.condition(write.part);
        if self.compares_in_memory()
            && write.part != Part::Commit
            && !self.passes_in_memory(&write.key, write.token)
        {
            return self.rejected(&write.key);
        }
        if write.part == Part::Check {
            let sql = format!("SELECT 1 FROM item WHERE key = :key AND ({condition}) AND {ALL_NAMES}");
            let passed =
                self.connection.prepare_cached(&sql)?.query_row(&*names(write), |_| Ok(Reply::Passed {}));
            return self.or_rejected(&write.key, passed.optional()?);
        }
        let sql = format!(
            "UPDATE item SET content = :content, replaced = write_id, write_id = :write_id, position = position + 1,
                    token = :token, highest_token_before = highest_token,
                    highest_token = max(highest_token, coalesce(:token, 0))
             WHERE key = :key AND ({condition}) AND {ALL_NAMES}
             RETURNING position, replaced, highest_token_before"
        );
        let incarnation = self.incarnation.clone();
        let row = self.connection.prepare_cached(&sql)?.query_row(&*names(write), |row| {
            Ok(Reply::Written {
                position: unsigned(row.get(0)?),
                replaced: unsigned(row.get(1)?),
                highest_token_before: unsigned(row.get(2)?),
                incarnation,
            })
        });
        self.or_rejected(&write.key, row.optional()?)
    }

    /// The fence, as a condition on the key's row.
    fn condition(&self, part: Part) -> &'static str {
        if part == Part::Commit || self.compares_in_memory() {
            return "1";
        }
        match (self.rules.fence.as_str(), self.rules.too_strict) {
            ("token" | "token-racy", false) => "coalesce(:token, 0) >= highest_token",
            ("token-write", false) => "coalesce(:token, 0) > highest_token",
            // The planted bug: a holder who was granted right after the last one is turned away.
            ("token" | "token-racy" | "token-write", true) => "coalesce(:token, 0) > highest_token + 1",
            ("owner", _) => "owner = :owner",
            ("version", _) => "position = coalesce(:version, -1)",
            _ => "1",
        }
    }

    fn compares_in_memory(&self) -> bool {
        self.rules.in_memory && (self.checks_tokens() || self.rules.fence == "token-write")
    }

    /// The comparison of a fence that keeps its highest token in memory; raises it if it passes.
    fn passes_in_memory(&mut self, key: &str, token: Option<u64>) -> bool {
        let token = token.unwrap_or(0);
        let highest = self.highest.entry(key.to_owned()).or_default();
        let passes = match (self.rules.fence.as_str(), self.rules.too_strict) {
            (_, true) => token > *highest + 1,
            ("token-write", false) => token > *highest,
            _ => token >= *highest,
        };
        if passes {
            *highest = token.max(*highest);
        }
        passes
    }

    fn or_rejected(&self, key: &str, reply: Option<Reply>) -> rusqlite::Result<Reply> {
        reply.map_or_else(|| self.rejected(key), Ok)
    }

    fn rejected(&self, key: &str) -> rusqlite::Result<Reply> {
        let highest: i64 = self
            .connection
            .prepare_cached("SELECT highest_token FROM item WHERE key = ?1")?
            .query_row([key], |row| row.get(0))?;
        let why = format!("turned away by fence '{}'", self.rules.fence);
        Ok(Reply::Rejected { highest_token_before: unsigned(highest), why })
    }

    fn claim(&self, key: &str, owner: &str) -> rusqlite::Result<Reply> {
        self.ensure(key)?;
        self.connection.prepare_cached("UPDATE item SET owner = ?2 WHERE key = ?1")?.execute([key, owner])?;
        Ok(Reply::Claimed {})
    }

    fn next_token(&self, name: &str) -> rusqlite::Result<Reply> {
        let value: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO counter (name, value) VALUES (?1, 1)
                 ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
            )?
            .query_row([name], |row| row.get(0))?;
        Ok(Reply::Token { value: unsigned(value) })
    }

    fn dump(&self, from: u64, limit: u64) -> rusqlite::Result<Reply> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key, position, write_id, replaced, token, highest_token_before FROM log
             WHERE place > ?1 ORDER BY place LIMIT ?2",
        )?;
        let rows = statement.query_map([signed(from), signed(limit)], |row| {
            Ok(Entry {
                key: row.get(0)?,
                position: unsigned(row.get(1)?),
                write_id: unsigned(row.get(2)?),
                replaced: unsigned(row.get(3)?),
                token: row.get::<_, Option<i64>>(4)?.map(unsigned),
                highest_token_before: unsigned(row.get(5)?),
            })
        })?;
        Ok(Reply::Dump { incarnation: self.incarnation.clone(), log: rows.collect::<rusqlite::Result<_>>()? })
    }
}

/// SQLite refuses a parameter that a statement does not name; this names those that only some fences use.
const ALL_NAMES: &str =
    "(:token IS NULL OR :version IS NULL OR :owner IS NULL OR :content IS NULL OR :write_id >= 0)";

fn names(write: &WriteRequest) -> Vec<(&'static str, Box<dyn rusqlite::ToSql>)> {
    vec![
        (":key", Box::new(write.key.clone())),
        (":content", Box::new(write.content.clone())),
        (":write_id", Box::new(signed(write.write_id))),
        (":token", Box::new(write.token.map(signed))),
        (":owner", Box::new(write.owner.clone())),
        (":version", Box::new(write.version.map(signed))),
    ]
}

/// SQLite's integers are signed; tokens, positions and write ids stay far below the sign.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(fence: &str) -> Store {
        let rules = Rules { fence: fence.to_owned(), in_memory: false, too_strict: false };
        Store::open(Path::new(":memory:"), rules).unwrap()
    }

    fn write(write_id: u64, token: u64) -> WriteRequest {
        WriteRequest {
            key: "report".to_owned(),
            content: String::new(),
            write_id,
            token: Some(token),
            owner: format!("o{token}"),
            version: Some(0),
            part: Part::Whole,
        }
    }

    fn is_accepted(store: &mut Store, request: Request) -> bool {
        match store.answer(request) {
            Reply::Rejected { .. } => false,
            Reply::Error { text } => panic!("{text}"),
            _ => true,
        }
    }

    fn read(token: u64) -> Request {
        Request::Read { key: "report".to_owned(), token: Some(token) }
    }

    #[test]
    fn a_token_fence_turns_away_what_is_below_the_highest_and_keeps_a_record() {
        let mut store = store("token");
        assert!(is_accepted(&mut store, Request::Write(write(1, 1))));
        assert!(is_accepted(&mut store, Request::Write(write(2, 3))));
        let reply = store.answer(Request::Write(write(3, 2)));
        assert!(matches!(reply, Reply::Rejected { highest_token_before: 3, .. }), "{reply:?}");
        let reply = store.answer(Request::Write(write(4, 3)));
        assert!(
            matches!(reply, Reply::Written { position: 3, replaced: 2, highest_token_before: 3, .. }),
            "the same token may write again: {reply:?}"
        );
        let Reply::Dump { log, .. } = store.answer(Request::Dump { from: 0, limit: 9 }) else { panic!() };
        assert_eq!(log.iter().map(|entry| entry.write_id).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn reads_raise_the_highest_token_under_token_and_not_under_token_write() {
        for (fence, stale_write_passes) in [("token", false), ("token-write", true)] {
            let mut store = store(fence);
            assert!(is_accepted(&mut store, read(2)));
            assert_eq!(is_accepted(&mut store, Request::Write(write(1, 1))), stale_write_passes, "{fence}");
        }
        assert!(!is_accepted(
            &mut {
                let mut store = store("token");
                store.answer(Request::Write(write(1, 5)));
                store
            },
            read(4)
        ));
    }

    #[test]
    fn owner_and_version_fences() {
        let mut owner = store("owner");
        assert!(!is_accepted(&mut owner, Request::Write(write(1, 1))), "unclaimed");
        owner.answer(Request::Claim { key: "report".to_owned(), owner: "o1".to_owned() });
        assert!(is_accepted(&mut owner, Request::Write(write(1, 1))));
        owner.answer(Request::Claim { key: "report".to_owned(), owner: "o2".to_owned() });
        assert!(!is_accepted(&mut owner, Request::Write(write(2, 1))));
        let mut version = store("version");
        assert!(is_accepted(&mut version, Request::Write(write(1, 1))));
        assert!(!is_accepted(&mut version, Request::Write(write(2, 1))), "it read version 0");
    }

    #[test]
    fn the_planted_bugs_are_there() {
        let mut unchecked = store("unchecked");
        assert!(is_accepted(&mut unchecked, Request::Write(write(1, 5))));
        assert!(is_accepted(&mut unchecked, Request::Write(write(2, 1))));
        let rules = Rules { fence: "token".to_owned(), in_memory: false, too_strict: true };
        let mut strict = Store::open(Path::new(":memory:"), rules).unwrap();
        assert!(is_accepted(&mut strict, Request::Write(write(1, 2))));
        assert!(!is_accepted(&mut strict, Request::Write(write(2, 3))));
        let racy = WriteRequest { part: Part::Commit, ..write(2, 1) };
        let mut store = store("token-racy");
        assert!(is_accepted(&mut store, Request::Write(write(1, 5))));
        assert!(!is_accepted(&mut store, Request::Write(WriteRequest { part: Part::Check, ..write(2, 1) })));
        assert!(is_accepted(&mut store, Request::Write(racy)));
    }

    #[test]
    fn memory_storage_forgets_at_a_restart_and_the_record_does_not() {
        let folder = std::env::temp_dir().join(format!("fencepost-store-{}", std::process::id()));
        let rules = Rules { fence: "token".to_owned(), in_memory: true, too_strict: false };
        let mut store = Store::open(&folder, rules.clone()).unwrap();
        assert!(is_accepted(&mut store, Request::Write(write(1, 5))));
        assert!(!is_accepted(&mut store, Request::Write(write(2, 4))));
        drop(store);
        let mut store = Store::open(&folder, rules).unwrap();
        let reply = store.answer(Request::Write(write(3, 4)));
        assert!(matches!(reply, Reply::Written { highest_token_before: 5, position: 2, .. }), "{reply:?}");
        drop(store);
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", folder.display()));
        }
    }
}
