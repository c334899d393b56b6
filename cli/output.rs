//! How does text reach the terminal? Colours only where they are wanted, and a reader that went away
//! (`| head`) is no error.

use std::io::{self, Write};

/// Standard output: results. Strips colours off a terminal and under `NO_COLOR`.
pub(crate) fn stdout() -> impl Write {
    Patient(anstream::stdout().lock())
}

/// Standard error: everything that is no result.
pub(crate) fn stderr() -> impl Write {
    Patient(anstream::stderr().lock())
}

/// A writer that goes on when its reader has gone: the exit code, and what a run leaves behind, must not
/// depend on whether somebody still reads.
struct Patient<W>(W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let mut out = Patient(Gone);
        writeln!(out, "nobody reads this").unwrap();
        out.flush().unwrap();
    }
}
