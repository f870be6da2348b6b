//! What is open besides the API: telemetry, the socket that speaks as ContainerPilot's does, and
//! XML-RPC.
//!
//! Each is opened, moved and closed as the plan in force says. One that cannot be opened is told
//! in the log and in `status`, tried again every second, and keeps nobody from anything. A
//! connection is for one request and has its time; when all places are taken the oldest makes room.
//! One of XML-RPC stays for as long as its client, who may wait for a job or follow a log.

use super::{
    Opening,
    login::Credentials,
    session::{Admission, Session},
};
use crate::RouterState;
use axum::Router;
use mainstay_core::{
    interface::choose,
    plan::{ApiPlan, Listen, Listeners, Login},
};
use mainstay_net::listen::{Caller, Connections, Endpoint, Full, Limits, Listener, Stop};
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
const MOST_XML_RPC: usize = 256;
/// For the last answers of XML-RPC when the run is over.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

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
    /// XML-RPC over TCP.
    XmlRpc,
    /// XML-RPC at a unix socket.
    XmlRpcSocket,
}

/// How things stand, for `status`.
#[derive(Debug, Default)]
pub(crate) struct ListenerStates(Mutex<[Option<ListenerStatus>; 4]>);

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
            Which::XmlRpc => 2,
            Which::XmlRpcSocket => 3,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Which::Telemetry => "telemetry",
            Which::ContainerPilot => "the ContainerPilot socket",
            Which::XmlRpc | Which::XmlRpcSocket => "XML-RPC",
        }
    }

    fn limits(self) -> Limits {
        match self {
            Which::Telemetry | Which::ContainerPilot => LIMITS,
            Which::XmlRpc => super::REMOTE_LIMITS,
            Which::XmlRpcSocket => super::LIMITS,
        }
    }

    /// Returns when the run is over and nobody is to be answered any more.
    async fn is_over(self, ending: &mut watch::Receiver<bool>) {
        let _ = ending.wait_for(|over| *over).await;
        match self {
            Which::Telemetry | Which::ContainerPilot => {}
            Which::XmlRpc | Which::XmlRpcSocket => sleep(LAST_ANSWERS).await,
        }
    }

    fn wanted(self, listeners: &Listeners) -> Option<Wanted> {
        let xmlrpc = listeners.xmlrpc.as_ref();
        let login = || xmlrpc.and_then(|plan| plan.login.clone());
        let open = |target| Wanted { target, login: None };
        match self {
            Which::Telemetry => listeners.telemetry.clone().map(Target::Tcp).map(open),
            Which::ContainerPilot => listeners.containerpilot.clone().map(Target::Unix).map(open),
            Which::XmlRpc => {
                let address = xmlrpc.and_then(|plan| plan.listen)?;
                let target = Target::Tcp(Listen::At(address.to_string()));
                Some(Wanted { target, login: login() })
            }
            Which::XmlRpcSocket => {
                let target = Target::Unix(xmlrpc.and_then(|plan| plan.socket.clone())?);
                Some(Wanted { target, login: login() })
            }
        }
    }
}
/// What the plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    target: Target,
    login: Option<Login>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Tcp(Listen),
    Unix(PathBuf),
}

impl Target {
    /// The address or path, which may have to be found out first.
    fn place(&self) -> io::Result<String> {
        match self {
            Target::Tcp(Listen::At(address)) => Ok(address.clone()),
            Target::Tcp(Listen::On { port, interfaces }) => {
                let here = mainstay_sys::interface::addresses()?;
                let address = choose(interfaces, &here).map_err(io::Error::other)?;
                Ok(SocketAddr::new(address, *port).to_string())
            }
            Target::Unix(path) => Ok(path.display().to_string()),
        }
    }

    async fn open(&self, at: &str) -> io::Result<Listener> {
        match self {
            Target::Tcp(_) => Listener::tcp(at).await,
            Target::Unix(path) => Listener::private_unix(path).await,
        }
    }
}

impl fmt::Display for Target {
    /// For people, while it is not known where exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(Listen::At(address)) => f.write_str(address),
            Target::Tcp(Listen::On { port, .. }) => write!(f, "port {port}"),
            Target::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Wanted {
    /// The listener, and whom it lets in.
    async fn open(&self, at: &str) -> io::Result<(Listener, Admission)> {
        let admission = match &self.login {
            None => Admission::Everybody,
            Some(login) => Admission::Login(Credentials::read(login).await?),
        };
        Ok((self.target.open(at).await?, admission))
    }

    /// Keeps the password as its file has it.
    async fn follow(&self, admission: &Admission, plans: watch::Receiver<ApiPlan>) {
        if let (Admission::Login(credentials), Some(login)) = (admission, &self.login) {
            credentials.follow(login, plans).await;
        }
        std::future::pending().await
    }
}

/// Keeps one of them as the plan wants it, until the run is over.
pub(crate) async fn keep(
    which: Which,
    state: RouterState,
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
        let Some(now) = wanted.clone() else {
            state.listening.set(which, None);
            drop(opening.take());
            tokio::select! {
                () = changed(&mut plans) => continue,
                _ = ending.wait_for(|over| *over) => return,
            }
        };
        let (at, opened) = match now.target.place() {
            Ok(at) => (at.clone(), now.open(&at).await),
            Err(error) => (now.target.to_string(), Err(error)),
        };
        drop(opening.take());
        match opened {
            Ok((listener, admission)) => {
                tracing::info!("{} is open at {at}", which.word());
                told = None;
                state.listening.set(which, Some(ListenerStatus { at, error: None }));
                let service = Service { which, admission: admission.clone(), routes: &routes };
                tokio::select! {
                    // Before all: nobody is waited for.
                    biased;
                    () = which.is_over(&mut ending) => return,
                    () = changed(&mut plans) => {}
                    () = now.follow(&admission, state.handle.api()) => {}
                    () = service.serve(listener, &over) => if *over.borrow() { return },
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

/// What is served at one of them, and to whom.
struct Service<'a> {
    which: Which,
    admission: Admission,
    routes: &'a Router,
}

impl Service<'_> {
    /// Dropped, it takes with it what is under way.
    async fn serve(self, listener: Listener, ending: &watch::Receiver<bool>) {
        let (most, full) = match self.which {
            Which::Telemetry | Which::ContainerPilot => (MOST, Full::OldestGoes),
            Which::XmlRpc | Which::XmlRpcSocket => (MOST_XML_RPC, Full::SilentGoes),
        };
        let endpoint = Endpoint {
            listener: Arc::new(listener),
            tls: None,
            limits: self.which.limits(),
            connections: Connections::new(most, full),
            answers_backlog: false,
        };
        let (admission, routes) = (self.admission, self.routes.clone());
        let session = move |caller: Caller| Session::new(admission.clone(), caller, routes.clone());
        endpoint.serve(session, Stop { ending: ending.clone(), closing: None }).await;
    }
}
