//! Asking the keeper itself, for what must work while no agent answers.

use crate::socket;
use mainstay_wire::{
    frame::{self, FrameDecoder},
    link::{KeeperRequest, KeeperResponse},
};
use std::{
    io::{self, Read, Write},
    path::Path,
    time::Duration,
};

const SOCKET: &str = "keeper.sock";
const PATIENCE: Duration = Duration::from_secs(1);

/// One question, one answer.
pub(crate) fn ask(
    run_dir: &Path,
    ask: &KeeperRequest,
    patience: Duration,
) -> io::Result<KeeperResponse> {
    let mut stream = socket::connect(run_dir, SOCKET, patience)?;
    stream.write_all(&frame::encode(ask).map_err(io::Error::other)?)?;
    let mut decoder = FrameDecoder::default();
    let mut bytes = [0; 4096];
    loop {
        if let Some(answer) = decoder.next().map_err(io::Error::other)? {
            return Ok(answer);
        }
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => decoder.push(&bytes[..length]),
        }
    }
}

/// Is there a keeper? It may be that it has no agent at the moment.
pub(crate) fn is_there(run_dir: &Path) -> bool {
    socket::connect(run_dir, SOCKET, PATIENCE).is_ok()
}
