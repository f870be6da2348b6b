//! The http check: one request on a connection of its own.

use super::{Verdict, verdict::short};
use http_body_util::{BodyExt, Empty};
use hyper::{
    Method, Request, StatusCode, Uri,
    body::{Bytes, Incoming},
    client::conn::http1,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use mainstay_core::{
    plan::{Http, HttpTls},
    tls::Tls,
};
use mainstay_net::Secure;
use regex::bytes::Regex;
use std::{path::PathBuf, pin::pin};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};

/// So much of a body is looked at.
const BODY: usize = 64 << 10;
/// So much of it is shown when a check fails.
const SHOWN: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct HttpProbe {
    host: String,
    port: u16,
    unix: Option<PathBuf>,
    tls: Option<Secure>,
    method: Method,
    target: Uri,
    headers: HeaderMap,
    status: Vec<(u16, u16)>,
    body_matches: Option<Regex>,
}

impl HttpProbe {
    pub(super) fn new(http: &Http) -> Result<HttpProbe, String> {
        let url: Uri =
            http.url.parse().map_err(|error| format!("'{}' is not a URL: {error}", http.url))?;
        let authority = url.authority().ok_or_else(|| format!("'{}' names no host", http.url))?;
        let (tls, default_port) = match url.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(secure(&http.tls, authority.host())?), 443),
            _ => return Err(format!("'{}' begins with neither http: nor https:", http.url)),
        };
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        Ok(HttpProbe {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(default_port),
            unix: http.unix.clone(),
            tls,
            method: http
                .method
                .parse()
                .map_err(|_| format!("'{}' is not an HTTP method", http.method))?,
            target: target.parse().map_err(|error| format!("'{target}': {error}"))?,
            headers: headers(http, authority.as_str())?,
            status: match http.status.is_empty() {
                true => vec![(200, 399)],
                false => http.status.clone(),
            },
            body_matches: http
                .body_matches
                .as_deref()
                .map(Regex::new)
                .transpose()
                .map_err(|error| error.to_string())?,
        })
    }

    pub(super) async fn ask(&self) -> Verdict {
        self.try_ask().await.unwrap_or_else(Verdict::failed)
    }

    async fn try_ask(&self) -> Result<Verdict, String> {
        match &self.unix {
            Some(path) => {
                let stream = UnixStream::connect(path).await;
                self.secure(
                    stream.map_err(|error| {
                        format!("cannot connect to {}: {error}", path.display())
                    })?,
                )
                .await
            }
            None => {
                let stream = mainstay_net::to(&self.host, self.port).await;
                self.secure(stream.map_err(|error| {
                    format!("cannot connect to {}:{}: {error}", self.host, self.port)
                })?)
                .await
            }
        }
    }

    /// What it connects to, for people.
    fn address(&self) -> String {
        match &self.unix {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    async fn secure<S>(&self, stream: S) -> Result<Verdict, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match &self.tls {
            Some(tls) => self.exchange(tls.shake(stream, &self.address()).await?).await,
            None => self.exchange(stream).await,
        }
    }

    async fn exchange<S>(&self, stream: S) -> Result<Verdict, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        let mut answer = pin!(async move {
            let response = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            self.judge(head.status, body).await
        });
        // A connection that has ended has given what there was to read.
        tokio::select! {
            answer = &mut answer => answer,
            _ = connection => answer.await,
        }
    }

    async fn judge(&self, status: StatusCode, body: Incoming) -> Result<Verdict, String> {
        let code = status.as_u16();
        if !self.status.iter().any(|(first, last)| (*first..=*last).contains(&code)) {
            let body = beginning(body, SHOWN).await.unwrap_or_default();
            let said = short(&String::from_utf8_lossy(&body));
            let pause = if said.is_empty() { "" } else { ": " };
            return Ok(Verdict::failed(format!("status {status}{pause}{said}")));
        }
        let Some(expression) = &self.body_matches else {
            return Ok(Verdict::passed(format!("status {status}")));
        };
        let body = beginning(body, BODY).await?;
        Ok(match expression.is_match(&body) {
            true => Verdict::passed(format!("status {status}, the body matches")),
            false => Verdict::failed(format!(
                "status {status}, but the body does not match '{expression}'"
            )),
        })
    }
}

fn secure(http: &HttpTls, host: &str) -> Result<Secure, String> {
    let HttpTls { ca, insecure, server_name } = http.clone();
    let settings = Tls { ca_file: ca, verify: !insecure, server_name, ..Tls::default() };
    Secure::new(&settings, host, "tls.ca")
}

fn broken(error: hyper::Error) -> String {
    format!("the exchange failed: {error}")
}

async fn beginning(mut body: Incoming, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while bytes.len() < most
        && let Some(frame) = body.frame().await
    {
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            bytes.extend_from_slice(&data[..data.len().min(most - bytes.len())]);
        }
    }
    Ok(bytes)
}

fn headers(http: &Http, authority: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    // Credentials in a URL are not part of the host's name.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let mut set = |name: HeaderName, value: &str| -> Result<(), String> {
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of header '{name}' cannot be sent"))?;
        headers.insert(name, value);
        Ok(())
    };
    set(header::HOST, host)?;
    set(header::USER_AGENT, concat!("mainstay/", env!("CARGO_PKG_VERSION")))?;
    set(header::CONNECTION, "close")?;
    for (name, value) in &http.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("'{name}' cannot be the name of a header"))?;
        set(name, value)?;
    }
    Ok(headers)
}

#[cfg(feature = "fuzz")]
pub(super) fn fuzz_exchange(answer: &[u8]) -> (bool, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let http = Http {
        url: "http://localhost/".to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        status: vec![(200, 299)],
        body_matches: Some("ok|[a-z]+ready$".to_owned()),
        unix: None,
        tls: mainstay_core::plan::HttpTls::default(),
    };
    let probe = HttpProbe::new(&http).expect("a valid check");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let verdict = runtime.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let serve = async {
            let _ = theirs.read(&mut [0; 4096]).await;
            let _ = theirs.write_all(answer).await;
            drop(theirs);
        };
        tokio::join!(probe.exchange(ours), serve).0
    });
    let verdict = verdict.unwrap_or_else(Verdict::failed);
    (verdict.passed, verdict.output)
}
