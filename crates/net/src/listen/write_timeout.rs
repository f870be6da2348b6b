//! The patience with the other end of a stream, which has to take what it is sent: one that takes
//! nothing for too long is given up, so that nobody holds a connection by asking and not reading.

use crate::judged_writes::{JudgeWrites, JudgedWrites};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

#[derive(Debug)]
pub(super) struct WriteTimeout {
    limit: Duration,
    /// Runs while the other end takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    pub(super) fn on<S>(stream: S, limit: Duration) -> JudgedWrites<S, WriteTimeout> {
        JudgedWrites::new(stream, WriteTimeout { limit, waiting: None })
    }
}

impl JudgeWrites for WriteTimeout {
    fn written<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn an_end_that_takes_nothing_is_given_up_and_one_that_is_slow_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = WriteTimeout::on(near, Duration::from_secs(30));
        near.write_all(b"12345678").await.expect("there is room");
        let written = tokio::spawn(async move {
            let first = near.write_all(b"abc").await;
            (first, near.write_all(b"defghijklm").await)
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        far.read_exact(&mut [0; 8]).await.expect("it was sent");
        let (first, second) = written.await.expect("it ends");
        assert!(first.is_ok());
        assert_eq!(second.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
    }
}
