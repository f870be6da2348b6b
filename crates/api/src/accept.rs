//! Connections: accepted, capped, and given up when they do not get on.

use crate::{
    Reach,
    outside::{self, Which},
    pilot, routes, telemetry,
};
use axum::Router;
use futures_util::FutureExt;
use hyper::{
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use mainstay_agent::Asker;
use std::{
    collections::VecDeque,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

/// A client has so long to say what it wants.
const HEADER: Duration = Duration::from_secs(10);
const MOST: usize = 4096;
/// Of a connection, in each direction: thousands may be open.
const BUFFER: usize = 16 << 10;
/// Not worth a look through all connections.
const FEW: usize = 16;
/// Files that the agent needs for itself.
const RESERVED: u64 = 64;

/// Serves until the run is over and every client has had its last answer.
pub async fn serve(listener: UnixListener, asker: Asker, ending: watch::Receiver<bool>) {
    let reach = Reach::new(asker, ending.clone());
    let open = |which, routes| outside::keep(which, reach.clone(), routes, ending.clone());
    tokio::join!(
        local(listener, routes(reach.clone()), ending.clone()),
        open(Which::Telemetry, telemetry::routes(reach.clone())),
        open(Which::Pilot, pilot::routes(reach.clone())),
    );
}

async fn local(listener: UnixListener, routes: Router, mut ending: watch::Receiver<bool>) {
    let mut connections = Connections::new(most());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = connections.tasks.join_next(), if !connections.tasks.is_empty() => continue,
            _ = ending.wait_for(|over| *over) => break,
        };
        match accepted {
            Ok((stream, _)) => connections.add(stream, routes.clone(), ending.clone()),
            Err(error) => wait_out(&error).await,
        }
    }
    // Those who are still in line: they lost an earlier agent, and this one has found nothing to do.
    while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
        connections.add(stream, routes.clone(), ending.clone());
    }
    while connections.tasks.join_next().await.is_some() {}
}

/// So many connections the limit of open files allows, after raising it as far as it goes.
fn most() -> usize {
    let hard = mainstay_sys::spawn::raise_nofile().map_or(1024, |(_, hard)| hard);
    usize::try_from(hard.saturating_sub(RESERVED)).unwrap_or(MOST).clamp(16, MOST)
}

/// Out of files or memory: trying again at once would only burn the processor.
async fn wait_out(error: &io::Error) {
    tracing::warn!("cannot accept a connection: {error}");
    sleep(Duration::from_millis(100)).await;
}

struct Connections {
    tasks: JoinSet<()>,
    most: usize,
    /// Those that have not asked for anything yet, oldest first.
    silent: VecDeque<(Arc<AtomicBool>, AbortHandle)>,
}

impl Connections {
    fn new(most: usize) -> Connections {
        Connections { tasks: JoinSet::new(), most, silent: VecDeque::new() }
    }

    /// When all places are taken, the oldest client that has said nothing yet makes room;
    /// if there is none, the newcomer is turned away.
    fn add(&mut self, stream: UnixStream, routes: Router, ending: watch::Receiver<bool>) {
        if self.tasks.len() >= self.most {
            match self.oldest_silent() {
                Some(handle) => handle.abort(),
                None => return,
            }
        }
        let spoken = Arc::new(AtomicBool::new(false));
        let handle = self.tasks.spawn(connection(stream, routes, ending, spoken.clone()));
        self.silent.push_back((spoken, handle));
        // A handle keeps its task's memory: those of the gone are let go before they outnumber the
        // living.
        if self.silent.len() > 2 * self.tasks.len() + FEW {
            self.silent.retain(|(spoken, handle)| {
                !spoken.load(Ordering::Relaxed) && !handle.is_finished()
            });
        }
    }

    fn oldest_silent(&mut self) -> Option<AbortHandle> {
        while let Some((spoken, handle)) = self.silent.pop_front() {
            if !spoken.load(Ordering::Relaxed) && !handle.is_finished() {
                return Some(handle);
            }
        }
        None
    }
}

async fn connection(
    stream: UnixStream,
    routes: Router,
    mut ending: watch::Receiver<bool>,
    spoken: Arc<AtomicBool>,
) {
    let routes = TowerToHyperService::new(routes);
    let routes = service_fn(move |request| {
        spoken.store(true, Ordering::Relaxed);
        routes.call(request)
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), routes)
    );
    tokio::select! {
        // A client that hangs up in the middle is no news.
        _ = served.as_mut() => return,
        _ = ending.wait_for(|over| *over) => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}
