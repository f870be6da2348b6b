//! Requests to the agent: what each carries, and what comes back.

use crate::driver::Failure;
use mainstay_core::discovery::Consul;
use mainstay_net::{
    http::{
        Bytes, Client, HeaderMap, HeaderName, HeaderValue, Method, Server, StatusCode, Terms,
        header, request,
    },
    tls::ClientTls,
};

static TOKEN: HeaderName = HeaderName::from_static("x-consul-token");
static INDEX: HeaderName = HeaderName::from_static("x-consul-index");

#[derive(Debug)]
pub(super) struct ConsulClient {
    /// Or why there is none.
    prepared: Result<Prepared, Failure>,
}

#[derive(Debug)]
struct Prepared {
    client: Client,
    headers: HeaderMap,
}

#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Vec<u8>,
    pub(super) terms: Terms,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) index: Option<u64>,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl ConsulClient {
    /// Over at most so many connections.
    pub(super) fn new(consul: &Consul, most: usize) -> ConsulClient {
        ConsulClient { prepared: Prepared::new(consul, most) }
    }

    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let Prepared { client, headers } = self.prepared.as_ref().map_err(Clone::clone)?;
        let target = ask
            .path
            .parse()
            .map_err(|error| Failure::Failed(format!("'{}' cannot be asked: {error}", ask.path)))?;
        let request = request(ask.method, target, headers.clone(), ask.body.into());
        let response = client.send(&request, ask.terms).await.map_err(Failure::of)?;
        let index = response.headers().get(&INDEX);
        let index = index.and_then(|index| index.to_str().ok()?.parse().ok());
        Ok(Answer { status: response.status(), index, body: response.into_body() })
    }
}

impl Prepared {
    fn new(consul: &Consul, most: usize) -> Result<Prepared, Failure> {
        let address = &consul.address;
        let (server, host) = server(address)?;
        let tls = consul
            .https
            .then(|| ClientTls::new(&consul.tls, &host, "tls.ca_file"))
            .transpose()
            .map_err(Failure::of)?;
        // What to call it in a request.
        let authority = if is_unix(address).is_some() { "localhost" } else { address };
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(authority).map_err(|_| {
            Failure::Failed(format!("'{address}' cannot be asked for in a request"))
        })?;
        headers.insert(header::HOST, host);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &consul.token {
            let mut token = HeaderValue::from_str(token.reveal()).map_err(|_| {
                Failure::Failed("the token has characters that no token has".to_owned())
            })?;
            token.set_sensitive(true);
            headers.insert(TOKEN.clone(), token);
        }
        let client = Client::new(server.called(address).with_tls(tls), most);
        Ok(Prepared { client, headers })
    }
}

fn is_unix(address: &str) -> Option<&str> {
    address.strip_prefix("unix:")
}

/// With the name that it has in TLS.
fn server(address: &str) -> Result<(Server, String), Failure> {
    if let Some(path) = is_unix(address) {
        return Ok((Server::unix(path), "localhost".to_owned()));
    }
    let (host, port) = address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| {
            Failure::Failed(format!(
                "'{address}' is no address of a server: write host:port or unix:/path"
            ))
        })?;
    let host = host.trim_matches(['[', ']']).to_owned();
    Ok((Server::tcp(&host, port), host))
}
