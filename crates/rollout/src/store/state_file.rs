//! One file of state: a line that says what it is, then JSON, then bytes.
//!
//! ```text
//!  mainstay-rollout 1 content 57 1024 0a1b…\n{"content_type": …}………
//!                   │ │       │  │    └ SHA-256 of kind, JSON and bytes
//!                   │ kind    lengths of JSON and bytes
//!                   format
//! ```

use crate::profile;
use mainstay_core::rollout::Digest;
use serde::{Serialize, de::DeserializeOwned};
use std::str;
use thiserror::Error;

const MAGIC: &str = "mainstay-rollout";
/// Raised when an older reader would get it wrong.
const FORMAT: u32 = 1;
/// The longest first line.
const HEADER: usize = 200;

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadState {
    #[error("it is none of ours")]
    Foreign,
    #[error("it has format {0}, and this is a reader of format {FORMAT}")]
    Format(u32),
    #[error("it is torn, or somebody has changed it")]
    Torn,
    #[error("it makes no sense: {0}")]
    Malformed(String),
}

/// # Errors
/// When the value has no JSON.
pub(super) fn encode<T: Serialize>(
    kind: &str,
    value: &T,
    body: &[u8],
) -> Result<Vec<u8>, serde_json::Error> {
    Ok(with_checksum(kind, &serde_json::to_vec(value)?, body))
}

pub(crate) fn with_checksum(kind: &str, json: &[u8], body: &[u8]) -> Vec<u8> {
    let checksum = checksum(kind, json, body);
    let (jsons, bodies) = (json.len(), body.len());
    let mut file = format!("{MAGIC} {FORMAT} {kind} {jsons} {bodies} {checksum}\n").into_bytes();
    file.extend_from_slice(json);
    file.extend_from_slice(body);
    file
}

/// The value, and the bytes after it.
pub(super) fn decode<'a, T: DeserializeOwned>(
    kind: &str,
    file: &'a [u8],
) -> Result<(T, &'a [u8]), BadState> {
    let end = file.iter().take(HEADER).position(|byte| *byte == b'\n').ok_or(BadState::Foreign)?;
    let (header, rest) = (&file[..end], &file[end + 1..]);
    let header = str::from_utf8(header).map_err(|_| BadState::Foreign)?;
    let mut words = header.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(BadState::Foreign);
    }
    let format = words.next().and_then(|it| it.parse().ok()).ok_or(BadState::Foreign)?;
    if format != FORMAT {
        return Err(BadState::Format(format));
    }
    if words.next() != Some(kind) {
        return Err(BadState::Foreign);
    }
    let mut length = || words.next().and_then(|it| it.parse::<usize>().ok()).ok_or(BadState::Torn);
    let (jsons, bodies) = (length()?, length()?);
    let told = words.next().and_then(Digest::parse).ok_or(BadState::Torn)?;
    if words.next().is_some() || jsons.checked_add(bodies) != Some(rest.len()) {
        return Err(BadState::Torn);
    }
    let (json, body) = rest.split_at(jsons);
    if checksum(kind, json, body) != told {
        return Err(BadState::Torn);
    }
    let value = serde_json::from_slice(json)
        .map_err(|error| BadState::Malformed(format!("line {}", error.line())))?;
    Ok((value, body))
}

fn checksum(kind: &str, json: &[u8], body: &[u8]) -> Digest {
    profile::digest(&[kind.as_bytes(), b"\n", json, b"\n", body])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_every_other_file_is_refused() {
        let file = encode("kept", &vec![1, 2], b"body\n\xff").expect("encoded");
        assert_eq!(decode::<Vec<u8>>("kept", &file), Ok((vec![1, 2], &b"body\n\xff"[..])));
        assert_eq!(decode::<Vec<u8>>("other", &file), Err(BadState::Foreign));
        assert_eq!(decode::<Vec<u8>>("kept", b""), Err(BadState::Foreign));
        assert_eq!(decode::<Vec<u8>>("kept", b"#!/bin/sh\n"), Err(BadState::Foreign));
        let newer = b"mainstay-rollout 2 kept x\n";
        assert_eq!(decode::<Vec<u8>>("kept", newer), Err(BadState::Format(2)));
        for cut in 0..file.len() {
            assert!(decode::<Vec<u8>>("kept", &file[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert!(decode::<Vec<u8>>("kept", &changed).is_err(), "changed at {at}");
        }
        let text = encode("kept", &"text", b"").expect("encoded");
        assert!(matches!(decode::<Vec<u8>>("kept", &text), Err(BadState::Malformed(_))));
    }
}
