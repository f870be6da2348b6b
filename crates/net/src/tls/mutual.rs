//! TLS between equals: each side has a certificate of an authority that both know, in memory, and
//! calls the other by the name in its certificate.
//!
//! TLS 1.3 only, without resumption: every connection proves anew who is at its ends. What the clock
//! shows does not matter, as certificates are verified as of a day that is given.

use super::TlsError;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature},
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, TrustAnchor, UnixTime,
    },
    server::danger::{ClientCertVerified, ClientCertVerifier},
    version::TLS13,
};
use std::{io, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// A certificate with its key, both in DER.
#[derive(Clone)]
pub struct CertifiedKey {
    pub certificate: Vec<u8>,
    /// In PKCS#8.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for CertifiedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertifiedKey").finish_non_exhaustive()
    }
}

/// The authorities whose certificates are taken, as of one day.
#[derive(Debug, Clone)]
pub struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
    as_of: UnixTime,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Both sides of TLS for one of the equals.
#[derive(Clone)]
pub struct MutualTls {
    acceptor: TlsAcceptor,
    /// Without a protocol.
    client: Arc<ClientConfig>,
}

impl std::fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MutualTls").finish_non_exhaustive()
    }
}

/// A connection on which both sides have shown a certificate of the authority.
#[derive(Debug)]
pub struct MutualStream<S> {
    pub stream: TlsStream<S>,
    /// The protocol that both want to speak.
    pub protocol: Option<Vec<u8>>,
}

impl<S> MutualStream<S> {
    /// Whether the certificate of the other side is for this name.
    #[must_use]
    pub fn is_with(&self, name: &str) -> bool {
        let (_, session) = self.stream.get_ref();
        let certificate = session.peer_certificates().and_then(|all| all.first());
        certificate.is_some_and(|it| is_for(it, name))
    }
}

impl MutualTls {
    /// `protocols` are those that are answered.
    ///
    /// # Errors
    /// When certificate and key do not fit or are of no use.
    pub fn new(
        authorities: Authorities,
        certified: &CertifiedKey,
        protocols: &[&[u8]],
    ) -> Result<MutualTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(authorities);
        let chain = || vec![CertificateDer::from(certified.certificate.clone())];
        let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.key.clone()));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Setup)?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain(), key())
            .map_err(TlsError::Setup)?;
        server.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Setup)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(chain(), key())
            .map_err(TlsError::Setup)?;
        client.resumption = Resumption::disabled();
        Ok(MutualTls { acceptor: TlsAcceptor::from(Arc::new(server)), client: Arc::new(client) })
    }

    /// # Errors
    /// When the other side is not who is named, or either does not trust the other.
    pub async fn connect<S>(
        &self,
        stream: S,
        name: &str,
        protocol: &[u8],
    ) -> io::Result<MutualStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.client.clone());
        let connecting = connector.with_alpn(vec![protocol.to_vec()]).connect(name, stream);
        let connected = connecting.await?;
        let protocol = connected.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok(MutualStream { stream: connected.into(), protocol })
    }

    /// # Errors
    /// When either side does not trust the other.
    pub async fn accept<S>(&self, stream: S) -> io::Result<MutualStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let accepted = self.acceptor.accept(stream).await?;
        let protocol = accepted.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok(MutualStream { stream: accepted.into(), protocol })
    }
}

impl Authorities {
    /// Of their own certificates, in DER. `as_of` is since the epoch.
    ///
    /// # Errors
    /// When one is of no use as an authority.
    pub fn new<'a>(
        certificates: impl IntoIterator<Item = &'a [u8]>,
        as_of: Duration,
    ) -> Result<Authorities, TlsError> {
        let anchors = certificates.into_iter().map(|der| {
            let der = CertificateDer::from(der);
            anchor_from_trusted_cert(&der).map(|it| it.to_owned()).map_err(TlsError::Anchor)
        });
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let as_of = UnixTime::since_unix_epoch(as_of);
        Ok(Authorities { anchors: anchors.collect::<Result<_, _>>()?, as_of, algorithms })
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        usage: KeyUsage,
        name: Option<&ServerName<'_>>,
    ) -> Result<(), rustls::Error> {
        let refused = |error: webpki::Error| {
            let why = match error {
                webpki::Error::CertNotValidForName(_) => CertificateError::NotValidForName,
                webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                    CertificateError::UnknownIssuer
                }
                _ => CertificateError::BadEncoding,
            };
            rustls::Error::InvalidCertificate(why)
        };
        let certificate = EndEntityCert::try_from(certificate).map_err(refused)?;
        let (algorithms, anchors) = (self.algorithms.all, &self.anchors);
        certificate
            .verify_for_usage(algorithms, anchors, intermediates, self.as_of, usage, None, None)
            .map_err(refused)?;
        match name {
            Some(name) => certificate.verify_is_valid_for_subject_name(name).map_err(refused),
            None => Ok(()),
        }
    }
}

