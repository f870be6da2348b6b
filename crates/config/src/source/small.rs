//! Small files that a configuration refers to: secrets and variables.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

/// Anything larger is the wrong file.
const LARGEST: u64 = 1 << 20;

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SmallFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("it is not UTF-8 text")]
    NotText,
}

/// The text of a small file.
pub(crate) fn read_small(path: &Path) -> Result<String, SmallFileError> {
    // A pipe or a terminal might never answer.
    if !fs::metadata(path)?.is_file() {
        return Err(SmallFileError::NotRegular);
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(SmallFileError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| SmallFileError::NotText)
}
