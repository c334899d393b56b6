//! What does a finished run directory show? Everything that is drawn from it, file by file.

use std::fmt;

use crate::store::RunDir;

/// A file that could not be drawn. It never changes a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file's name within the run directory.
    pub file: String,
    /// Why it is missing.
    pub why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not drawn: {}", self.file, self.why)
    }
}

/// Draws all that a finished run directory shows, each file for itself: one that fails does not keep the
/// others from being drawn.
#[must_use]
pub fn render(_run: &RunDir) -> Vec<Warning> {
    Vec::new()
}
