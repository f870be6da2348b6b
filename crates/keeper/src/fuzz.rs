//! Readers of what jobs and other binaries say, for fuzzing.

use crate::{output, process::notify, upgrade};
use std::collections::BTreeMap;

/// The assignments of an sd_notify datagram.
#[must_use]
pub fn notification(bytes: &[u8]) -> BTreeMap<String, String> {
    notify::parse(bytes)
}

/// What a file holds of output that was read in these chunks, in CRI format.
#[must_use]
pub fn log(chunks: &[&[u8]]) -> Vec<u8> {
    output::fuzz_log(chunks)
}

/// Whether this could be what another keeper hands over.
#[must_use]
pub fn handover(bytes: &[u8]) -> bool {
    upgrade::fuzz_read(bytes)
}
