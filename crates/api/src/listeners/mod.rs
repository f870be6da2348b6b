//! What the node listens at: the unix socket, what `[api]` asks for beside it, telemetry, and the
//! socket that speaks as ContainerPilot's does.

mod connection;
mod connections;
mod guard;
pub(crate) mod optional;
mod remote;
mod socket_file;
pub(crate) mod tcp;
mod write_timeout;

use crate::{
    AppState,
    routes::{self, v1::environ, v3},
    telemetry,
};
use axum::Router;
use connection::{Stop, Visitor};
use connections::Connections;
use futures_util::FutureExt;
use mainstay_agent::Handle;
use optional::Which;
use std::{io, time::Duration};
use tokio::{net::UnixListener, sync::watch, time::sleep};

const MOST: usize = 4096;
/// Files that the agent needs for itself.
const RESERVED: u64 = 64;

/// Serves until the run is over and every client has had its last answer.
pub async fn serve(listener: UnixListener, handle: Handle, ending: watch::Receiver<bool>) {
    let most = most();
    let state = AppState::new(handle, ending.clone());
    let routes = routes::all(state.clone());
    let open = |which, routes| optional::keep(which, state.clone(), routes, ending.clone());
    tokio::join!(
        local(listener, routes.clone(), ending.clone(), most),
        remote::serve(&state, environ::from_afar(routes), ending.clone(), most / 2),
        socket_file::keep(&state.handle, ending.clone()),
        open(Which::Telemetry, telemetry::routes(state.clone())),
        open(Which::ContainerPilot, v3::routes(state.clone())),
        state.events.tell(ending.clone()),
    );
}

async fn local(
    listener: UnixListener,
    routes: Router,
    mut ending: watch::Receiver<bool>,
    most: usize,
) {
    let mut connections = Connections::new(most);
    let stop = Stop { run: ending.clone(), listener: None };
    let enter = |connections: &mut Connections, stream| {
        let (routes, stop) = (routes.clone(), stop.clone());
        connections.add(|spoken| connection::serve(stream, Visitor::Local, routes, stop, spoken));
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = connections.tasks.join_next(), if !connections.tasks.is_empty() => continue,
            _ = ending.wait_for(|over| *over) => break,
        };
        match accepted {
            Ok((stream, _)) => enter(&mut connections, stream),
            Err(error) => wait_out(&error).await,
        }
    }
    // Those who are still in line: they lost an earlier agent, and this one has found nothing to do.
    while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
        enter(&mut connections, stream);
    }
    connections.leave().await;
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
