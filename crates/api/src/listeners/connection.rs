//! One connection: served until its client leaves, is too slow, or has to go.

use super::guard::Guard;
use crate::problem::Problem;
use axum::{Router, body::Body, http::HeaderMap, http::header, response::IntoResponse};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};

/// A client has so long to say what it wants.
pub(crate) const HEADER: Duration = Duration::from_secs(10);
/// Of a connection, in each direction: thousands may be open.
const BUFFER: usize = 16 << 10;
/// For what is under way when a client has to leave.
const LEAVE: Duration = Duration::from_secs(2);

/// Who is at the other end.
pub(crate) enum Visitor {
    /// Somebody whom the permissions of the unix socket let in.
    Local,
    Remote {
        guard: Arc<Guard>,
        /// With a certificate of the authority.
        certified: bool,
    },
}

impl Visitor {
    fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match self {
            Visitor::Local => Ok(()),
            Visitor::Remote { guard, certified } => guard.admit(headers, *certified),
        }
    }
}

/// When a connection has to end.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    /// The run is over: every client gets its last answer.
    pub(crate) run: watch::Receiver<bool>,
    /// The listener is closed that it came in through.
    pub(crate) listener: Option<watch::Receiver<bool>>,
}

/// `spoken` becomes true with the first request that was let in.
pub(crate) async fn serve<S>(
    stream: S,
    visitor: Visitor,
    routes: Router,
    mut stop: Stop,
    spoken: Arc<AtomicBool>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let routes = TowerToHyperService::new(routes);
    let visitor = Arc::new(visitor);
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let admitted = visitor.admit(request.headers());
        if admitted.is_ok() {
            spoken.store(true, Ordering::Relaxed);
        }
        let routes = routes.clone();
        async move {
            match admitted {
                Ok(()) => routes.call(request).await,
                Err(problem) => Ok::<_, Infallible>(turned_away(problem)),
            }
        }
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let patience = tokio::select! {
        // A client that hangs up in the middle is no news.
        _ = served.as_mut() => return,
        _ = stop.run.wait_for(|over| *over) => None,
        () = closed(stop.listener) => Some(LEAVE),
    };
    served.as_mut().graceful_shutdown();
    match patience {
        None => drop(served.await),
        Some(patience) => drop(timeout(patience, served).await),
    }
}

async fn closed(listener: Option<watch::Receiver<bool>>) {
    let Some(mut listener) = listener else { return std::future::pending().await };
    // A listener that is gone altogether is closed, too.
    let _ = listener.wait_for(|closed| *closed).await;
}

/// Its place is for those who may come in.
fn turned_away(problem: Problem) -> hyper::Response<Body> {
    let mut answer = problem.into_response();
    answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    answer
}
