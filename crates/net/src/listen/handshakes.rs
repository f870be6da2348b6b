//! Handshakes that fail: told, and not as often as a stranger likes.

use crate::tls;
use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// After one that was told, others are only counted for so long.
const QUIET: Duration = Duration::from_secs(30);

/// The handshakes that failed at one listener.
#[derive(Debug, Default)]
pub(super) struct FailedHandshakes(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    told: Option<Instant>,
    count: u64,
}

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
        let more = if more == 0 { String::new() } else { format!(" ({more} others before it)") };
        let why = tls::why_refused(error);
        tracing::warn!("TLS with {from} failed: {why}{more}");
    }
}

impl Untold {
    /// How many were not told before this one; `None`: neither is it.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < QUIET) {
            self.count += 1;
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_and_then_counted() {
        let (mut untold, begin) = (Untold::default(), Instant::now());
        assert_eq!(untold.next(begin), Some(0));
        for _ in 0..1000 {
            assert_eq!(untold.next(begin + QUIET / 2), None);
        }
        assert_eq!(untold.next(begin + QUIET), Some(1000));
        assert_eq!(untold.next(begin + 3 * QUIET), Some(0));
    }
}
