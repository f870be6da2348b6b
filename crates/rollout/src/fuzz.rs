//! Readers of what sources, the disk and applications say, for fuzzing.

use crate::{profile, service, store};
use mainstay_core::plan::ProfileFormat;

const FORMATS: [ProfileFormat; 4] =
    [ProfileFormat::Json, ProfileFormat::Yaml, ProfileFormat::Toml, ProfileFormat::Text];

/// Reads a profile, whose first byte tells its format.
///
/// # Panics
/// When what was read does not come back as JSON.
pub fn profile(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let Ok(value) = profile::read(format, bytes) else { return };
    let _ = profile::secret_refs(&value);
    let json = serde_json::to_vec(&value).expect("it is JSON");
    if json.len() <= profile::LARGEST {
        let again = profile::read(ProfileFormat::Json, &json).expect("it was read before");
        // A float may be another one by a rounding, once.
        let json = serde_json::to_vec(&again).expect("it is JSON");
        let third = profile::read(ProfileFormat::Json, &json).expect("it was read before");
        assert_eq!(again, third);
    }
}

/// A file of state without its checksum: it is given one, so that more than the first line is read.
pub fn state(input: &[u8]) {
    let _ = store::fuzz_content(input);
    let Some(at) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (json, body) = input.split_at(at);
    if let Some(length) = store::fuzz_content(&store::with_checksum("content", json, body)) {
        assert_eq!(length, body.len());
    }
}

/// What an instance says that it has counted.
///
/// # Panics
/// When it is impossible.
pub fn counts(input: &[u8]) {
    if let Ok(counted) = service::request_count(input) {
        assert!(counted.failures <= counted.requests);
    }
}
