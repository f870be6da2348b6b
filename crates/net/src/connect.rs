//! Connecting to `host:port`, without letting a slow name server hold up anything else.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{net::TcpStream, sync::Semaphore, task::spawn_blocking, time::timeout};

/// Names looked up at a time: threads are left for other things, however slow a name server is.
const LOOKUPS: usize = 4;

/// # Errors
/// When the text is not `host:port`, or there is no connection.
pub async fn tcp(address: &str) -> io::Result<TcpStream> {
    let (host, port) = split(address)?;
    to(host, port, None).await
}

/// # Errors
/// When none of the host's addresses takes a connection, each within the limit.
pub(crate) async fn to(host: &str, port: u16, each: Option<Duration>) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in addresses(host, port).await? {
        match within(each, TcpStream::connect(address)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// As long as it takes where there is no limit.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match limit {
        None => work.await,
        Some(limit) => {
            timeout(limit, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
    }
}

/// # Errors
/// When the text is not `host:port`.
pub(crate) fn split(address: &str) -> io::Result<(&str, u16)> {
    address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not HOST:PORT"))
}

/// `localhost` is known without asking: a container may have nobody to ask.
pub(crate) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if bare.eq_ignore_ascii_case("localhost") {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Ok(both.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    static PERMITS: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let permits = PERMITS.get_or_init(|| Arc::new(Semaphore::new(LOOKUPS))).clone();
    let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
    let asked = (bare.to_owned(), port);
    let found = spawn_blocking(move || {
        // Kept by the thread: one that nobody waits for any more still takes its time.
        let _permit = permit;
        asked.to_socket_addrs().map(Iterator::collect)
    });
    found.await.map_err(io::Error::other)?
}
