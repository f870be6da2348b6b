//! TLS of a listener: its certificate, and what it asks of its clients.

use super::{TlsError, pem::PemFile, version1::AnyVersion};
use ring::digest;
use rustls::{
    RootCertStore, ServerConfig, crypto::ring::default_provider, server::WebPkiClientVerifier,
};
use std::{io, path::Path, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The files that a listener's TLS is made of.
#[derive(Debug, Clone, Copy)]
pub struct TlsFiles<'a> {
    /// The certificate, and those between it and its authority.
    pub cert: &'a Path,
    pub key: &'a Path,
    /// Whose certificates let clients in.
    pub client_ca: Option<&'a Path>,
    /// Whether a client without a certificate is let in all the same.
    pub anonymous: bool,
}

/// Equal ones were made of the same files.
#[derive(Clone)]
pub struct ServerTls {
    acceptor: TlsAcceptor,
    digest: [u8; 32],
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &ServerTls) -> bool {
        self.digest == other.digest
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// May take as long as a disk does.
    ///
    /// # Errors
    /// When a file cannot be read, is open to others, or is of no use.
    pub fn load(files: TlsFiles<'_>) -> Result<ServerTls, TlsError> {
        let cert = PemFile::read_regular(files.cert)?;
        let key = PemFile::read_private(files.key)?;
        let client_ca = files.client_ca.map(PemFile::read_regular).transpose()?;
        let config = config(&cert, &key, client_ca.as_ref(), files.anonymous)?;
        let mut all = digest::Context::new(&digest::SHA256);
        all.update(&[u8::from(files.anonymous)]);
        for part in [Some(&cert), Some(&key), client_ca.as_ref()] {
            let part = part.map_or(&[][..], PemFile::bytes);
            // Hashed by itself, so that no byte can move from one file to the next.
            all.update(digest::digest(&digest::SHA256, part).as_ref());
        }
        let digest = all.finish().as_ref().try_into().unwrap_or_default();
        Ok(ServerTls { acceptor: TlsAcceptor::from(Arc::new(config)), digest })
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

fn config(
    cert: &PemFile,
    key: &PemFile,
    client_ca: Option<&PemFile>,
    anonymous: bool,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = match client_ca {
        Some(ca) => {
            let roots = Arc::new(authorities(ca)?);
            let algorithms = provider.signature_verification_algorithms;
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
            let verifier = if anonymous { verifier.allow_unauthenticated() } else { verifier };
            let inner = verifier.build().map_err(|error| authority(ca, error))?;
            builder.with_client_cert_verifier(Arc::new(AnyVersion { inner, roots, algorithms }))
        }
        None => builder.with_no_client_auth(),
    };
    builder.with_single_cert(cert.chain()?, key.key()?).map_err(|source| TlsError::Identity {
        cert: cert.path().to_owned(),
        key: key.path().to_owned(),
        source,
    })
}

fn authorities(ca: &PemFile) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for cert in ca.chain()? {
        roots.add(cert).map_err(|error| authority(ca, error))?;
    }
    Ok(roots)
}

fn authority(ca: &PemFile, error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
    TlsError::Authority { path: ca.path().to_owned(), source: Box::new(error) }
}
