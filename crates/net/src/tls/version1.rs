//! Client certificates of X.509 version 1, which `openssl x509 -req` makes when nobody asks for
//! extensions. The library that verifies certificates knows version 3 only.
//!
//! One is accepted if an authority has signed it directly, with an algorithm of today, and it is
//! within its time. Having no extensions it cannot be an authority itself, so none stands between.

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::sync::Arc;

/// Verifies clients as `inner` does, and those with certificates of version 1 by itself.
#[derive(Debug)]
pub(super) struct AnyVersion {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
    pub(super) roots: Arc<RootCertStore>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyVersion {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match Version1::parse(end_entity) {
            None => self.inner.verify_client_cert(end_entity, intermediates, now),
            Some(certificate) => {
                certificate.verify(&self.roots, self.algorithms, now)?;
                Ok(ClientCertVerified::assertion())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(certificate) = Version1::parse(cert) else {
            return self.inner.verify_tls12_signature(message, cert, signed);
        };
        let of_scheme = |scheme: SignatureScheme| {
            self.algorithms.mapping.iter().find(|it| it.0 == scheme).map_or(&[][..], |it| it.1)
        };
        let valid = of_scheme(signed.scheme).iter().any(|algorithm| {
            algorithm.public_key_alg_id().as_ref() == certificate.key.algorithm
                && algorithm
                    .verify_signature(certificate.key.bits, message, signed.signature())
                    .is_ok()
        });
        match valid {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Version1::parse(cert) {
            None => self.inner.verify_tls13_signature(message, cert, signed),
            Some(certificate) => {
                let key = SubjectPublicKeyInfoDer::from(certificate.key.whole);
                verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// The parts of a certificate of version 1.
struct Version1<'a> {
    /// What the issuer has signed.
    signed: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    issuer: &'a [u8],
    /// Seconds since the epoch.
    valid: (u64, u64),
    key: PublicKey<'a>,
}

struct PublicKey<'a> {
    whole: &'a [u8],
    algorithm: &'a [u8],
    bits: &'a [u8],
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl<'a> Version1<'a> {
    /// `None`: it is of another version, or none at all.
    fn parse(der: &'a [u8]) -> Option<Version1<'a>> {
        let (certificate, rest) = value(SEQUENCE, der)?;
        let (signed, after) = whole(SEQUENCE, certificate)?;
        let (algorithm, after) = value(SEQUENCE, after)?;
        let (signature, end) = bits(after)?;
        // Version 1 is said by not saying it: a serial number comes first.
        let (_, body) = value(INTEGER, value(SEQUENCE, signed)?.0)?;
        let (inner_algorithm, body) = value(SEQUENCE, body)?;
        let (issuer, body) = value(SEQUENCE, body)?;
        let (valid, body) = value(SEQUENCE, body)?;
        let (_subject, body) = value(SEQUENCE, body)?;
        let (key, body) = whole(SEQUENCE, body)?;
        let (not_before, valid) = time(valid)?;
        let (not_after, valid) = time(valid)?;
        let ends = [rest, end, body, valid].iter().all(|rest| rest.is_empty());
        let key = PublicKey::parse(key)?;
        (ends && inner_algorithm == algorithm).then_some(Version1 {
            signed,
            algorithm,
            signature,
            issuer,
            valid: (not_before, not_after),
            key,
        })
    }

    fn verify(
        &self,
        roots: &RootCertStore,
        algorithms: WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let (not_before, not_after) = self.valid;
        match now.as_secs() {
            now if now < not_before => return Err(CertificateError::NotValidYet),
            now if now > not_after => return Err(CertificateError::Expired),
            _ => {}
        }
        // An authority that may speak for some names only cannot be asked about them here.
        let issuers = roots
            .roots
            .iter()
            .filter(|root| root.name_constraints.is_none() && root.subject.as_ref() == self.issuer);
        let mut keys = issuers.filter_map(|it| PublicKey::of(&it.subject_public_key_info));
        let signed_by = |key: PublicKey<'_>| {
            algorithms.all.iter().any(|algorithm| {
                algorithm.signature_alg_id().as_ref() == self.algorithm
                    && algorithm.public_key_alg_id().as_ref() == key.algorithm
                    && algorithm.verify_signature(key.bits, self.signed, self.signature).is_ok()
            })
        };
        match keys.any(signed_by) {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer),
        }
    }
}

impl<'a> PublicKey<'a> {
    fn parse(whole: &'a [u8]) -> Option<PublicKey<'a>> {
        let PublicKey { algorithm, bits, .. } = PublicKey::of(value(SEQUENCE, whole)?.0)?;
        Some(PublicKey { whole, algorithm, bits })
    }

    /// Without its outermost frame, as the library keeps those of authorities.
    fn of(inside: &'a [u8]) -> Option<PublicKey<'a>> {
        let (algorithm, rest) = value(SEQUENCE, inside)?;
        let (bits, end) = bits(rest)?;
        end.is_empty().then_some(PublicKey { whole: inside, algorithm, bits })
    }
}

/// The value with this tag, and what comes after it.
fn value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = head(tag, der)?;
    let end = head.checked_add(length)?;
    Some((der.get(head..end)?, &der[end..]))
}

/// The same with tag and length.
fn whole(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = head(tag, der)?;
    der.split_at_checked(head.checked_add(length)?)
}

/// How long tag and length are, and how long the value is. DER: no length is longer than it must be.
fn head(tag: u8, der: &[u8]) -> Option<(usize, usize)> {
    match *der {
        [found, length @ ..=0x7f, ..] if found == tag => Some((2, length.into())),
        [found, 0x81, length @ 0x80..=0xff, ..] if found == tag => Some((3, length.into())),
        [found, 0x82, high @ 1..=0xff, low, ..] if found == tag => {
            Some((4, usize::from(u16::from_be_bytes([high, low]))))
        }
        _ => None,
    }
}

/// A string of bits that is one of bytes.
fn bits(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (value, rest) = value(BIT_STRING, der)?;
    value.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bits)| (bits, rest))
}

/// Seconds since the epoch.
fn time(der: &[u8]) -> Option<(u64, &[u8])> {
    let (year, digits, rest) = match value(UTC_TIME, der) {
        Some((text, rest)) => {
            let (year, digits) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, digits, rest)
        }
        None => {
            let (text, rest) = value(GENERALIZED_TIME, der)?;
            let (year, digits) = text.split_at_checked(4)?;
            (number(year)?, digits, rest)
        }
    };
    let digits = digits.strip_suffix(b"Z").filter(|digits| digits.len() == 10)?;
    let part = |at: usize| number(&digits[at..at + 2]);
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second, rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().all(u8::is_ascii_digit).then_some(())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// From the epoch to a day of the Gregorian calendar; a year begins with March.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leaps = year / 4 - year / 100 + year / 400;
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SigningKey};
    use rustls::crypto::ring::default_provider;

    fn frame(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let inside = parts.concat();
        let length = inside.len();
        let head = match u8::try_from(length) {
            Ok(short @ 0..0x80) => vec![tag, short],
            Ok(long) => vec![tag, 0x81, long],
            Err(_) => vec![tag, 0x82, (length >> 8) as u8, length as u8],
        };
        [head, inside].concat()
    }

    struct Authority(CertifiedIssuer<'static, KeyPair>);

    impl Authority {
        fn new() -> Authority {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
        }

        fn roots(&self) -> RootCertStore {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).expect("an authority");
            roots
        }

        /// A certificate of version 1: that of version 3 without version and extensions.
        fn certify(&self, times: [&str; 2]) -> CertificateDer<'static> {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec!["client".to_owned()]).expect("a name");
            let newer = params.signed_by(&key, &self.0).expect("a certificate");
            let (certificate, _) = value(SEQUENCE, newer.der()).expect("a certificate");
            let (signed, after) = value(SEQUENCE, certificate).expect("what is signed");
            let (algorithm, _) = whole(SEQUENCE, after).expect("an algorithm");
            let (_, body) = value(0xa0, signed).expect("a version");
            let (serial, body) = whole(INTEGER, body).expect("a number");
            let (_, body) = whole(SEQUENCE, body).expect("an algorithm");
            let (issuer, body) = whole(SEQUENCE, body).expect("an issuer");
            let (_, body) = whole(SEQUENCE, body).expect("times");
            let (subject, body) = whole(SEQUENCE, body).expect("a subject");
            let (key, _) = whole(SEQUENCE, body).expect("a key");
            let times = times.map(|time| frame(UTC_TIME, &[time.as_bytes()]));
            let times = frame(SEQUENCE, &[&times[0], &times[1]]);
            let parts: [&[u8]; 6] = [serial, algorithm, issuer, &times, subject, key];
            let signed = frame(SEQUENCE, &parts);
            let signature = self.0.key().sign(&signed).expect("a signature");
            let signature = frame(BIT_STRING, &[&[0], &signature]);
            frame(SEQUENCE, &[&signed, algorithm, &signature]).into()
        }
    }

    fn verified(
        certificate: &CertificateDer<'_>,
        roots: &RootCertStore,
    ) -> Option<Result<(), CertificateError>> {
        let algorithms = default_provider().signature_verification_algorithms;
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
        Some(Version1::parse(certificate)?.verify(roots, algorithms, now))
    }

    const TIMES: [&str; 2] = ["260101000000Z", "300101000000Z"];

    #[test]
    fn one_that_an_authority_has_signed_is_accepted_within_its_time() {
        let (ours, other) = (Authority::new(), Authority::new());
        let certificate = ours.certify(TIMES);
        assert_eq!(verified(&certificate, &ours.roots()), Some(Ok(())));
        let unknown = Some(Err(CertificateError::UnknownIssuer));
        assert_eq!(verified(&certificate, &other.roots()), unknown);
        let old = ours.certify(["200101000000Z", "210101000000Z"]);
        assert_eq!(verified(&old, &ours.roots()), Some(Err(CertificateError::Expired)));
        let young = ours.certify(["400101000000Z", "410101000000Z"]);
        assert_eq!(verified(&young, &ours.roots()), Some(Err(CertificateError::NotValidYet)));
    }

    #[test]
    fn one_that_was_changed_anywhere_is_never_accepted() {
        let ours = Authority::new();
        let (certificate, roots) = (ours.certify(TIMES), ours.roots());
        for at in 0..certificate.len() {
            let mut changed = certificate.to_vec();
            changed[at] ^= 1;
            assert_ne!(verified(&changed.into(), &roots), Some(Ok(())), "byte {at}");
            assert_ne!(verified(&certificate[..at].into(), &roots), Some(Ok(())), "{at} bytes");
        }
        assert!(Version1::parse(ours.0.der()).is_none(), "one of version 3 is not ours to judge");
    }

    #[test]
    fn days_are_counted_from_the_epoch() {
        for (year, month, day, expected) in [
            (1970, 1, 1, 0),
            (1970, 3, 1, 59),
            (2000, 2, 29, 11_016),
            (2000, 3, 1, 11_017),
            (2026, 11, 16, 20_773),
            (2100, 12, 31, 47_846),
        ] {
            assert_eq!(days(year, month, day), expected, "{year}-{month}-{day}");
        }
    }
}
