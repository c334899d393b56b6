//! With which code does the process end, and how does an error carry it there?

use std::{error::Error, fmt, io, process::ExitCode};

use fencepost_results::{expectation::Outcome, store::StoreError};

/// The exit codes, for scripts and CI. Where several apply, the order of precedence is 1, 3, 2; a suite
/// ends with the worst of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All as expected.
    Expected = 0,
    /// A forbidden anomaly was found; by default any violation is forbidden.
    Forbidden = 1,
    /// Nobody can say; the output says why.
    Unknown = 2,
    /// A threshold was breached, or a required anomaly is missing.
    Missing = 3,
    /// Usage or configuration is wrong, or a file is not there.
    Usage = 64,
    /// The input is malformed.
    Malformed = 65,
    /// A backend or server is missing or does not start.
    Backend = 69,
    /// An error of Fencepost's own.
    Internal = 70,
    /// The store cannot be written, or the disk is full.
    Store = 74,
    /// The run needs rights that this process lacks.
    Rights = 77,
    /// Interrupted; faults were healed and the partial run was kept.
    Interrupted = 130,
}

impl Exit {
    /// The code of that number, as another process of ours ended with.
    pub(crate) fn of(code: u8) -> Self {
        const ALL: [Exit; 11] = [
            Exit::Expected,
            Exit::Forbidden,
            Exit::Unknown,
            Exit::Missing,
            Exit::Usage,
            Exit::Malformed,
            Exit::Backend,
            Exit::Internal,
            Exit::Store,
            Exit::Rights,
            Exit::Interrupted,
        ];
        ALL.into_iter().find(|exit| *exit as u8 == code).unwrap_or(Self::Internal)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Expected => Self::Expected,
            Outcome::Forbidden => Self::Forbidden,
            Outcome::Missing => Self::Missing,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

impl From<&StoreError> for Exit {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Write { .. } => Self::Store,
            StoreError::Missing { .. } | StoreError::Read { .. } => Self::Usage,
            StoreError::Malformed { .. } => Self::Malformed,
        }
    }
}

/// An error that knows with which code the process ends. Context added around it is kept.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// An error of this text that ends the process with this code:
/// `return Err(failure(Exit::Usage, "--clients must be at least 1"))`.
pub(crate) fn failure(exit: Exit, text: impl fmt::Display) -> anyhow::Error {
    Failure { exit, error: anyhow::anyhow!("{text}") }.into()
}

/// Gives a result's error the code with which it ends the process.
pub(crate) trait OrExit<T> {
    /// The error, with this code.
    ///
    /// # Errors
    /// The result's own error.
    fn or_exit(self, exit: Exit) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> anyhow::Result<T> {
        self.map_err(|error| Failure { exit, error: error.into() }.into())
    }
}

/// The code with which an error ends the process: that of the outermost error that has one.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    error.chain().find_map(known_code).unwrap_or(Exit::Internal)
}

fn known_code(cause: &(dyn Error + 'static)) -> Option<Exit> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.exit);
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(error.into());
    }
    let error = cause.downcast_ref::<io::Error>()?;
    (error.kind() == io::ErrorKind::StorageFull).then_some(Exit::Store)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_code_survives_context_and_the_text_stays_plain() {
        let error = failure(Exit::Backend, "no redis-server").context("cannot start the lock's server");
        assert_eq!(code_of(&error), Exit::Backend);
        assert_eq!(format!("{error:#}"), "cannot start the lock's server: no redis-server");
        let result: Result<(), _> = Err(io::Error::other("x")).context("reading").or_exit(Exit::Malformed);
        let error = result.unwrap_err();
        assert_eq!((code_of(&error), format!("{error:#}")), (Exit::Malformed, "reading: x".to_owned()));
    }

    #[test]
    fn errors_without_a_code_are_internal_and_a_full_disk_is_not() {
        assert_eq!(code_of(&anyhow::anyhow!("odd")), Exit::Internal);
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull)).context("history");
        assert_eq!(code_of(&full), Exit::Store);
    }
}
