//! A node elsewhere: where it listens, and what we prove ourselves with.

use crate::{
    args::RemoteArgs,
    dirs::named,
    failure::{Failure, USAGE},
};
use mainstay_core::tls::Tls;
use mainstay_net::{
    http::{HeaderMap, HeaderValue, Server, header},
    tls::{ClientTls, TlsError},
};
use std::{env, fs, path::Path};

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) url: String,
    pub(super) server: Server,
    /// What every request carries.
    pub(super) headers: HeaderMap,
}

impl Remote {
    /// `None`: no URL is given, neither as an argument nor in the environment.
    pub(crate) fn of(args: &RemoteArgs) -> Result<Option<Remote>, Failure> {
        let from_env = || env::var("MAINSTAY_URL").ok().filter(|url| !url.is_empty());
        let Some(url) = args.url.clone().or_else(from_env) else {
            let lonely = [
                ("--token-file", &args.token_file),
                ("--ca", &args.ca),
                ("--cert", &args.cert),
                ("--key", &args.key),
            ];
            return match lonely.iter().find(|(_, value)| value.is_some()) {
                Some((flag, _)) => Err(usage(format!("{flag} is for a node elsewhere: add --url"))),
                None => Ok(None),
            };
        };
        let (secure, authority) = parse(&url)?;
        let (host, port) = split(&authority, if secure { 443 } else { 80 })
            .ok_or_else(|| usage(format!("'{url}' has no valid host and port")))?;
        let tls = secure.then(|| tls(args, &host)).transpose()?;
        let token = named(args.token_file.as_deref(), "MAINSTAY_TOKEN_FILE");
        let token = token.map(|path| token_in(&path)).transpose()?;
        let server = Server::tcp(&host, port).called(&url).with_tls(tls);
        let mut headers = HeaderMap::from_iter([(header::HOST, value(&authority)?)]);
        if let Some(token) = token {
            let mut token = value(&format!("Bearer {token}"))?;
            token.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, token);
        }
        Ok(Some(Remote { url, server, headers }))
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|error| Failure::of("this cannot be asked", error))
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::new(USAGE, text)
}

/// Whether it is encrypted, and whom it names.
fn parse(url: &str) -> Result<(bool, String), Failure> {
    let (secure, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => {
            let text = format!("'{url}' is not a URL: begin with https:// or http://");
            return Err(usage(text));
        }
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@']) || authority.is_empty() {
        let text = format!("'{url}' is more than a host and a port: https://10.0.0.1:7070");
        return Err(usage(text));
    }
    Ok((secure, authority.to_owned()))
}

fn split(authority: &str, default: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, default),
    };
    let host = host.trim_matches(['[', ']']);
    let fine = |c: char| c.is_ascii_alphanumeric() || ".:-_%".contains(c);
    (!host.is_empty() && host.chars().all(fine)).then(|| (host.to_owned(), port))
}

fn token_in(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::of(format!("cannot read the token in {shown}"), error))?;
    let token = text.trim();
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.to_owned()),
        false => Err(Failure::failed(format!("there is no token in {shown}"))),
    }
}

fn tls(args: &RemoteArgs, host: &str) -> Result<ClientTls, Failure> {
    let cert = named(args.cert.as_deref(), "MAINSTAY_CERT");
    let key = named(args.key.as_deref(), "MAINSTAY_KEY");
    match (&cert, &key) {
        (Some(_), None) => return Err(usage("a certificate needs its key: add --key")),
        (None, Some(_)) => return Err(usage("a key needs its certificate: add --cert")),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let ca_file = named(args.ca.as_deref(), "MAINSTAY_CA");
    let settings = Tls { ca_file, cert, key, ..Tls::default() };
    let tls = ClientTls::new(&settings, host, "--ca").and_then(|tls| tls.load().map(|()| tls));
    tls.map_err(|error| match error {
        TlsError::Name { source, .. } => {
            usage(format!("'{host}' cannot be the name of a node: {source}"))
        }
        TlsError::NoRoots { .. } => {
            Failure::failed("there are no certificates to trust: name those of the node with --ca")
        }
        error => Failure::failed(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_a_port_and_nothing_else() {
        let split_of = |url: &str| {
            let (secure, authority) = parse(url).ok()?;
            split(&authority, if secure { 443 } else { 80 })
        };
        let host = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(split_of("https://node.example/"), host("node.example", 443));
        assert_eq!(split_of("http://127.0.0.1:7070"), host("127.0.0.1", 7070));
        assert_eq!(split_of("https://[::1]:7070"), host("::1", 7070));
        assert_eq!(split_of("https://[::1]"), host("::1", 443));
        for wrong in
            ["node:7070", "ftp://x", "https://", "https://a/b", "https://me@a", "https://a:x"]
        {
            assert_eq!(split_of(wrong), None, "{wrong}");
        }
    }
}
