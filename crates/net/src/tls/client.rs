//! TLS to a server: verified unless the user wrote down that it need not be.

use super::{TlsError, pem::PemFile};
use crate::files::FileError;
use mainstay_core::tls::Tls;
use mainstay_pool::CONFIGURATION;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// TLS with one server.
#[derive(Debug)]
pub struct ClientTls {
    settings: Tls,
    /// Where a user names the certificates to trust.
    ca_key: &'static str,
    name: ServerName<'static>,
    /// Made when it is first needed, and again after a handshake that failed: files change.
    config: Mutex<Option<Arc<ClientConfig>>>,
}

impl ClientTls {
    /// # Errors
    /// When the host, or the name set instead, cannot be the name of a server.
    pub fn new(settings: &Tls, host: &str, ca_key: &'static str) -> Result<ClientTls, TlsError> {
        let name = settings.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned())
            .map_err(|source| TlsError::Name { name: name.to_owned(), source })?;
        Ok(ClientTls { settings: settings.clone(), ca_key, name, config: Mutex::new(None) })
    }

    /// Reads the files now rather than with the first connection.
    ///
    /// # Errors
    /// When one cannot be read or is of no use.
    pub fn load(&self) -> Result<(), TlsError> {
        self.keep(Some(Arc::new(config(&self.settings, self.ca_key)?)));
        Ok(())
    }

    /// Over a connection to what a person calls `address`.
    ///
    /// # Errors
    /// When either side does not trust the other, or a file cannot be read.
    pub async fn connect<S>(&self, stream: S, address: &str) -> Result<TlsStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.config().await?;
        let connected = TlsConnector::from(config).connect(self.name.clone(), stream).await;
        connected.map_err(|error| {
            self.keep(None);
            TlsError::handshake(error, address, &self.name.to_str(), self.ca_key)
        })
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let kept = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(config) = kept {
            return Ok(config);
        }
        let (settings, ca_key) = (self.settings.clone(), self.ca_key);
        let made = Arc::new(CONFIGURATION.run(move || config(&settings, ca_key)).await??);
        self.keep(Some(made.clone()));
        Ok(made)
    }

    fn keep(&self, config: Option<Arc<ClientConfig>>) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

fn config(settings: &Tls, ca_key: &'static str) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let builder = match settings.verify {
        true => builder.with_root_certificates(roots(settings, ca_key)?),
        false => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))),
    };
    match (&settings.cert, &settings.key) {
        (Some(cert), Some(key)) => builder
            .with_client_auth_cert(PemFile::read(cert)?.certificates()?, PemFile::read(key)?.key()?)
            .map_err(|source| TlsError::Identity { cert: cert.clone(), key: key.clone(), source }),
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(_), None) | (None, Some(_)) => Err(TlsError::HalfIdentity),
    }
}

fn roots(settings: &Tls, ca_key: &'static str) -> Result<RootCertStore, TlsError> {
    let mut files: Vec<PathBuf> = settings.ca_file.iter().cloned().collect();
    if let Some(directory) = &settings.ca_path {
        files.extend(in_directory(directory)?);
    }
    let (found, place) = if settings.ca_file.is_none() && settings.ca_path.is_none() {
        (rustls_native_certs::load_native_certs().certs, "this machine".to_owned())
    } else {
        let mut found = Vec::new();
        for file in &files {
            found.extend(PemFile::read(file)?.certificates()?);
        }
        let places = settings.ca_file.iter().chain(&settings.ca_path);
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        (found, places.join(" and "))
    };
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(found) {
        (0, _) => Err(TlsError::NoRoots { place, ca_key }),
        (_, _) => Ok(roots),
    }
}

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let read = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let mut files =
        read.map_err(|source| FileError::Read { path: directory.to_owned(), source })?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

/// Verifies nothing, since the user wrote down that it need not be.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
