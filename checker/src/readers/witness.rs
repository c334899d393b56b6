//! How does a finding become a file? Its lines, copied byte for byte, are a history by themselves.

use std::{
    collections::HashSet,
    io::{BufRead, Write},
};

use serde::Deserialize;

use super::{Lines, ReadError};

/// Why a witness cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The history cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The witness cannot be written.
    #[error("the witness cannot be written: {0}")]
    Write(#[from] std::io::Error),
}

/// Copies the header and the lines of one witness, see [`copy_witnesses`].
///
/// # Errors
/// As [`copy_witnesses`].
pub fn copy_witness<R: BufRead, W: Write>(history: R, witness: &[u64], to: W) -> Result<(), CopyError> {
    copy_witnesses(history, &mut [(witness, to)])
}

/// Copies, in one pass over the history, the header and the lines of several witnesses, byte for byte: also
/// the fields that this version does not know.
///
/// # Errors
/// [`CopyError`] if the history cannot be read or a witness not written.
pub fn copy_witnesses<R: BufRead, W: Write>(
    history: R,
    witnesses: &mut [(&[u64], W)],
) -> Result<(), CopyError> {
    #[derive(Deserialize)]
    struct Index {
        #[serde(default)]
        index: u64,
    }
    let wanted: Vec<HashSet<u64>> =
        witnesses.iter().map(|(witness, _)| witness.iter().copied().collect()).collect();
    let last = witnesses.iter().filter_map(|(witness, _)| witness.iter().max()).max().copied();
    let mut lines = Lines::new(history);
    let mut index_next = None;
    while let Some(line) = lines.next()? {
        let Some(counted) = index_next else {
            index_next = Some(0);
            for (_, to) in witnesses.iter_mut() {
                to.write_all(line.bytes)?;
                to.write_all(b"\n")?;
            }
            continue;
        };
        let Ok(Index { index }) = serde_json::from_slice(line.bytes) else { continue };
        let index = if index == 0 { counted } else { index };
        index_next = Some(index + 1);
        for ((_, to), wanted) in witnesses.iter_mut().zip(&wanted) {
            if wanted.contains(&index) {
                to.write_all(line.bytes)?;
                to.write_all(b"\n")?;
            }
        }
        if last.is_none_or(|last| index >= last) {
            break;
        }
    }
    for (_, to) in witnesses {
        to.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_copied_byte_for_byte() {
        let history = "{\"fencepost\":1, \"mine\":true}\n{\"index\":0,\"x\":1}\n{ \"index\":1,\"y\": 2}\n{\"index\":2}\n";
        let mut copy = Vec::new();
        copy_witness(history.as_bytes(), &[1], &mut copy).expect("copied");
        assert_eq!(copy, b"{\"fencepost\":1, \"mine\":true}\n{ \"index\":1,\"y\": 2}\n");
    }
}
