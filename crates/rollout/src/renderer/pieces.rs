//! How both sides of the pipe talk: pieces with their lengths before them, of which those that are no
//! bytes of a file are JSON.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};

pub(super) fn put(output: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_be_bytes())?;
    output.write_all(piece)
}

pub(super) fn put_json(output: &mut impl Write, piece: &impl Serialize) -> io::Result<()> {
    put(output, &serde_json::to_vec(piece)?)
}

/// The next piece. `None`: there is none, or it breaks off.
pub(super) fn take(input: &mut impl Read, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if let Err(error) = input.read_exact(&mut length) {
        return none_at_the_end(error);
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > longest {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut piece = vec![0; length];
    match input.read_exact(&mut piece) {
        Ok(()) => Ok(Some(piece)),
        Err(error) => none_at_the_end(error),
    }
}

pub(super) fn take_json<T: DeserializeOwned>(
    input: &mut impl Read,
    longest: usize,
) -> io::Result<Option<T>> {
    let piece = take(input, longest)?;
    Ok(piece.map(|it| serde_json::from_slice(&it)).transpose()?)
}

fn none_at_the_end(error: io::Error) -> io::Result<Option<Vec<u8>>> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Ok(None),
        _ => Err(error),
    }
}
