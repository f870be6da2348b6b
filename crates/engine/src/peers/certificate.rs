//! Mutual TLS between peers: certificates that come from the fleet key.
//!
//! The key of the authority is derived from the fleet key, so that every node of a fleet can issue
//! its own certificate and knows those of the others. A certificate names its node, and whoever
//! calls a node expects its name. What the clock shows does not matter: certificates are verified as
//! of one fixed day.

use crate::mesh::{FleetKey, FleetKeys};
use mainstay_core::name::Name;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SanType,
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature},
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, TrustAnchor, UnixTime,
    },
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::{sync::Arc, time::Duration};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// A day within the validity of all our certificates.
const FIXED_DAY: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(1_750_000_000));
/// What an Ed25519 key in PKCS#8 begins with (RFC 8410).
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// A part of a DNS name has at most 63.
const LABEL: usize = 60;

#[derive(Debug, thiserror::Error)]
pub enum CertificateMaking {
    #[error("a certificate cannot be issued: {0}")]
    Issue(#[from] rcgen::Error),
    #[error("an authority is of no use: {0}")]
    Authority(webpki::Error),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// What is spoken over a connection between peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Frames of the engine.
    Fleet,
    /// Requests to the API, passed on.
    Api,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 2] = [Protocol::Fleet, Protocol::Api];

    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Fleet => b"mainstay-fleet",
            Protocol::Api => b"mainstay-api",
        }
    }
}

/// TLS in both directions, for one start of a node.
#[derive(Debug, Clone)]
pub(crate) struct PeerTls {
    pub(crate) server: Arc<ServerConfig>,
    fleet: Arc<ClientConfig>,
    api: Arc<ClientConfig>,
}

impl PeerTls {
    pub(crate) fn new(
        keys: &FleetKeys,
        fleet: &str,
        me: &Name,
    ) -> Result<PeerTls, CertificateMaking> {
        let provider = Arc::new(ring::default_provider());
        let authorities = keys.accepted().map(|key| authority(key, fleet)?.anchor());
        let verifier = Arc::new(FleetVerifier {
            authorities: authorities.collect::<Result<_, _>>()?,
            algorithms: provider.signature_verification_algorithms,
        });
        let (certificate, key) = authority(keys.used(), fleet)?.issue(me)?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(vec![certificate.clone()], key.clone_key())?;
        server.alpn_protocols = Protocol::ALL.map(|it| it.alpn().to_vec()).to_vec();
        // Every connection proves anew who it is.
        server.send_tls13_tickets = 0;
        let client = |protocol: Protocol| {
            client_config(&provider, &verifier, (certificate.clone(), key.clone_key()), protocol)
        };
        let (fleet, api) = (client(Protocol::Fleet)?, client(Protocol::Api)?);
        Ok(PeerTls { server: Arc::new(server), fleet, api })
    }

    pub(crate) fn client(&self, protocol: Protocol) -> Arc<ClientConfig> {
        match protocol {
            Protocol::Fleet => self.fleet.clone(),
            Protocol::Api => self.api.clone(),
        }
    }
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<FleetVerifier>,
    (certificate, key): (CertificateDer<'static>, PrivateKeyDer<'static>),
    protocol: Protocol,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_auth_cert(vec![certificate], key)?;
    client.alpn_protocols = vec![protocol.alpn().to_vec()];
    Ok(Arc::new(client))
}

/// The name of a node as TLS knows it. Names of nodes tell capitals from small letters and may end
/// with a dash: names of hosts do not.
pub(crate) fn server_name(node: &Name) -> ServerName<'static> {
    let hex: Vec<u8> =
        node.as_str().bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let labels: Vec<&str> =
        hex.chunks(LABEL).map(|it| std::str::from_utf8(it).unwrap_or_default()).collect();
    let name = format!("{}.node.mainstay", labels.join("."));
    ServerName::try_from(name).expect("digits and letters are the name of a host")
}

/// Whether a certificate that was verified is that of this node.
pub(crate) fn is_of(certificate: &CertificateDer<'_>, node: &Name) -> bool {
    let certificate = EndEntityCert::try_from(certificate);
    certificate.is_ok_and(|it| it.verify_is_valid_for_subject_name(&server_name(node)).is_ok())
}

struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

/// The same on every node that has the key.
fn authority(key: &FleetKey, fleet: &str) -> Result<Authority, CertificateMaking> {
    let seed = key.derive("authority", fleet, b"");
    let pkcs8 = PrivatePkcs8KeyDer::from([&ED25519_PKCS8[..], &seed].concat());
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "mainstay fleet");
    Ok(Authority { params, key })
}

impl Authority {
    fn anchor(&self) -> Result<TrustAnchor<'static>, CertificateMaking> {
        let certificate = self.params.self_signed(&self.key)?;
        let anchor = anchor_from_trusted_cert(certificate.der());
        anchor.map(|it| it.to_owned()).map_err(CertificateMaking::Authority)
    }

    fn issue(
        &self,
        node: &Name,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), CertificateMaking> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new(Vec::new())?;
        let name = server_name(node).to_str().into_owned();
        params.subject_alt_names = vec![SanType::DnsName(name.try_into()?)];
        // For people: only the name above counts.
        params.distinguished_name.push(DnType::CommonName, node.as_str());
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let issued = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key))?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((issued.der().clone(), key))
    }
}

/// Takes certificates of the fleet, whatever the clock shows.
#[derive(Debug)]
struct FleetVerifier {
    authorities: Vec<TrustAnchor<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl FleetVerifier {
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
        let (algorithms, authorities) = (self.algorithms.all, &self.authorities);
        certificate
            .verify_for_usage(algorithms, authorities, intermediates, FIXED_DAY, usage, None, None)
            .map_err(refused)?;
        match name {
            Some(name) => certificate.verify_is_valid_for_subject_name(name).map_err(refused),
            None => Ok(()),
        }
    }
}

fn only_tls13() -> rustls::Error {
    rustls::Error::General("peers speak TLS 1.3 only".to_owned())
}

impl ServerCertVerifier for FleetVerifier {
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

impl ClientCertVerifier for FleetVerifier {
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
    use std::path::Path;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn verifier(keys: &str, fleet: &str) -> FleetVerifier {
        let keys = FleetKeys::parse(keys, Path::new("key")).expect("keys");
        let authorities = keys.accepted().map(|key| authority(key, fleet)?.anchor());
        let authorities = authorities.collect::<Result<_, _>>().expect("authorities");
        let algorithms = ring::default_provider().signature_verification_algorithms;
        FleetVerifier { authorities, algorithms }
    }

    fn certificate(key: &str, node: &str) -> CertificateDer<'static> {
        let authority = authority(&FleetKey::new(key), "shop").expect("an authority");
        authority.issue(&name(node)).expect("issued").0
    }

    fn is_taken(verifier: &FleetVerifier, certificate: &CertificateDer<'_>, node: &str) -> bool {
        let name = server_name(&name(node));
        verifier.verify(certificate, &[], KeyUsage::server_auth(), Some(&name)).is_ok()
            && verifier.verify(certificate, &[], KeyUsage::client_auth(), None).is_ok()
    }

    #[test]
    fn a_certificate_is_that_of_its_node_in_its_fleet_and_of_no_other() {
        let long = "x".repeat(63);
        for node in ["web-1", "Web-1", "7", "a-", "a_", &long] {
            let issued = certificate(ONE, node);
            assert!(is_taken(&verifier(ONE, "shop"), &issued, node), "{node}");
            assert!(is_of(&issued, &name(node)) && !is_of(&issued, &name("web-2")));
            assert!(!is_taken(&verifier(ONE, "shop"), &issued, "web-2"));
            assert!(!is_taken(&verifier(OTHER, "shop"), &issued, node));
            assert!(!is_taken(&verifier(ONE, "mail"), &issued, node));
        }
        assert!(!is_of(&certificate(ONE, "web"), &name("Web")));
    }

    #[test]
    fn during_a_rotation_certificates_of_both_keys_are_taken() {
        let both = verifier(&format!("{ONE}\n{OTHER}"), "shop");
        assert!(is_taken(&both, &certificate(ONE, "a"), "a"));
        assert!(is_taken(&both, &certificate(OTHER, "a"), "a"));
    }
}
