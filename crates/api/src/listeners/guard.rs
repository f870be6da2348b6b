//! Who may use the API over TCP: those who know the token, those with a certificate of the
//! authority, or everybody where the configuration says so in so many words.
//!
//! The token itself is not kept, only its hash: it is not in a core dump, and comparing hashes in
//! constant time tells nothing about how far a guess was right.

use crate::problem::Problem;
use axum::http::{HeaderMap, header};
use mainstay_core::plan::ApiPlan;
use mainstay_net::{
    files::{self, FileError},
    tls::{ServerTls, TlsError, TlsFiles},
};
use ring::digest;
use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// A shorter one could be guessed.
const SHORTEST: usize = 16;

pub(super) type Hash = [u8; 32];

/// Equal ones let the same clients in.
#[derive(PartialEq)]
pub(crate) struct Guard {
    token: Option<Hash>,
    tls: Option<ServerTls>,
    insecure: bool,
}

/// Why it cannot be said who may use the API.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the token in {} is shorter than {SHORTEST} characters", .0.display())]
    ShortToken(PathBuf),
    #[error("the token in {} is not one line of printable characters", .0.display())]
    UnprintableToken(PathBuf),
    #[error("neither a token nor client certificates say who may use it")]
    Nobody,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

impl Guard {
    /// Reads what the plan names. May take as long as a disk does.
    pub(crate) fn new(plan: &ApiPlan) -> Result<Guard, GuardError> {
        let token = plan.token_file.as_deref().map(token).transpose()?;
        let tls = plan.tls.as_ref().map(|files| {
            ServerTls::load(TlsFiles {
                cert: &files.cert,
                key: &files.key,
                client_ca: files.client_ca.as_deref(),
                // A client without a certificate may still have the token.
                anonymous: token.is_some(),
            })
        });
        let tls = tls.transpose()?;
        let certified = plan.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if token.is_none() && !certified && !plan.insecure {
            return Err(GuardError::Nobody);
        }
        Ok(Guard { token, tls, insecure: plan.insecure })
    }

    pub(crate) fn tls(&self) -> Option<&ServerTls> {
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

pub(super) fn hash(bytes: &[u8]) -> Hash {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap_or_default()
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A page of another site that a browser shows must not act in the name of its reader.
pub(super) fn same_site(headers: &HeaderMap) -> Result<(), Problem> {
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

fn token(path: &Path) -> Result<Hash, GuardError> {
    let bytes = files::read_private(path)?;
    let token = bytes.trim_ascii();
    if token.len() < SHORTEST {
        return Err(GuardError::ShortToken(path.to_owned()));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(GuardError::UnprintableToken(path.to_owned()));
    }
    Ok(hash(token))
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
        Guard { token: token.map(|token| hash(token.as_bytes())), tls: None, insecure }
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
