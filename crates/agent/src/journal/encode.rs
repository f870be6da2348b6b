//! Lines of the journal as they are written.

use super::{Change, Header};
use crate::inputs::seen_tokens::SeenTokens;
use mainstay_core::{event::Event, record::Record};
use serde::Serialize;
use std::{io, sync::Arc};

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Written<'a> {
    Header(&'a Header),
    Snapshot { records: &'a [&'a Record], taken: &'a SeenTokens, upgrade: u64 },
    Events(&'a [Arc<Event>]),
    Change(&'a Change<'a>),
}

pub(super) fn encode(bytes: &mut Vec<u8>, line: &Written<'_>) -> io::Result<()> {
    let start = bytes.len();
    bytes.extend_from_slice(b"00000000 ");
    serde_json::to_writer(&mut *bytes, line)?;
    let checksum = format!("{:08x}", crc32fast::hash(&bytes[start + 9..]));
    bytes[start..start + 8].copy_from_slice(checksum.as_bytes());
    bytes.push(b'\n');
    Ok(())
}
