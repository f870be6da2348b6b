//! Requests over a few connections that are kept open between them.
//!
//! A request waits for a permit, then has its time limit; so a frozen server holds up as many as
//! there are permits, and costs no more than their connections. Whatever ends badly takes its
//! connection along.

use super::{Connection, HttpError, Server};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::timeout};

/// The longest answer that is read.
const LONGEST: usize = 8 << 20;
/// So long a connection is kept although nobody uses it.
const IDLE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Client {
    server: Server,
    permits: Semaphore,
    /// With the time at which each was last used, the latest last.
    idle: Mutex<Vec<(Instant, Connection)>>,
}

/// How a request is made.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// From when it has its permit.
    pub limit: Duration,
    /// Whether it still means the same when it is put to a server that has been restarted.
    pub lasting: bool,
}

impl Client {
    /// At most so many connections.
    #[must_use]
    pub fn new(server: Server, most: usize) -> Client {
        Client { server, permits: Semaphore::new(most), idle: Mutex::new(Vec::new()) }
    }

    /// # Errors
    /// When there is no whole answer in time.
    pub async fn send(
        &self,
        request: &Request<Full<Bytes>>,
        terms: Terms,
    ) -> Result<Response<Bytes>, HttpError> {
        // Never closed: whoever waits gets one.
        let _permit = self.permits.acquire().await;
        let Terms { limit, lasting } = terms;
        match timeout(limit, self.exchange(request, lasting)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Slow { address: self.server.address().to_owned(), limit }),
        }
    }

    async fn exchange(
        &self,
        request: &Request<Full<Bytes>>,
        lasting: bool,
    ) -> Result<Response<Bytes>, HttpError> {
        if let Some(connection) = self.take_idle() {
            match self.send_over(connection, request).await {
                // The server had closed it while it was idle: another one may do, and the others
                // are likely to be as old.
                Err(HttpError::Exchange { .. }) if lasting => self.idle().clear(),
                done => return done,
            }
        }
        let stream = self.server.connect(None).await?;
        let connection = Connection::open(stream, self.server.address()).await?;
        self.send_over(connection, request).await
    }

    async fn send_over(
        &self,
        connection: Connection,
        request: &Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, HttpError> {
        let answer = connection.send(request.clone()).await?;
        let (response, connection) = answer.whole(LONGEST).await?;
        self.keep_idle(connection);
        Ok(response)
    }

    /// The one that was used last, so that those that are too many grow old.
    fn take_idle(&self) -> Option<Connection> {
        Some(self.idle().pop()?.1)
    }

    fn keep_idle(&self, connection: Connection) {
        let mut idle = self.idle();
        idle.push((Instant::now(), connection));
        idle.retain(|(used, connection)| used.elapsed() < IDLE && !connection.is_closed());
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Connection)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
