//! What is open besides the API: telemetry, and the socket that speaks as ContainerPilot's does.
//!
//! Each is opened, moved and closed as the plan in force says. One that cannot be opened is told
//! in the log and in `status`, tried again every second, and keeps nobody from anything. A
//! connection is for one request and has its time; when all places are taken the oldest makes room.

use super::Opening;
use crate::AppState;
use axum::Router;
use hyper_util::service::TowerToHyperService;
use mainstay_core::{
    interface::choose,
    plan::{Listen, Listeners},
};
use mainstay_net::listen::{Connections, Endpoint, Full, Limits, Listener, Peer, Stop};
use mainstay_wire::api::ListenerStatus;
use std::{
    fmt, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

const RETRY: Duration = Duration::from_secs(1);
/// Connections at a time.
const MOST: usize = 64;

/// A client has so long to say what it wants, and so long altogether.
const LIMITS: Limits = Limits {
    header: Duration::from_secs(5),
    write: None,
    connection: Some(Duration::from_secs(30)),
    keep_alive: false,
    drain: Duration::ZERO,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Telemetry,
    ContainerPilot,
}

/// How things stand, for `status`.
#[derive(Debug, Default)]
pub(crate) struct ListenerStates(Mutex<[Option<ListenerStatus>; 2]>);

impl ListenerStates {
    pub(crate) fn of(&self, which: Which) -> Option<ListenerStatus> {
        lock(&self.0)[which.place()].clone()
    }

    fn set(&self, which: Which, now: Option<ListenerStatus>) {
        lock(&self.0)[which.place()] = now;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Which {
    fn place(self) -> usize {
        match self {
            Which::Telemetry => 0,
            Which::ContainerPilot => 1,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Which::Telemetry => "telemetry",
            Which::ContainerPilot => "the ContainerPilot socket",
        }
    }

    fn wanted(self, listeners: &Listeners) -> Option<Wanted> {
        match self {
            Which::Telemetry => listeners.telemetry.clone().map(Wanted::Tcp),
            Which::ContainerPilot => listeners.containerpilot.clone().map(Wanted::Unix),
        }
    }
}

/// What the plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Tcp(Listen),
    Unix(PathBuf),
}

impl Wanted {
    /// The address or path, which may have to be found out first.
    fn place(&self) -> io::Result<String> {
        match self {
            Wanted::Tcp(Listen::At(address)) => Ok(address.clone()),
            Wanted::Tcp(Listen::On { port, interfaces }) => {
                let here = mainstay_sys::interface::addresses()?;
                let address = choose(interfaces, &here).map_err(io::Error::other)?;
                Ok(SocketAddr::new(address, *port).to_string())
            }
            Wanted::Unix(path) => Ok(path.display().to_string()),
        }
    }

    async fn open(&self, at: &str) -> io::Result<Listener> {
        match self {
            Wanted::Tcp(_) => Listener::tcp(at).await,
            Wanted::Unix(path) => Listener::private_unix(path).await,
        }
    }
}

impl fmt::Display for Wanted {
    /// For people, while it is not known where exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Tcp(Listen::At(address)) => f.write_str(address),
            Wanted::Tcp(Listen::On { port, .. }) => write!(f, "port {port}"),
            Wanted::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Keeps one of them as the plan wants it, until the run is over.
pub(crate) async fn keep(
    which: Which,
    state: AppState,
    routes: Router,
    opening: Opening,
    mut ending: watch::Receiver<bool>,
) {
    let mut plans = state.handle.listeners();
    let mut told = None;
    let over = ending.clone();
    let mut opening = Some(opening);
    loop {
        let wanted = which.wanted(&plans.borrow_and_update());
        let changed = async |plans: &mut watch::Receiver<Listeners>| {
            // The agent holds the other end for as long as it lives.
            let _ = plans.wait_for(|listeners| which.wanted(listeners) != wanted).await;
        };
        let Some(target) = wanted.clone() else {
            state.listening.set(which, None);
            drop(opening.take());
            tokio::select! {
                () = changed(&mut plans) => continue,
                _ = ending.wait_for(|over| *over) => return,
            }
        };
        let (at, opened) = match target.place() {
            Ok(at) => (at.clone(), target.open(&at).await),
            Err(error) => (target.to_string(), Err(error)),
        };
        drop(opening.take());
        match opened {
            Ok(listener) => {
                tracing::info!("{} is open at {at}", which.word());
                told = None;
                state.listening.set(which, Some(ListenerStatus { at, error: None }));
                tokio::select! {
                    // Before all: nobody is waited for.
                    biased;
                    _ = ending.wait_for(|over| *over) => return,
                    () = changed(&mut plans) => {}
                    () = serve(listener, &routes, &over) => {}
                }
            }
            Err(error) => {
                let error = error.to_string();
                if told.as_ref() != Some(&(at.clone(), error.clone())) {
                    let what = which.word();
                    tracing::error!("cannot open {what} at {at}: {error}; it is tried again");
                }
                told = Some((at.clone(), error.clone()));
                state.listening.set(which, Some(ListenerStatus { at, error: Some(error) }));
                tokio::select! {
                    () = sleep(RETRY) => {}
                    () = changed(&mut plans) => {}
                    _ = ending.wait_for(|over| *over) => return,
                }
            }
        }
    }
}

/// What is under way goes with it.
async fn serve(listener: Listener, routes: &Router, ending: &watch::Receiver<bool>) {
    let endpoint = Endpoint {
        listener: Arc::new(listener),
        tls: None,
        limits: LIMITS,
        connections: Connections::new(MOST, Full::OldestGoes),
        answers_backlog: false,
    };
    let routes = routes.clone();
    let service = move |_: Peer| TowerToHyperService::new(routes.clone());
    endpoint.serve(service, Stop { ending: ending.clone(), closing: None }).await;
}
