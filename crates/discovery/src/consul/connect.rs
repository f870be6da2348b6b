//! The way to the agent: `host:port` or a unix socket, in TLS or not.

use super::tls::Shake;
use mainstay_core::discovery::Consul;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
    pin::Pin,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    sync::Semaphore,
    task::spawn_blocking,
};

/// Names looked up at a time: threads are left for other things, however slow a name server is.
const LOOKUPS: usize = 2;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

#[derive(Debug)]
pub(super) struct Server {
    /// As the user wrote it.
    pub(super) address: String,
    place: Place,
    tls: Option<Shake>,
}

#[derive(Debug)]
enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Server {
    pub(super) fn new(consul: &Consul) -> Result<Server, String> {
        let address = consul.address.clone();
        let (place, host) = match address.strip_prefix("unix:") {
            Some(path) => (Place::Unix(path.into()), "localhost".to_owned()),
            None => {
                let (host, port) = address
                    .rsplit_once(':')
                    .and_then(|(host, port)| Some((host, port.parse().ok()?)))
                    .filter(|(host, _)| !host.is_empty())
                    .ok_or_else(|| {
                        format!(
                            "'{address}' is no address of a server: write host:port or unix:/path"
                        )
                    })?;
                let host = host.trim_matches(['[', ']']).to_owned();
                (Place::Tcp { host: host.clone(), port }, host)
            }
        };
        let tls = consul.https.then(|| Shake::new(&consul.tls, &host)).transpose()?;
        Ok(Server { address, place, tls })
    }

    /// What to call it in a request.
    pub(super) fn authority(&self) -> &str {
        match self.place {
            Place::Tcp { .. } => &self.address,
            Place::Unix(_) => "localhost",
        }
    }

    pub(super) async fn connect(&self) -> Result<Pin<Box<dyn Stream>>, String> {
        let failed = |error: io::Error| format!("cannot connect to {}: {error}", self.address);
        match &self.place {
            Place::Tcp { host, port } => {
                let stream = to(host, *port).await.map_err(failed)?;
                // A request is one small packet that is waited for.
                let _ = stream.set_nodelay(true);
                self.secure(stream).await
            }
            Place::Unix(path) => {
                self.secure(UnixStream::connect(path).await.map_err(failed)?).await
            }
        }
    }

    async fn secure<S>(&self, stream: S) -> Result<Pin<Box<dyn Stream>>, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Ok(match &self.tls {
            Some(tls) => Box::pin(tls.shake(stream, &self.address).await?),
            None => Box::pin(stream),
        })
    }
}

async fn to(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in addresses(host, port).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// `localhost` is known without asking: a container may have nobody to ask.
async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if host.eq_ignore_ascii_case("localhost") {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Ok(both.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    // Kept while the question is under way: a name server that is slow costs no more threads.
    static TURNS: Semaphore = Semaphore::const_new(LOOKUPS);
    let turn = TURNS.acquire().await.map_err(io::Error::other)?;
    let asked = (host.to_owned(), port);
    let found = spawn_blocking(move || {
        // By the thread: one that nobody waits for any more still takes its time.
        let _turn = turn;
        asked.to_socket_addrs().map(Iterator::collect)
    });
    found.await.map_err(io::Error::other)?
}
