//! The way to the agent: `host:port` or a unix socket, in TLS or not.

use mainstay_core::discovery::Consul;
use mainstay_net::Secure;
use std::{io, path::PathBuf, pin::Pin};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};

pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

#[derive(Debug)]
pub(super) struct Server {
    /// As the user wrote it.
    pub(super) address: String,
    place: Place,
    tls: Option<Secure>,
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
        let tls =
            consul.https.then(|| Secure::new(&consul.tls, &host, "tls.ca_file")).transpose()?;
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
                let stream = mainstay_net::to(host, *port).await.map_err(failed)?;
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
