//! Being reached: the one accept loop, with its limits.
//!
//! A user gives a [`Listener`] (an address, or one that somebody else has opened), [`Limits`], TLS or
//! not, and a service for each connection; [`Endpoint::serve`] does the rest until [`Stop`] says so,
//! and then waits for those who are still being answered. Dropped, it ends all of them. Who speaks
//! something else than HTTP takes the [`AcceptLoop`] by itself, with a closure for each connection.
//!
//! ```text
//!  AcceptLoop ─► room in Connections? ─► TLS ─► service(peer) ─► requests …
//!    │           └─ full: a silent one, or the oldest, makes room; or nobody: a guest, for one
//!    │              answer; or the newcomer waits
//!    ├─ no descriptor: on one that was kept back, a guest
//!    └─ Stop: no more are accepted; each connection ends with the answer under way
//! ```

mod accept;
mod bind;
mod body;
mod connection;
mod connections;
mod handshakes;
mod reserve;
mod untold;
mod write_timeout;

pub use accept::{AcceptLoop, Acceptor, Arrival};
pub use bind::{Listener, bind_tcp};
pub use body::{BodyError, BodyLimits, read_body};
pub use connection::{Accepted, Caller, Service, serve_stream};
pub use connections::{Connections, Full};

use crate::tls::ServerTls;
use connections::Room;
use handshakes::FailedHandshakes;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// What a client may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To say what it wants: TLS, then the head of each request, with the time before it.
    pub header: Duration,
    /// A client that takes nothing for so long is gone or means harm.
    pub write: Option<Duration>,
    /// For all that happens on one connection.
    pub connection: Option<Duration>,
    /// Whether a connection is for more than one request.
    pub keep_alive: bool,
    /// For the answer under way when the listener is closed.
    pub drain: Duration,
}

/// When to stop.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Becomes true when all is over: every client gets its last answer, however long it takes.
    pub ending: watch::Receiver<bool>,
    /// Becomes true when this listener is closed: clients have [`Limits::drain`] to leave.
    pub closing: Option<watch::Receiver<bool>>,
}

/// TLS, and what to say to a client that speaks plain HTTP.
#[derive(Debug, Clone)]
pub struct Secured {
    pub tls: ServerTls,
    pub plain_answer: Arc<[u8]>,
}

/// A listener with all that it takes to serve it.
#[derive(Debug)]
pub struct Endpoint {
    pub listener: Arc<Listener>,
    pub tls: Option<Secured>,
    pub limits: Limits,
    /// May be shared by several.
    pub connections: Connections,
    /// Whether those who are in line at the end are answered as well: they may have lost somebody
    /// who listened at the same socket before.
    pub answers_backlog: bool,
}

impl Endpoint {
    /// Serves until it is told to stop. When all is over it returns once every client has left;
    /// when only this listener is closed, at once, and its clients leave by themselves.
    pub async fn serve<S: Service>(
        self,
        service: impl Fn(Caller) -> S + Clone + Send + 'static,
        mut stop: Stop,
    ) {
        let Endpoint { listener, tls, limits, connections, answers_backlog } = self;
        let until = stop.clone();
        let failures = Arc::new(FailedHandshakes::default());
        let serve = |arrival: Arrival<Accepted>| {
            let tls = tls.clone().map(|tls| (tls, failures.clone()));
            let keep_alive = limits.keep_alive && arrival.room == Room::Place;
            let limits = Limits { keep_alive, ..limits };
            connection::serve(arrival, tls, limits, until.clone(), service.clone())
        };
        let accepting = AcceptLoop { listener, connections };
        tokio::select! {
            never = accepting.run(serve) => match never {},
            _ = stop.ending.wait_for(|over| *over) => {}
            () = connection::closed(&mut stop.closing) => return,
        }
        if answers_backlog {
            accepting.take_backlog(serve);
        }
        let AcceptLoop { listener, connections } = accepting;
        drop(listener);
        connections.all_left().await;
    }
}
