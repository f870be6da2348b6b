//! Connecting to `host:port`, without letting a slow name server hold up anything else.

use crate::names;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// # Errors
/// When the text is not `host:port`, or there is no connection.
pub async fn tcp(address: &str) -> io::Result<TcpStream> {
    let (host, port) = split(address)?;
    to(host, port, None).await
}

/// The addresses of `host:port`.
///
/// # Errors
/// When the text is not `host:port`, or nobody knows the name.
pub async fn addresses_of(address: &str) -> io::Result<Vec<SocketAddr>> {
    let (host, port) = split(address)?;
    addresses(host, port).await
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

pub(crate) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = names::look_up(bare).await?;
    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}
