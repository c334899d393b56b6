//! What does a run directory hold for people and machines? One file a format, listed in [`OUTPUTS`].

mod html;
pub(crate) mod junit;
mod pictures;
pub(crate) mod summary;
mod witness;

use fencepost_checker::registry::Item;

use crate::{finished::Finished, render::Warning, store::RunDir};

/// A format: what it is, and how it is written.
pub struct Output {
    /// Its name, and what it is.
    pub item: Item,
    /// Writes its files; those that could not be written are returned.
    write: fn(&RunDir, &Finished) -> Vec<Warning>,
}

impl Output {
    pub(crate) fn write(&self, run: &RunDir, finished: &Finished) -> Vec<Warning> {
        (self.write)(run, finished)
    }
}

/// All formats.
pub const OUTPUTS: &[Output] =
    &[witness::OUTPUT, pictures::OUTPUT, junit::OUTPUT, summary::OUTPUT, html::OUTPUT];

const fn item(name: &'static str, summary: &'static str, documentation: &'static str) -> Item {
    Item { name, summary, documentation, options: &[] }
}

/// Writes a file of the run directory; a failure is a warning.
fn write_file(run: &RunDir, file: &str, content: Result<Vec<u8>, String>) -> Vec<Warning> {
    let written = content.and_then(|bytes| run.write_file(file, &bytes).map_err(|error| error.to_string()));
    written.err().map(|why| Warning { file: file.to_owned(), why }).into_iter().collect()
}
