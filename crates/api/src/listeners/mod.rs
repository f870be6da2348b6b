//! What the node listens at: the unix socket, what `[api]` asks for beside it, peers of its fleet,
//! telemetry, the socket that speaks as ContainerPilot's does, and XML-RPC.
//!
//! The accept loop and its limits are those of `net`; here is what each of them lets in, and how the
//! plan in force opens, moves and closes them.

mod guard;
mod login;
pub(crate) mod optional;
mod peers;
mod remote;
mod session;
mod socket_file;
pub(crate) mod tcp;

use crate::{
    RouterState,
    routes::{self, v1::environ, v3},
    telemetry, xmlrpc,
};
use axum::Router;
use mainstay_agent::Handle;
use mainstay_net::listen::{Caller, Connections, Endpoint, Full, Limits, Listener, Stop};
use optional::Which;
use session::{Admission, Session};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    net::UnixListener,
    sync::{mpsc, watch},
};

const MOST: usize = 4096;
/// Files that the agent needs for itself.
const RESERVED: u64 = 64;

/// Of a client of the API.
const LIMITS: Limits = Limits {
    header: Duration::from_secs(10),
    write: None,
    connection: None,
    keep_alive: true,
    drain: Duration::from_secs(2),
};
/// Over TCP: a client that takes nothing for so long is gone or means harm.
const REMOTE_LIMITS: Limits = Limits { write: Some(Duration::from_secs(30)), ..LIMITS };

/// Held by whoever is to open a listener: dropped once it is open, or has been refused once.
type Opening = mpsc::Sender<Infallible>;

/// Serves until the run is over and every client has had its last answer. `opening` is given up once
/// each listener has been tried.
pub async fn serve(
    listener: UnixListener,
    handle: Handle,
    opening: Opening,
    ending: watch::Receiver<bool>,
) {
    let most = most();
    let state = RouterState::new(handle, ending.clone());
    let routes = routes::all(state.clone());
    let open = |which, routes| {
        optional::keep(which, state.clone(), routes, opening.clone(), ending.clone())
    };
    let xmlrpc = xmlrpc::routes(state.clone());
    let optional = (
        open(Which::Telemetry, telemetry::routes(state.clone())),
        open(Which::ContainerPilot, v3::routes(state.clone())),
        open(Which::XmlRpc, xmlrpc.clone()),
        open(Which::XmlRpcSocket, xmlrpc),
    );
    let remote_routes = environ::from_afar(routes.clone());
    tokio::join!(
        local(listener, routes.clone(), ending.clone(), most),
        peers::serve(&state, routes, ending.clone()),
        remote::serve(&state, remote_routes, (opening.clone(), ending.clone()), most / 2),
        socket_file::keep(&state.handle, opening, ending.clone()),
        optional.0,
        optional.1,
        optional.2,
        optional.3,
        state.events.tell(ending.clone()),
    );
}

/// The socket that the keeper holds.
async fn local(listener: UnixListener, routes: Router, ending: watch::Receiver<bool>, most: usize) {
    let endpoint = Endpoint {
        listener: Arc::new(Listener::Unix(listener)),
        tls: None,
        limits: LIMITS,
        connections: Connections::new(most, Full::SilentGoes),
        // They lost an earlier agent, and this one has found nothing to do.
        answers_backlog: true,
    };
    let session = move |caller: Caller| Session::new(Admission::Everybody, caller, routes.clone());
    endpoint.serve(session, Stop { ending, closing: None }).await;
}

/// So many connections the limit of open files allows, after raising it as far as it goes.
fn most() -> usize {
    let hard = mainstay_sys::spawn::raise_nofile().map_or(1024, |(_, hard)| hard);
    usize::try_from(hard.saturating_sub(RESERVED)).unwrap_or(MOST).clamp(16, MOST)
}
