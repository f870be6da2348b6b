//! What goes wrong with TLS, by cause.

use crate::files::FileError;
use mainstay_pool::Unserved;
use rustls::{AlertDescription, CertificateError, pki_types};
use std::{
    error::Error as StdError,
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("'{name}' cannot be the name of a TLS server: {source}")]
    Name { name: String, source: pki_types::InvalidDnsNameError },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot read the certificates in {}: {source}", path.display())]
    Certificates { path: PathBuf, source: pki_types::pem::Error },
    #[error("there is no certificate in {}", path.display())]
    NoCertificate { path: PathBuf },
    #[error("there is no key in {}: {source}", path.display())]
    NoKey { path: PathBuf, source: pki_types::pem::Error },
    #[error(
        "the certificate in {} and the key in {} are of no use: {source}",
        cert.display(), key.display()
    )]
    Identity { cert: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("a certificate of our own needs both tls.cert and tls.key")]
    HalfIdentity,
    #[error("{} is of no use as an authority: {source}", path.display())]
    Authority { path: PathBuf, source: Box<dyn StdError + Send + Sync> },
    #[error("an authority is of no use: {0}")]
    Anchor(webpki::Error),
    /// Nobody is trusted.
    #[error("there are no certificates in {place}: name some with {ca_key}")]
    NoRoots { place: String, ca_key: &'static str },
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
    #[error("the files of TLS were not read: {0}")]
    Unread(#[from] Unserved),
    /// The server did not prove who it is.
    #[error("the certificate of {address} is not trusted: {distrust}")]
    Untrusted { address: String, distrust: Distrust },
    #[error("TLS with {address} failed: {source}")]
    Handshake { address: String, source: io::Error },
}

/// Why a server's certificate is not trusted.
#[derive(Debug, Error)]
pub enum Distrust {
    #[error("nobody we know has issued it; name its issuer with {ca_key}")]
    UnknownIssuer { ca_key: &'static str },
    #[error("it is not for '{name}'; say what it is for with tls.server_name")]
    WrongName { name: String, why: CertificateError },
    /// It is that of an authority, which a server's must not be.
    #[error("it is that of an authority; a server needs one with basicConstraints CA:FALSE")]
    Authority,
    #[error("{0}")]
    Other(CertificateError),
}

impl Distrust {
    pub(super) fn of(why: CertificateError, name: &str, ca_key: &'static str) -> Distrust {
        match why {
            // A bad signature: another issuer of the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Distrust::UnknownIssuer { ca_key }
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Distrust::WrongName { name: name.to_owned(), why }
            }
            CertificateError::Other(other)
                if matches!(
                    other.0.downcast_ref::<webpki::Error>(),
                    Some(webpki::Error::CaUsedAsEndEntity)
                ) =>
            {
                Distrust::Authority
            }
            why => Distrust::Other(why),
        }
    }

    /// The library's own words, where they say more.
    #[must_use]
    pub fn certificate_error(&self) -> Option<&CertificateError> {
        match self {
            Distrust::WrongName { why, .. } | Distrust::Other(why) => Some(why),
            Distrust::UnknownIssuer { .. } | Distrust::Authority => None,
        }
    }
}

impl TlsError {
    pub(super) fn handshake(
        error: io::Error,
        address: &str,
        name: &str,
        ca_key: &'static str,
    ) -> TlsError {
        match behind(&error) {
            Some(rustls::Error::InvalidCertificate(why)) => TlsError::Untrusted {
                address: address.to_owned(),
                distrust: Distrust::of(why.clone(), name, ca_key),
            },
            Some(_) | None => TlsError::Handshake { address: address.to_owned(), source: error },
        }
    }

    pub(super) fn certificates(path: &Path, source: pki_types::pem::Error) -> TlsError {
        TlsError::Certificates { path: path.to_owned(), source }
    }
}

/// Whether the other side ended the connection because of our certificate, or for want of one.
pub(crate) fn rejects_certificate(error: &(dyn StdError + 'static)) -> bool {
    use AlertDescription::{
        BadCertificate, BadCertificateHashValue, BadCertificateStatusResponse, CertificateExpired,
        CertificateRequired, CertificateRevoked, CertificateUnknown, CertificateUnobtainable,
        NoCertificate, UnsupportedCertificate,
    };
    matches!(
        behind(error),
        Some(rustls::Error::AlertReceived(
            BadCertificate
                | BadCertificateHashValue
                | BadCertificateStatusResponse
                | CertificateExpired
                | CertificateRequired
                | CertificateRevoked
                | CertificateUnknown
                | CertificateUnobtainable
                | NoCertificate
                | UnsupportedCertificate
        ))
    )
}

/// Whether the other side wants a certificate and got none.
pub(crate) fn requires_certificate(error: &(dyn StdError + 'static)) -> bool {
    matches!(
        behind(error),
        Some(rustls::Error::AlertReceived(AlertDescription::CertificateRequired))
    )
}

/// Why a client did not get past the handshake, for those who run the server.
pub(crate) fn why_refused(error: &io::Error) -> String {
    match behind(error) {
        Some(rustls::Error::NoCertificatesPresented) => "it has no certificate".to_owned(),
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its certificate is not of the authority in tls.client_ca".to_owned()
        }
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

/// The TLS error behind another one, however deep.
fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error passes over what it is made of when it is asked for its source.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
