//! Who may use the API over TCP: those who know the token, those with a certificate of the
//! authority, or everybody where the configuration says so in so many words.
//!
//! The token itself is not kept, only its hash: it is not in a core dump, and comparing hashes in
//! constant time tells nothing about how far a guess was right.

use crate::problem::Problem;
use axum::http::{HeaderMap, header};
use mainstay_core::plan::{ApiPlan, ApiTls};
use ring::digest;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{fs, io::Read, net::IpAddr, os::unix::fs::PermissionsExt, path::Path, sync::Arc};
use subtle::ConstantTimeEq;
use tokio_rustls::TlsAcceptor;

/// A shorter one could be guessed.
const SHORTEST: usize = 16;
/// Tokens, certificates and keys are small.
const LARGEST: u64 = 1 << 20;

type Hash = [u8; 32];

pub(crate) struct Guard {
    token: Option<Hash>,
    tls: Option<TlsAcceptor>,
    insecure: bool,
    /// Of all that it was made from: equal ones let the same clients in.
    mark: Hash,
}

impl PartialEq for Guard {
    fn eq(&self, other: &Guard) -> bool {
        self.mark == other.mark
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

impl Guard {
    /// Reads what the plan names. May take as long as a disk does.
    pub(crate) fn new(plan: &ApiPlan) -> Result<Guard, String> {
        let mut mark = digest::Context::new(&digest::SHA256);
        mark.update(&[u8::from(plan.insecure)]);
        let token = plan.token_file.as_deref().map(token).transpose()?;
        mark.update(&token.unwrap_or_default());
        let mut tls = None;
        if let Some(files) = &plan.tls {
            let pem = Pem::read(files)?;
            for part in [Some(&pem.cert), Some(&pem.key), pem.client_ca.as_ref()] {
                let part = part.map_or(&[][..], Vec::as_slice);
                mark.update(&hash(part));
            }
            let config = pem.config(files, token.is_some())?;
            tls = Some(TlsAcceptor::from(Arc::new(config)));
        }
        let certified = plan.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if token.is_none() && !certified && !plan.insecure {
            return Err("neither a token nor client certificates say who may use it".to_owned());
        }
        let mark = mark.finish().as_ref().try_into().unwrap_or_default();
        Ok(Guard { token, tls, insecure: plan.insecure, mark })
    }

    pub(crate) fn tls(&self) -> Option<&TlsAcceptor> {
        self.tls.as_ref()
    }

    /// `certified`: the connection was made with a certificate of the authority.
    pub(crate) fn admit(&self, headers: &HeaderMap, certified: bool) -> Result<(), Problem> {
        same_site(headers)?;
        if self.insecure {
            return literal_host(headers);
        }
        if certified {
            return Ok(());
        }
        let Some(expected) = &self.token else {
            return Err(Problem::unauthorized("a client certificate is needed here"));
        };
        match bearer(headers) {
            Some(token) if bool::from(hash(token).ct_eq(expected)) => Ok(()),
            Some(_) => Err(Problem::unauthorized("this is not the token of this node")),
            None => {
                let or = if self.tls.is_some() { ", or a client certificate," } else { "" };
                Err(Problem::unauthorized(format!(
                    "a token{or} is needed here: send it as 'Authorization: Bearer TOKEN'"
                )))
            }
        }
    }
}

fn hash(bytes: &[u8]) -> Hash {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap_or_default()
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A page of another site that a browser shows must not act in the name of its reader.
fn same_site(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let of = origin.split_once("://").map_or(origin, |(_, host)| host);
    match headers.get(header::HOST) {
        Some(host) if host.as_bytes().eq_ignore_ascii_case(of.as_bytes()) => Ok(()),
        Some(_) | None => Err(Problem::forbidden("requests of other sites are not taken")),
    }
}

/// Where everybody is let in, a name that somebody else points here must not let them in.
fn literal_host(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    let host = host.to_str().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    match address.is_ok() || name.eq_ignore_ascii_case("localhost") {
        true => Ok(()),
        false => Err(Problem::forbidden(
            "without a token this node answers only to its address: use it instead of a name",
        )),
    }
}

fn token(path: &Path) -> Result<Hash, String> {
    let shown = path.display();
    let bytes = read_private(path)?;
    let token = bytes.trim_ascii();
    if token.len() < SHORTEST {
        return Err(format!("the token in {shown} is shorter than {SHORTEST} characters"));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(format!("the token in {shown} is not one line of printable characters"));
    }
    Ok(hash(token))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    // A pipe might never answer.
    if !fs::metadata(path).map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
        .map_err(|error| failed(&error))?;
    Ok(bytes)
}

fn read_private(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read(path)?;
    let open = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0);
    if open {
        let shown = path.display();
        return Err(format!("{shown} is accessible to everybody: chmod o= {shown}"));
    }
    Ok(bytes)
}

struct Pem {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Pem {
    fn read(files: &ApiTls) -> Result<Pem, String> {
        Ok(Pem {
            cert: read(&files.cert)?,
            key: read_private(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    /// `or_token`: a client without a certificate may still have the token.
    fn config(&self, files: &ApiTls, or_token: bool) -> Result<ServerConfig, String> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(pem), Some(path)) => {
                let bad = |error: &dyn std::fmt::Display| {
                    format!("{} is of no use as an authority: {error}", path.display())
                };
                let mut roots = RootCertStore::empty();
                for cert in certificates(pem, path)? {
                    roots.add(cert).map_err(|error| bad(&error))?;
                }
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = if or_token { verifier.allow_unauthenticated() } else { verifier };
                builder.with_client_cert_verifier(verifier.build().map_err(|error| bad(&error))?)
            }
            _ => builder.with_no_client_auth(),
        };
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("there is no key in {}: {error}", files.key.display()))?;
        builder.with_single_cert(certificates(&self.cert, &files.cert)?, key).map_err(|error| {
            let (cert, key) = (files.cert.display(), files.key.display());
            format!("the certificate in {cert} and the key in {key} are of no use: {error}")
        })
    }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("cannot read the certificates in {shown}: {error}"))?;
    match found.is_empty() {
        true => Err(format!("there is no certificate in {shown}")),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    }

    fn guard(token: Option<&str>, insecure: bool) -> Guard {
        Guard {
            token: token.map(|token| hash(token.as_bytes())),
            tls: None,
            insecure,
            mark: Hash::default(),
        }
    }

    #[test]
    fn only_the_token_or_a_certificate_lets_in() {
        let guard = guard(Some("0123456789abcdef"), false);
        let status = |pairs: &[(&'static str, &str)], certified| {
            guard.admit(&headers(pairs), certified).map_err(|problem| problem.status())
        };
        assert_eq!(status(&[("authorization", "Bearer 0123456789abcdef")], false), Ok(()));
        assert_eq!(status(&[("authorization", "bearer  0123456789abcdef ")], false), Ok(()));
        assert_eq!(status(&[], true), Ok(()));
        for wrong in ["Bearer 0123456789abcdeF", "Bearer ", "Bearer", "Basic 0123456789abcdef"] {
            assert_eq!(status(&[("authorization", wrong)], false), Err(401), "{wrong}");
        }
        assert_eq!(status(&[], false), Err(401));
    }

    #[test]
    fn a_page_of_another_site_gets_nothing_done() {
        let guard = guard(None, true);
        let status = |pairs: &[(&'static str, &str)]| {
            guard.admit(&headers(pairs), false).map_err(|problem| problem.status())
        };
        let host = ("host", "127.0.0.1:7070");
        assert_eq!(status(&[host]), Ok(()));
        assert_eq!(status(&[host, ("origin", "http://127.0.0.1:7070")]), Ok(()));
        assert_eq!(status(&[host, ("origin", "https://evil.example")]), Err(403));
        assert_eq!(status(&[host, ("origin", "null")]), Err(403));
        for fine in ["localhost", "localhost:7070", "[::1]:7070", "10.0.0.1"] {
            assert_eq!(status(&[("host", fine)]), Ok(()), "{fine}");
        }
        assert_eq!(status(&[("host", "rebound.example:7070")]), Err(403));
    }
}
