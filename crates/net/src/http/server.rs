//! A server to be reached: `host:port` or a unix socket, in TLS or not.

use super::HttpError;
use crate::{
    connect,
    stream::{BoxedStream, Stream},
    tls::ClientTls,
};
use std::{io, path::PathBuf, time::Duration};
use tokio::net::UnixStream;

#[derive(Debug)]
pub struct Server {
    /// For people, and for nobody else.
    address: String,
    target: Target,
    tls: Option<ClientTls>,
}

#[derive(Debug)]
enum Target {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Server {
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Server {
        let target = Target::Tcp { host: host.to_owned(), port };
        Server { address: format!("{host}:{port}"), target, tls: None }
    }

    #[must_use]
    pub fn unix(path: impl Into<PathBuf>) -> Server {
        let path = path.into();
        Server { address: path.display().to_string(), target: Target::Unix(path), tls: None }
    }

    /// What a person calls it.
    #[must_use]
    pub fn called(self, address: impl Into<String>) -> Server {
        Server { address: address.into(), ..self }
    }

    #[must_use]
    pub fn with_tls(self, tls: Option<ClientTls>) -> Server {
        Server { tls, ..self }
    }

    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// With a limit, each address of the host has so long, and so has TLS after that.
    ///
    /// # Errors
    /// When there is no connection, or one side does not trust the other.
    pub async fn connect(&self, limit: Option<Duration>) -> Result<BoxedStream, HttpError> {
        let failed = |source| HttpError::Connect { address: self.address.clone(), source };
        match &self.target {
            Target::Tcp { host, port } => {
                let stream = connect::to(host, *port, limit).await.map_err(failed)?;
                // A request is one small packet that is waited for.
                let _ = stream.set_nodelay(true);
                self.secured(stream, limit).await
            }
            Target::Unix(path) => {
                let stream = connect::within(limit, UnixStream::connect(path)).await;
                self.secured(stream.map_err(failed)?, limit).await
            }
        }
    }

    async fn secured<S: Stream + 'static>(
        &self,
        stream: S,
        limit: Option<Duration>,
    ) -> Result<BoxedStream, HttpError> {
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let connecting = tls.connect(stream, &self.address);
        let connected = match limit {
            None => connecting.await,
            Some(limit) => tokio::time::timeout(limit, connecting).await.map_err(|_| {
                let source = io::ErrorKind::TimedOut.into();
                HttpError::Connect { address: self.address.clone(), source }
            })?,
        };
        Ok(Box::new(connected?))
    }
}
