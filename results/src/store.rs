//! Where do runs land? The store, a directory of run directories, and what one run directory holds.
//!
//! Every JSON file is written to a temporary name and renamed, so that a reader never sees half of one.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use fencepost_checker::{plan::Plan, verdict::Verdict};
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

/// Where runs land unless `--store` says otherwise, relative to the working directory.
pub const DEFAULT_STORE: &str = "results/store";

/// The longest part of a directory's name that a user's text can take, bytes: three of them, the time and
/// a suffix stay below the 255 bytes that file systems allow.
const NAME_PART_BYTES_MAX: usize = 60;

/// How many runs of one name may begin in the same second.
const SAME_NAME_MAX: u32 = 1_000;

/// Why the store, or a run directory, could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be written: no permission, a read-only or full file system, a file in its place.
    #[error("cannot write {path}: {error}; {}", advice(.error))]
    Write {
        /// What was to be written.
        path: String,
        /// Why it could not; told above, and so no source, which would be told again.
        error: io::Error,
    },
    /// There is nothing at that path, or nothing of the kind that is needed.
    #[error("{path} is not {expected}: {why}")]
    Missing {
        /// Where.
        path: String,
        /// What should be there.
        expected: &'static str,
        /// What is there instead.
        why: String,
    },
    /// A file is there and cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which file.
        path: String,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// A file of the run directory is not what this version writes.
    #[error("{path} is not valid: {why}")]
    Malformed {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What to do next about a failed write.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another place with --store DIR"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable, or choose another place with --store DIR"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is where a directory should be: remove it, or choose another place with --store DIR"
        }
        _ => "choose another place with --store DIR",
    }
}

fn write_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Write { path: path.display().to_string(), error }
}

/// This moment as a plan's `started_at`, RFC 3339 to the second.
#[must_use]
pub fn now() -> String {
    Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| Timestamp::now()).to_string()
}

/// A directory of run directories.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Opens the store at this path and creates it if needed.
    ///
    /// # Errors
    /// [`StoreError::Write`] if it cannot be created or written: better now than after the run.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(path).map_err(|error| write_error(path, error))?;
        let probe = path.join(format!(".writable-{}", process::id()));
        fs::write(&probe, b"?").and_then(|()| fs::remove_file(&probe)).map_err(|e| write_error(path, e))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory of a run about to begin: `logs/`, `test.json`, and `latest` pointing to it.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create_run(&self, plan: &Plan) -> Result<RunDir, StoreError> {
        let nemeses: Vec<_> = plan.nemeses.iter().map(|nemesis| nemesis.name.as_str()).collect();
        let nemeses = if nemeses.is_empty() { "none".to_owned() } else { nemeses.join("+") };
        let parts = [plan.lock.name.as_str(), plan.workload.name.as_str(), &nemeses];
        let run = RunDir { path: self.create_dir(&plan.started_at, &parts)? };
        let logs = run.logs_dir();
        fs::create_dir(&logs).map_err(|error| write_error(&logs, error))?;
        run.write_plan(plan)?;
        self.point_latest_to(&run.path)?;
        Ok(run)
    }

    /// Makes the directory of a suite about to begin, `<time>_suite_<name>`, with `runs/` in it.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn create_suite(&self, started_at: &str, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.create_dir(started_at, &["suite", name])?;
        let runs = path.join("runs");
        fs::create_dir(&runs).map_err(|error| write_error(&runs, error))?;
        self.point_latest_to(&path)?;
        Ok(path)
    }

    /// A directory of its own: the time and the parts, with `-2`, `-3`, … behind them where that exists.
    fn create_dir(&self, started_at: &str, parts: &[&str]) -> Result<PathBuf, StoreError> {
        let mut name = time_part(started_at);
        for part in parts {
            name.push('_');
            name.push_str(&name_part(part));
        }
        let mut path = self.path.join(&name);
        for suffix in 2..SAME_NAME_MAX {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = self.path.join(format!("{name}-{suffix}"));
                }
                Err(error) => return Err(write_error(&path, error)),
            }
        }
        Err(write_error(&path, io::ErrorKind::AlreadyExists.into()))
    }

    /// Renews `latest` by renaming a new link over it, so that it never is absent.
    fn point_latest_to(&self, target: &Path) -> Result<(), StoreError> {
        let latest = self.path.join("latest");
        let Some(name) = target.file_name() else { return Ok(()) };
        let new = self.path.join(format!(".latest-{}-{}", process::id(), name.to_string_lossy()));
        let renewed = std::os::unix::fs::symlink(name, &new).and_then(|()| fs::rename(&new, &latest));
        renewed.map_err(|error| {
            // Best effort: the first error is the one to report.
            let _ = fs::remove_file(&new);
            write_error(&latest, error)
        })
    }
}

/// `2026-12-01T02-00-11`, UTC, of an RFC 3339 time; the present time where it is none.
fn time_part(started_at: &str) -> String {
    let time = started_at.parse::<Timestamp>().unwrap_or_else(|_| Timestamp::now());
    time.strftime("%Y-%m-%dT%H-%M-%S").to_string()
}

/// A user's text as a part of a file name: letters, digits, `.`, `+` and `-` stay, all else becomes one `-`.
#[must_use]
pub fn name_part(text: &str) -> String {
    let mut part = String::new();
    for c in text.chars() {
        let kept = if c.is_ascii_alphanumeric() || matches!(c, '.' | '+') { c } else { '-' };
        if !(kept == '-' && part.ends_with('-')) {
            part.push(kept);
        }
        if part.len() >= NAME_PART_BYTES_MAX {
            break;
        }
    }
    let part = part.trim_matches(['-', '.']);
    if part.is_empty() { "unnamed".to_owned() } else { part.to_owned() }
}

