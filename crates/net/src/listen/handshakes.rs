//! Handshakes that fail: told, and not as often as a stranger likes.

use super::untold::Untold;
use crate::tls;
use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// The handshakes that failed at one listener.
#[derive(Debug, Default)]
pub(super) struct FailedHandshakes(Mutex<Untold>);

impl FailedHandshakes {
    /// One that came to say something and is turned away. Who just hangs up is no news.
    pub(super) fn tell(&self, peer: Option<SocketAddr>, error: &io::Error) {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        if matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
            return;
        }
        let mut untold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(more) = untold.next(Instant::now()) else { return };
        drop(untold);
        let from = peer.map_or_else(|| "somebody".to_owned(), |peer| peer.to_string());
        let why = tls::why_refused(error);
        tracing::warn!("TLS with {from} failed: {why}{more}");
    }
}
