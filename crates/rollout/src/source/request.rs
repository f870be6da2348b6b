//! A request for what a URL names, on a connection of its own.

use super::SourceError;
use crate::profile::LARGEST;
use mainstay_core::tls::Tls;
use mainstay_net::{
    http::{
        Bytes, Connection, HeaderMap, HeaderValue, HttpError, Method, Server, StatusCode, Uri,
        header, request,
    },
    tls::ClientTls,
};
use std::{path::Path, time::Duration};

/// What is asked of a server, beside where it is.
#[derive(Debug)]
pub(super) struct Ask {
    method: Method,
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
}

/// Certificates of https are those in `ca`, else this machine's; `ca_key` is where a user names them.
pub(super) fn server_of(
    uri: &Uri,
    ca: Option<&Path>,
    ca_key: &'static str,
) -> Result<Server, SourceError> {
    let bad = || SourceError::Url(uri.to_string());
    let (host, authority) = uri.host().zip(uri.authority()).ok_or_else(bad)?;
    if authority.as_str().contains('@') {
        // Whatever stands before the host is a secret.
        return Err(SourceError::Url(host.to_owned()));
    }
    let settings = Tls { ca_file: ca.map(Path::to_owned), ..Tls::default() };
    let tls = match is_secure(uri).ok_or_else(bad)? {
        false => None,
        true => Some(ClientTls::new(&settings, host, ca_key)?),
    };
    let port = uri.port_u16().or_else(|| default_port(uri)).ok_or_else(bad)?;
    Ok(Server::tcp(host, port).with_tls(tls))
}

fn is_secure(uri: &Uri) -> Option<bool> {
    match uri.scheme_str() {
        Some("http") => Some(false),
        Some("https") => Some(true),
        Some(_) | None => None,
    }
}

fn default_port(uri: &Uri) -> Option<u16> {
    is_secure(uri).map(|secure| if secure { 443 } else { 80 })
}

impl Ask {
    /// A request for what a URL names.
    pub(super) fn of(
        uri: &Uri,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Ask, SourceError> {
        let bad = || SourceError::Url(uri.to_string());
        // Without a port that goes without saying: those who sign a request leave it out.
        let host = match uri.port_u16() == default_port(uri) {
            true => uri.host(),
            false => uri.authority().map(|it| it.as_str()),
        };
        let host = HeaderValue::from_str(host.ok_or_else(bad)?).map_err(|_| bad())?;
        headers.insert(header::HOST, host);
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        Ok(Ask { method, path: path.parse().map_err(|_| bad())?, headers, body })
    }

    /// On a connection of its own; with a limit each address of the server has so long.
    pub(super) async fn put(
        self,
        server: &Server,
        connect: Option<Duration>,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), HttpError> {
        let Ask { method, path, headers, body } = self;
        let stream = server.connect(connect).await?;
        let connection = Connection::open(stream, server.address()).await?;
        let mut answer = connection.send(request(method, path, headers, body)).await?;
        // One that is larger is refused by whoever reads it.
        let bytes = answer.beginning(LARGEST + 1).await?;
        Ok((answer.status, answer.headers, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Result<(String, String, String), SourceError> {
        let uri: Uri = url.parse().expect("a URL");
        let server = server_of(&uri, None, "ca")?;
        let ask = Ask::of(&uri, Method::GET, HeaderMap::new(), Bytes::new())?;
        let host = ask.headers[header::HOST].to_str().expect("ASCII").to_owned();
        Ok((server.address().to_owned(), host, ask.path.to_string()))
    }

    #[test]
    fn a_port_that_goes_without_saying_is_in_the_address_and_not_in_the_host() {
        for (url, address, host, path) in [
            ("http://h", "h:80", "h", "/"),
            ("https://h/a?b=c", "h:443", "h", "/a?b=c"),
            ("https://h:443/", "h:443", "h", "/"),
            ("https://h:80/", "h:80", "h:80", "/"),
            ("http://[::1]:8080/x", "[::1]:8080", "[::1]:8080", "/x"),
        ] {
            let found = asked(url).expect(url);
            assert_eq!(found, (address.into(), host.into(), path.into()), "{url}");
        }
        for url in ["ftp://h/", "http://somebody:secret@h/", "/path"] {
            let told = asked(url).expect_err(url);
            assert!(matches!(&told, SourceError::Url(it) if !it.contains("secret")), "{told}");
        }
    }
}
