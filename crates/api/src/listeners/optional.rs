//! What is open besides the API: telemetry, and the socket that speaks as ContainerPilot's does.
//!
//! Each is opened, moved and closed as the plan in force says. One that cannot be opened is told
//! in the log and in `status`, tried again every second, and keeps nobody from anything. A
//! connection is for one request and has its time; when all places are taken the oldest makes room.

use crate::AppState;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use mainstay_agent::Listeners;
use mainstay_core::{interface::choose, plan::Listen};
use mainstay_wire::api::ListenerStatus;
use rustix::{
    fs::{Mode, fchmod},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
};
use std::{
    collections::VecDeque,
    fmt, fs, io,
    net::SocketAddr,
    os::unix::{fs::FileTypeExt, net},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener, UnixStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

const RETRY: Duration = Duration::from_secs(1);
/// A client has so long to say what it wants, and so long altogether.
const HEADER: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);
const BUFFER: usize = 16 << 10;
/// Connections at a time.
const MOST: usize = 64;
const BACKLOG: i32 = 64;
/// Whoever owns a socket file answers by then.
const OWNER: Duration = Duration::from_millis(200);

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

    fn wanted(self, outside: &Listeners) -> Option<Wanted> {
        match self {
            Which::Telemetry => outside.telemetry.clone().map(Wanted::Tcp),
            Which::ContainerPilot => outside.containerpilot.clone().map(Wanted::Unix),
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
            Wanted::Tcp(_) => TcpListener::bind(at).await.map(Listener::Tcp),
            Wanted::Unix(path) => private_socket(path).await,
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

enum Listener {
    Tcp(TcpListener),
    /// With its file, which goes with it.
    Unix(UnixListener, PathBuf),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Listener::Tcp(listener) => {
                listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>)
            }
            Listener::Unix(listener, _) => {
                listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>)
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Keeps one of them as the plan wants it, until the run is over.
pub(crate) async fn keep(
    which: Which,
    state: AppState,
    routes: Router,
    mut ending: watch::Receiver<bool>,
) {
    let mut plans = state.handle.listeners();
    let mut told = None;
    loop {
        let wanted = which.wanted(&plans.borrow_and_update());
        let changed = async |plans: &mut watch::Receiver<Listeners>| {
            // The agent holds the other end for as long as it lives.
            let _ = plans.wait_for(|outside| which.wanted(outside) != wanted).await;
        };
        let Some(target) = wanted.clone() else {
            state.listening.set(which, None);
            tokio::select! {
                () = changed(&mut plans) => continue,
                _ = ending.wait_for(|over| *over) => return,
            }
        };
        let (at, opened) = match target.place() {
            Ok(at) => (at.clone(), target.open(&at).await),
            Err(error) => (target.to_string(), Err(error)),
        };
        match opened {
            Ok(listener) => {
                tracing::info!("{} is open at {at}", which.word());
                told = None;
                state.listening.set(which, Some(ListenerStatus { at, error: None }));
                tokio::select! {
                    () = serve(&listener, &routes) => {}
                    () = changed(&mut plans) => {}
                    _ = ending.wait_for(|over| *over) => return,
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

/// Never returns; what is under way goes with it.
async fn serve(listener: &Listener, routes: &Router) {
    let mut tasks: JoinSet<()> = JoinSet::new();
    let mut oldest: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = tasks.join_next(), if !tasks.is_empty() => {
                oldest.retain(|handle| !handle.is_finished());
                continue;
            }
        };
        match accepted {
            Ok(stream) => {
                while tasks.len() >= MOST {
                    oldest.pop_front().iter().for_each(AbortHandle::abort);
                    let _ = tasks.join_next().await;
                }
                oldest.push_back(tasks.spawn(one(stream, routes.clone())));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn one(stream: Box<dyn Stream>, routes: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // A client that hangs up or takes too long is no news.
    let _ = timeout(WHOLE, served).await;
}

/// A socket file that only we may connect to, in place of one that nobody listens at any more.
async fn private_socket(path: &Path) -> io::Result<Listener> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            let text = "there is a file at that path that is no socket: remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(_) => {
            if let Ok(Ok(_)) = timeout(OWNER, UnixStream::connect(path)).await {
                let text = "another process listens there";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file takes its mode from the socket: it is never open to others, not for a moment.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(&beside)?)?;
    listen(&socket, BACKLOG)?;
    if let Err(error) = fs::rename(&beside, path) {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    let listener = UnixListener::from_std(net::UnixListener::from(socket))?;
    Ok(Listener::Unix(listener, path.to_owned()))
}
