//! The text of a template, and of what it includes: regular files of its own directory, within
//! bounds.

use mainstay_sys::nonblocking::open_file;
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The largest template.
const LARGEST: u64 = 2 << 20;

/// # Errors
/// As open(2) and read(2), and when it is no regular file, too large or not UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut bytes = Vec::new();
    File::from(open_file(path)?).take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(invalid(format!("it is longer than {LARGEST} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        invalid(format!("it is not UTF-8, from byte {} on", error.utf8_error().valid_up_to()))
    })
}

/// What a template calls so, if it is beside it or below.
pub(super) fn beside(directory: &Path, name: &str) -> Option<PathBuf> {
    let plain = |part: &str| !part.is_empty() && !matches!(part, "." | "..");
    (name.split('/').all(plain) && !name.contains('\0')).then(|| directory.join(name))
}
