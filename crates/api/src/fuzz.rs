//! Readers of what clients send, for fuzzing.

use crate::xmlrpc;

/// Reads a call by XML-RPC; what is written of one that was understood is understood again.
///
/// # Panics
/// When it is another then.
#[must_use]
pub fn xmlrpc(body: &[u8]) -> bool {
    xmlrpc::fuzz_read(body)
}
