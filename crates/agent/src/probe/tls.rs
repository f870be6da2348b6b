//! TLS for http checks: the machine's certificates or a file of them, or no questions asked.

use super::lock;
use mainstay_core::plan::HttpTls;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::spawn_blocking,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

#[derive(Debug)]
pub(super) struct Tls {
    settings: HttpTls,
    name: ServerName<'static>,
    /// Made when it is first needed, and again after a handshake that failed: files change.
    config: Mutex<Option<Arc<ClientConfig>>>,
}

impl Tls {
    pub(super) fn new(settings: &HttpTls, host: &str) -> Result<Tls, String> {
        let name = settings.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned())
            .map_err(|error| format!("'{name}' cannot be the name of a TLS server: {error}"))?;
        Ok(Tls { settings: settings.clone(), name, config: Mutex::new(None) })
    }

    pub(super) async fn connect<S>(&self, stream: S) -> Result<TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.config().await?;
        let shaken = TlsConnector::from(config).connect(self.name.clone(), stream).await;
        shaken.map_err(|error| {
            lock(&self.config).take();
            format!("TLS: {error}")
        })
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = lock(&self.config).clone() {
            return Ok(config);
        }
        let settings = self.settings.clone();
        let made = spawn_blocking(move || config(&settings)).await;
        let made = Arc::new(made.map_err(|error| error.to_string())??);
        *lock(&self.config) = Some(made.clone());
        Ok(made)
    }
}

fn config(settings: &HttpTls) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(match settings.insecure {
        true => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth(),
        false => builder.with_root_certificates(roots(settings)?).with_no_client_auth(),
    })
}

fn roots(settings: &HttpTls) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (found, place) = match &settings.ca {
        Some(path) => {
            let place = path.display().to_string();
            let read = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| format!("cannot read the certificates in {place}: {error}"))?;
            (read, place)
        }
        None => (rustls_native_certs::load_native_certs().certs, "this machine".to_owned()),
    };
    match roots.add_parsable_certificates(found) {
        (0, _) => Err(format!(
            "there are no certificates in {place}: name some with tls.ca, or set tls.insecure"
        )),
        (_, _) => Ok(roots),
    }
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
