//! A node elsewhere: where it listens, and what we prove ourselves with.

use super::stream::Stream;
use crate::{
    args::RemoteArgs,
    dirs::named,
    failure::{Failure, USAGE},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    env, fs, io,
    net::{TcpStream, ToSocketAddrs},
    path::Path,
    sync::Arc,
    time::Duration,
};

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) url: String,
    /// With the port if one was written.
    pub(crate) authority: String,
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    token: Option<String>,
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
        let tls = match secure {
            true => Some((Arc::new(config(args)?), server_name(&host)?)),
            false => None,
        };
        let token = named(args.token_file.as_deref(), "MAINSTAY_TOKEN_FILE");
        let token = token.map(|path| token_in(&path)).transpose()?;
        Ok(Some(Remote { url, authority, host, port, tls, token }))
    }

    /// What every request carries.
    pub(crate) fn headers(&self) -> String {
        self.token
            .as_ref()
            .map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"))
    }

    pub(crate) fn connect(&self, patience: Duration) -> io::Result<Stream> {
        let mut last = io::Error::other("its name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, patience.max(SHORTEST)) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(patience.max(SHORTEST)))?;
                    stream.set_write_timeout(Some(patience.max(SHORTEST)))?;
                    return self.secured(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn secured(&self, stream: TcpStream) -> io::Result<Stream> {
        let Some((config, name)) = &self.tls else { return Ok(Stream::Tcp(stream)) };
        let connection =
            ClientConnection::new(config.clone(), name.clone()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// No time at all is no time limit to the operating system.
const SHORTEST: Duration = Duration::from_millis(1);

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

fn server_name(host: &str) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(host.to_owned())
        .map_err(|error| usage(format!("'{host}' cannot be the name of a node: {error}")))
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

fn config(args: &RemoteArgs) -> Result<ClientConfig, Failure> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::of("TLS cannot be set up", error))?
        .with_root_certificates(roots(named(args.ca.as_deref(), "MAINSTAY_CA").as_deref())?);
    let cert = named(args.cert.as_deref(), "MAINSTAY_CERT");
    let key = named(args.key.as_deref(), "MAINSTAY_KEY");
    match (cert, key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let shown = key.display();
            let secret = PrivateKeyDer::from_pem_file(&key)
                .map_err(|error| Failure::of(format!("cannot read the key in {shown}"), error))?;
            let certs = certificates(&cert)?;
            let of = || format!("{} and {shown} are of no use", cert.display());
            builder.with_client_auth_cert(certs, secret).map_err(|error| Failure::of(of(), error))
        }
        (Some(_), None) => Err(usage("a certificate needs its key: add --key")),
        (None, Some(_)) => Err(usage("a key needs its certificate: add --cert")),
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, Failure> {
    let found = match ca {
        Some(path) => certificates(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(found) {
        (0, _) => {
            let text = "there are no certificates to trust: name those of the node with --ca";
            Err(Failure::failed(text))
        }
        (_, _) => Ok(roots),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(
        |error| Failure::of(format!("cannot read the certificates in {}", path.display()), error),
    )
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
