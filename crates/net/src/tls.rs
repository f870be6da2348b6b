//! TLS to the server: verified unless the user wrote down that it need not be.

use mainstay_core::tls::Tls;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::spawn_blocking,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// TLS with one server.
#[derive(Debug)]
pub struct Secure {
    settings: Tls,
    /// Where a user names the certificates to trust.
    ca_key: &'static str,
    name: ServerName<'static>,
    /// Made when it is first needed, and again after a handshake that failed: files change.
    config: Mutex<Option<Arc<ClientConfig>>>,
}

impl Secure {
    /// # Errors
    /// When the host, or the name set instead, cannot be the name of a server.
    pub fn new(settings: &Tls, host: &str, ca_key: &'static str) -> Result<Secure, String> {
        let name = settings.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned())
            .map_err(|error| format!("'{name}' cannot be the name of a TLS server: {error}"))?;
        Ok(Secure { settings: settings.clone(), ca_key, name, config: Mutex::new(None) })
    }

    /// Over a connection to what a person calls `address`.
    ///
    /// # Errors
    /// When either side does not trust the other, or a file cannot be read: in words.
    pub async fn shake<S>(&self, stream: S, address: &str) -> Result<TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.config().await?;
        let shaken = TlsConnector::from(config).connect(self.name.clone(), stream).await;
        shaken.map_err(|error| {
            self.keep(None);
            self.in_words(&error, address)
        })
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let kept = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(config) = kept {
            return Ok(config);
        }
        let (settings, ca_key) = (self.settings.clone(), self.ca_key);
        let made = spawn_blocking(move || config(&settings, ca_key)).await;
        let made = Arc::new(made.map_err(|error| error.to_string())??);
        self.keep(Some(made.clone()));
        Ok(made)
    }

    fn keep(&self, config: Option<Arc<ClientConfig>>) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn in_words(&self, error: &io::Error, address: &str) -> String {
        let name = self.name.to_str();
        let why = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match why {
            Some(rustls::Error::InvalidCertificate(
                // Another issuer of the same name.
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => format!(
                "the certificate of {address} is not trusted: nobody we know has issued it; \
                 name its issuer with {}",
                self.ca_key
            ),
            Some(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => format!(
                "the certificate of {address} is not trusted: it is not for '{name}'; \
                 say what it is for with tls.server_name"
            ),
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if format!("{why:?}").contains("CaUsedAsEndEntity") =>
            {
                format!(
                    "the certificate of {address} is not trusted: it is that of an authority; \
                     a server needs one with basicConstraints CA:FALSE"
                )
            }
            Some(rustls::Error::InvalidCertificate(why)) => {
                format!("the certificate of {address} is not trusted: {why}")
            }
            Some(_) | None => format!("TLS with {address} failed: {error}"),
        }
    }
}

fn config(settings: &Tls, ca_key: &str) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match settings.verify {
        true => builder.with_root_certificates(roots(settings, ca_key)?),
        false => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))),
    };
    match (&settings.cert, &settings.key) {
        (Some(cert), Some(key)) => {
            let own = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| format!("cannot read the key in {}: {error}", key.display()))?;
            builder
                .with_client_auth_cert(certificates(cert)?, own)
                .map_err(|error| format!("cannot use the certificate {}: {error}", cert.display()))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(_), None) | (None, Some(_)) => {
            Err("a certificate of our own needs both tls.cert and tls.key".to_owned())
        }
    }
}

fn roots(settings: &Tls, ca_key: &str) -> Result<RootCertStore, String> {
    let mut files: Vec<PathBuf> = settings.ca_file.iter().cloned().collect();
    if let Some(directory) = &settings.ca_path {
        files.extend(in_directory(directory)?);
    }
    let (found, place) = if settings.ca_file.is_none() && settings.ca_path.is_none() {
        (rustls_native_certs::load_native_certs().certs, "this machine".to_owned())
    } else {
        let mut found = Vec::new();
        for file in &files {
            found.extend(certificates(file)?);
        }
        let places = settings.ca_file.iter().chain(&settings.ca_path);
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        (found, places.join(" and "))
    };
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(found) {
        (0, _) => Err(format!("there are no certificates in {place}: name some with {ca_key}")),
        (_, _) => Ok(roots),
    }
}

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let read = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let mut files =
        read.map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot read the certificates in {}: {error}", file.display()))
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
