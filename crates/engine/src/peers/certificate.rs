//! Mutual TLS between peers: certificates that come from the fleet key.
//!
//! The key of the authority is derived from the fleet key, so that every node of a fleet can issue
//! its own certificate and knows those of the others. A certificate names its node, and whoever
//! calls a node expects its name. What the clock shows does not matter: certificates are verified as
//! of one fixed day.

use crate::mesh::{FleetKey, FleetKeys};
use mainstay_core::name::Name;
use mainstay_net::tls::{Authorities, CertifiedKey, MutualTls, TlsError};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SanType,
};
use std::time::Duration;

/// A day within the validity of all our certificates.
const FIXED_DAY: Duration = Duration::from_secs(1_750_000_000);
/// What an Ed25519 key in PKCS#8 begins with (RFC 8410).
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// A part of a DNS name has at most 63.
const LABEL: usize = 60;

#[derive(Debug, thiserror::Error)]
pub enum CertificateMaking {
    #[error("a certificate cannot be issued: {0}")]
    Issue(#[from] rcgen::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
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
pub(crate) fn peer_tls(
    keys: &FleetKeys,
    fleet: &str,
    me: &Name,
) -> Result<MutualTls, CertificateMaking> {
    let certified = authority(keys.used(), fleet)?.issue(me)?;
    let protocols = Protocol::ALL.map(Protocol::alpn);
    Ok(MutualTls::new(authorities(keys, fleet)?, &certified, &protocols)?)
}

/// Takes certificates of the fleet, whatever the clock shows.
fn authorities(keys: &FleetKeys, fleet: &str) -> Result<Authorities, CertificateMaking> {
    let known = keys.accepted().map(|key| authority(key, fleet)?.certificate());
    let known: Vec<Vec<u8>> = known.collect::<Result<_, _>>()?;
    Ok(Authorities::new(known.iter().map(Vec::as_slice), FIXED_DAY)?)
}

/// The name of a node as TLS knows it. Names of nodes tell capitals from small letters and may end
/// with a dash: names of hosts do not.
pub(crate) fn server_name(node: &Name) -> String {
    let hex: Vec<u8> =
        node.as_str().bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let labels: Vec<&str> =
        hex.chunks(LABEL).map(|it| std::str::from_utf8(it).unwrap_or_default()).collect();
    format!("{}.node.mainstay", labels.join("."))
}

struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

/// The same on every node that has the key.
fn authority(key: &FleetKey, fleet: &str) -> Result<Authority, CertificateMaking> {
    let seed = key.derive("authority", fleet, b"");
    let pkcs8 = [&ED25519_PKCS8[..], &seed].concat().into();
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "mainstay fleet");
    Ok(Authority { params, key })
}

impl Authority {
    fn certificate(&self) -> Result<Vec<u8>, CertificateMaking> {
        Ok(self.params.self_signed(&self.key)?.der().to_vec())
    }

    fn issue(&self, node: &Name) -> Result<CertifiedKey, CertificateMaking> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.subject_alt_names = vec![SanType::DnsName(server_name(node).try_into()?)];
        // For people: only the name above counts.
        params.distinguished_name.push(DnType::CommonName, node.as_str());
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let issued = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key))?;
        Ok(CertifiedKey { certificate: issued.der().to_vec(), key: key.serialize_der() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn tls(keys: &str, fleet: &str, node: &str) -> MutualTls {
        let keys = FleetKeys::parse(keys, Path::new("key")).expect("keys");
        peer_tls(&keys, fleet, &name(node)).expect("certificates")
    }

    /// Whether both take each other's certificate, and the called one's is that of this node.
    async fn meet(caller: &MutualTls, called: &MutualTls, node: &str) -> bool {
        let (here, there) = duplex(64 << 10);
        let node = server_name(&name(node));
        let call = async {
            let mut met = caller.connect(here, &node, Protocol::Fleet.alpn()).await?;
            met.stream.read_u8().await
        };
        let answer = async {
            let mut met = called.accept(there).await?;
            met.stream.write_u8(1).await?;
            met.stream.flush().await
        };
        tokio::try_join!(call, answer).is_ok()
    }

    #[tokio::test]
    async fn a_certificate_is_that_of_its_node_in_its_fleet_and_of_no_other() {
        let long = "x".repeat(63);
        for node in ["web-1", "Web-1", "7", "a-", "a_", &long] {
            let called = tls(ONE, "shop", node);
            assert!(meet(&tls(ONE, "shop", "b"), &called, node).await, "{node}");
            assert!(!meet(&tls(ONE, "shop", "b"), &called, "web-2").await);
            assert!(!meet(&tls(OTHER, "shop", "b"), &called, node).await);
            assert!(!meet(&tls(ONE, "mail", "b"), &called, node).await);
        }
        assert!(!meet(&tls(ONE, "shop", "b"), &tls(ONE, "shop", "web"), "Web").await);
    }

    #[tokio::test]
    async fn during_a_rotation_certificates_of_both_keys_are_taken() {
        let both = format!("{ONE}\n{OTHER}");
        for (caller, called) in [(&*both, ONE), (ONE, &*both), (&*both, &*both)] {
            let called = tls(called, "shop", "a");
            assert!(meet(&tls(caller, "shop", "b"), &called, "a").await);
        }
        let other_first = format!("{OTHER}\n{ONE}");
        assert!(meet(&tls(&both, "shop", "b"), &tls(&other_first, "shop", "a"), "a").await);
    }
}
