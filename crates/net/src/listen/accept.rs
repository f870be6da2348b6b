//! The accept loop: whoever comes gets a place among the connections, and then what its listener is
//! for. One that has no descriptor left lets in one after the other on those that were kept back.

use super::{
    connections::{Connections, Progress, Room, TO_ASK},
    reserve::{Reserve, says_full},
    untold::Untold,
};
use futures_util::FutureExt;
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::sleep,
};

/// Out of memory: trying again at once would only burn the processor.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What connections come from.
pub trait Acceptor {
    type Accepted: Send;

    /// The next one. May be dropped at any time.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Accepted>> + Send;
}

impl Acceptor for TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }
}

/// Somebody who has come.
#[derive(Debug)]
pub struct Arrival<A> {
    pub accepted: A,
    pub(super) room: Room,
    pub(super) progress: Arc<Progress>,
}

/// A listener, and the connections that it may have open.
#[derive(Debug)]
pub struct AcceptLoop<L> {
    pub listener: Arc<L>,
    /// May be shared by several. When the last is dropped, they end.
    pub connections: Connections,
}

impl<L: Acceptor> AcceptLoop<L> {
    /// Serves whoever comes, each in a task of its own, until it is dropped.
    pub async fn run<F>(&self, serve: impl Fn(Arrival<L::Accepted>) -> F) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (mut reserve, mut failures) = (Reserve::new(), Untold::default());
        loop {
            self.connections.have_room().await;
            match self.listener.accept().await {
                Ok(accepted) => {
                    self.enter(accepted, Room::Place, &serve);
                    reserve.refill();
                }
                Err(error) if says_full(&error) && reserve.give_up() => {
                    if let Some(Ok(accepted)) = self.listener.accept().now_or_never() {
                        self.enter(accepted, Room::Guest, &serve);
                        // It says what it wants before the next one takes its place.
                        yield_now().await;
                    }
                }
                Err(error) => {
                    if let Some(before) = failures.next(Instant::now()) {
                        tracing::warn!("cannot accept a connection: {error}{before}");
                    }
                    // Whoever leaves makes room for the next.
                    match says_full(&error) {
                        true if self.connections.let_one_go() => yield_now().await,
                        true => sleep(TO_ASK).await,
                        false => sleep(ACCEPT_AGAIN).await,
                    }
                    reserve.refill();
                }
            }
        }
    }

    /// Serves those who are in line now.
    pub(super) fn take_backlog<F>(&self, serve: impl Fn(Arrival<L::Accepted>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        while let Some(Ok(accepted)) = self.listener.accept().now_or_never() {
            self.enter(accepted, Room::Place, &serve);
        }
    }

    fn enter<F>(
        &self,
        accepted: L::Accepted,
        room: Room,
        serve: &impl Fn(Arrival<L::Accepted>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.connections.add(room, |progress, room| serve(Arrival { accepted, room, progress }));
    }
}
