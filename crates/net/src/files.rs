//! Reading what a plan names: tokens, certificates and keys, which are small and never a pipe.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Tokens, certificates and keys are small.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read {}: it is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{0} is accessible to everybody: chmod o= {0}", path.display())]
    Public { path: PathBuf },
}

/// # Errors
/// When it cannot be read, or is not a regular file: a pipe might never answer.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(FileError::NotRegular { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
        .map_err(failed)?;
    Ok(bytes)
}

/// # Errors
/// As [`read`], and when others than its owner and group may use it.
pub fn read_private(path: &Path) -> Result<Vec<u8>, FileError> {
    let bytes = read(path)?;
    let public = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0);
    match public {
        true => Err(FileError::Public { path: path.to_owned() }),
        false => Ok(bytes),
    }
}