/// The directory of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The file of the plan.
    pub const PLAN: &str = "test.json";
    /// The file of the history.
    pub const HISTORY: &str = "history.jsonl";
    /// The file of the verdict.
    pub const VERDICT: &str = "verdict.json";

    /// Opens the directory of a run that has begun, finished or not.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no directory, or no history in it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let missing = |why: String| StoreError::Missing {
            path: path.display().to_string(),
            expected: "a run directory",
            why,
        };
        let found = fs::metadata(path).map_err(|error| missing(error.to_string()))?;
        if !found.is_dir() {
            return Err(missing("it is a file".to_owned()));
        }
        let run = Self { path: path.to_owned() };
        match fs::metadata(run.history_path()) {
            Ok(_) => Ok(run),
            Err(_) if path.join("suite.json").is_file() => {
                Err(missing("it is a suite's; its runs are in runs/".to_owned()))
            }
            Err(error) => Err(missing(format!("no {} in it: {error}", Self::HISTORY))),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `history.jsonl`.
    #[must_use]
    pub fn history_path(&self) -> PathBuf {
        self.path.join(Self::HISTORY)
    }

    /// `logs/`, one file a server and worker.
    #[must_use]
    pub fn logs_dir(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Writes `test.json`.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn write_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        write_json(&self.path.join(Self::PLAN), plan)
    }

    /// Writes `verdict.json`.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn write_verdict(&self, verdict: &Verdict) -> Result<(), StoreError> {
        write_json(&self.path.join(Self::VERDICT), verdict)
    }

    /// Reads `test.json`; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Malformed`].
    pub fn read_plan(&self) -> Result<Option<Plan>, StoreError> {
        read_json(&self.path.join(Self::PLAN))
    }

    /// Reads `verdict.json`; `None` if there is none: a run still going on, or killed.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Malformed`].
    pub fn read_verdict(&self) -> Result<Option<Verdict>, StoreError> {
        read_json(&self.path.join(Self::VERDICT))
    }

    /// Writes a file of this directory, atomically.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        write_atomically(&self.path.join(name), bytes)
    }
}

/// Writes pretty-printed JSON with a newline at its end, atomically.
///
/// # Errors
/// [`StoreError::Write`].
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| write_error(path, io::Error::other(error)))?;
    bytes.push(b'\n');
    write_atomically(path, &bytes)
}

/// Writes a file so that a reader sees the old one or the new one, never half of it.
///
/// # Errors
/// [`StoreError::Write`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".{name}-{}", process::id()));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // Best effort: the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        write_error(path, error)
    })
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::Read { path: path.display().to_string(), error }),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| StoreError::Malformed { path: path.display().to_string(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_run_gets_a_directory_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("deep/store")).unwrap();
        let plan = samples::plan();
        let first = store.create_run(&plan).unwrap();
        let second = store.create_run(&plan).unwrap();
        assert!(first.path().ends_with("2026-12-01T02-00-11_redis_daily-report_pause-holder"));
        assert!(second.path().ends_with("2026-12-01T02-00-11_redis_daily-report_pause-holder-2"));
        assert!(first.logs_dir().is_dir());
        assert_eq!(first.read_plan().unwrap().unwrap(), plan);
        assert_eq!(first.read_verdict().unwrap(), None);
        let latest = fs::canonicalize(store.path().join("latest")).unwrap();
        assert_eq!(latest, fs::canonicalize(second.path()).unwrap());
        let names: Vec<_> = fs::read_dir(store.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "nothing temporary stays: {names:?}");
    }

    #[test]
    fn json_ends_with_a_newline_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let run = Store::open(dir.path()).unwrap().create_run(&samples::plan()).unwrap();
        let verdict = Verdict::empty();
        run.write_verdict(&verdict).unwrap();
        assert!(fs::read_to_string(run.path().join("verdict.json")).unwrap().ends_with("}\n"));
        assert_eq!(run.read_verdict().unwrap(), Some(verdict));
    }

    #[test]
    fn a_name_can_do_no_harm() {
        for (text, name) in [
            ("exec:./adapter.py --x '../../etc'", "exec-.-adapter.py-x-..-..-etc"),
            ("<b>redis</b>?a=b", "b-redis-b-a-b"),
            ("..", "unnamed"),
            ("größe\n", "gr-e"),
            ("", "unnamed"),
        ] {
            assert_eq!(name_part(text), name);
        }
        assert!(name_part(&"x".repeat(1_000)).len() <= NAME_PART_BYTES_MAX);
    }

    #[test]
    fn an_unwritable_store_says_what_why_and_what_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Store::open(&file.join("store")).unwrap_err();
        assert!(std::error::Error::source(&error).is_none(), "the cause would be told twice");
        let error = error.to_string();
        assert!(error.starts_with("cannot write ") && error.contains("--store DIR"), "{error}");
    }

    #[test]
    fn a_broken_run_directory_says_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let error = RunDir::open(&dir.path().join("gone")).unwrap_err().to_string();
        assert!(error.contains("not a run directory"), "{error}");
        let error = RunDir::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no history.jsonl in it"), "{error}");
        fs::write(dir.path().join("history.jsonl"), "").unwrap();
        fs::write(dir.path().join("test.json"), "{").unwrap();
        let error = RunDir::open(dir.path()).unwrap().read_plan().unwrap_err().to_string();
        assert!(error.contains("test.json is not valid"), "{error}");
    }
}