/// Whether a certificate that was verified is for this name.
fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let (certificate, name) = (EndEntityCert::try_from(certificate), ServerName::try_from(name));
    certificate
        .is_ok_and(|it| name.is_ok_and(|name| it.verify_is_valid_for_subject_name(&name).is_ok()))
}

fn only_tls13() -> rustls::Error {
    rustls::Error::General("equals speak TLS 1.3 only".to_owned())
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verify(certificate, intermediates, KeyUsage::server_auth(), Some(name))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Authorities {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verify(certificate, intermediates, KeyUsage::client_auth(), None)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa,
        KeyPair,
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const DAY: Duration = Duration::from_secs(1_750_000_000);

    struct Equals(CertifiedIssuer<'static, KeyPair>);

    impl Equals {
        fn new() -> Equals {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            Equals(CertifiedIssuer::self_signed(params, key).expect("an authority"))
        }

        fn tls(&self, name: &str) -> MutualTls {
            let key = KeyPair::generate().expect("a key");
            let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.signed_by(&key, &self.0).expect("a certificate");
            let certified =
                CertifiedKey { certificate: certificate.der().to_vec(), key: key.serialize_der() };
            let authorities = Authorities::new([&self.0.der()[..]], DAY).expect("an authority");
            MutualTls::new(authorities, &certified, &[b"one", b"two"]).expect("they fit")
        }
    }

    type Met = io::Result<MutualStream<DuplexStream>>;

    /// What the caller and the called one have of each other.
    async fn meet(
        caller: &MutualTls,
        called: &MutualTls,
        name: &str,
        protocol: &[u8],
    ) -> (Met, Met) {
        let (here, there) = duplex(64 << 10);
        let call = async {
            let mut met = caller.connect(here, name, protocol).await?;
            // With TLS 1.3 a client hears by the first byte whether it was taken.
            met.stream.read_u8().await.map(|_| met)
        };
        let answer = async {
            let mut met = called.accept(there).await?;
            met.stream.write_u8(1).await?;
            met.stream.flush().await?;
            Ok(met)
        };
        tokio::join!(call, answer)
    }

    #[tokio::test]
    async fn both_sides_know_who_the_other_is_and_what_is_spoken() {
        let ours = Equals::new();
        let (a, b) = (ours.tls("a.example"), ours.tls("b.example"));
        let (caller, called) = meet(&a, &b, "b.example", b"two").await;
        let (caller, called) = (caller.expect("b answers"), called.expect("a is known"));
        assert!(caller.is_with("b.example") && !caller.is_with("a.example"));
        assert!(called.is_with("a.example") && !called.is_with("b.example"));
        assert_eq!(called.protocol.as_deref(), Some(&b"two"[..]));
        assert_eq!(caller.protocol, called.protocol);
    }

    #[tokio::test]
    async fn neither_another_name_nor_another_authority_nor_another_protocol_is_taken() {
        let (ours, theirs) = (Equals::new(), Equals::new());
        let (a, b) = (ours.tls("a.example"), ours.tls("b.example"));
        let stranger = theirs.tls("a.example");
        let (caller, called) = meet(&a, &b, "c.example", b"one").await;
        assert!(caller.is_err() && called.is_err(), "b is not c");
        let (caller, called) = meet(&stranger, &b, "b.example", b"one").await;
        assert!(caller.is_err() && called.is_err(), "the stranger does not trust b");
        let (caller, called) = meet(&a, &stranger, "a.example", b"one").await;
        assert!(caller.is_err() && called.is_err(), "a does not trust the stranger");
        let (caller, called) = meet(&a, &b, "b.example", b"three").await;
        assert!(caller.is_err() && called.is_err(), "nobody speaks that");
    }
}
