//! The http check: one request on a connection of its own.

use super::{Verdict, verdict::short};
use mainstay_core::{
    plan::{Http, HttpTls},
    tls::Tls,
};
use mainstay_net::{
    BoxedStream,
    http::{
        Answer, Bytes, Connection, HeaderMap, HeaderName, HeaderValue, HttpError, InvalidUri,
        Method, Server, Uri, header, request,
    },
    tls::{ClientTls, TlsError},
};
use regex::bytes::Regex;
use thiserror::Error;

/// So much of a body is looked at.
const BODY: usize = 64 << 10;
/// So much of it is shown when a check fails.
const SHOWN: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct HttpProbe {
    server: Server,
    method: Method,
    target: Uri,
    headers: HeaderMap,
    status: Vec<(u16, u16)>,
    body_matches: Option<Regex>,
}

/// Why a check can never be asked.
#[derive(Debug, Error)]
pub(super) enum Unaskable {
    #[error("'{url}' is not a URL: {source}")]
    Url { url: String, source: InvalidUri },
    #[error("'{0}' names no host")]
    NoHost(String),
    #[error("'{0}' begins with neither http: nor https:")]
    Scheme(String),
    #[error("'{0}' is not an HTTP method")]
    Method(String),
    #[error("'{0}' cannot be the name of a header")]
    HeaderName(String),
    #[error("the value of header '{0}' cannot be sent")]
    HeaderValue(HeaderName),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Expression(#[from] regex::Error),
}

impl HttpProbe {
    pub(super) fn new(http: &Http) -> Result<HttpProbe, Unaskable> {
        let not_a_url = |url: &str, source| Unaskable::Url { url: url.to_owned(), source };
        let url: Uri = http.url.parse().map_err(|error| not_a_url(&http.url, error))?;
        let authority = url.authority().ok_or_else(|| Unaskable::NoHost(http.url.clone()))?;
        let (tls, default_port) = match url.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(tls(&http.tls, authority.host())?), 443),
            _ => return Err(Unaskable::Scheme(http.url.clone())),
        };
        let server = match &http.unix {
            Some(path) => Server::unix(path),
            None => Server::tcp(authority.host(), authority.port_u16().unwrap_or(default_port)),
        };
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        Ok(HttpProbe {
            server: server.with_tls(tls),
            method: http.method.parse().map_err(|_| Unaskable::Method(http.method.clone()))?,
            target: target.parse().map_err(|error| not_a_url(target, error))?,
            headers: headers(http, authority.as_str())?,
            status: match http.status.is_empty() {
                true => vec![(200, 399)],
                false => http.status.clone(),
            },
            body_matches: http.body_matches.as_deref().map(Regex::new).transpose()?,
        })
    }

    pub(super) async fn ask(&self) -> Verdict {
        self.try_ask().await.unwrap_or_else(failed)
    }

    /// The beginning of its answer, or why that is none.
    pub(super) async fn fetch(&self) -> Result<Vec<u8>, Verdict> {
        self.try_fetch().await.unwrap_or_else(|error| Err(failed(error)))
    }

    async fn try_fetch(&self) -> Result<Result<Vec<u8>, Verdict>, HttpError> {
        let mut answer = self.send(self.server.connect(None).await?).await?;
        match self.passes(&answer) {
            true => Ok(Ok(answer.beginning(BODY).await?)),
            false => Ok(Err(self.judge(answer).await?)),
        }
    }

    async fn try_ask(&self) -> Result<Verdict, HttpError> {
        self.exchange(self.server.connect(None).await?).await
    }

    async fn exchange(&self, stream: BoxedStream) -> Result<Verdict, HttpError> {
        let answer = self.send(stream).await?;
        self.judge(answer).await
    }

    async fn send(&self, stream: BoxedStream) -> Result<Answer, HttpError> {
        let connection = Connection::open(stream, self.server.address()).await?;
        let (method, target) = (self.method.clone(), self.target.clone());
        let request = request(method, target, self.headers.clone(), Bytes::new());
        connection.send(request).await
    }

    fn passes(&self, answer: &Answer) -> bool {
        let code = answer.status.as_u16();
        self.status.iter().any(|(first, last)| (*first..=*last).contains(&code))
    }

    async fn judge(&self, mut answer: Answer) -> Result<Verdict, HttpError> {
        let status = answer.status;
        if !self.passes(&answer) {
            let body = answer.beginning(SHOWN).await.unwrap_or_default();
            let said = short(&String::from_utf8_lossy(&body));
            let pause = if said.is_empty() { "" } else { ": " };
            return Ok(Verdict::failed(format!("status {status}{pause}{said}")));
        }
        let Some(expression) = &self.body_matches else {
            return Ok(Verdict::passed(format!("status {status}")));
        };
        let body = answer.beginning(BODY).await?;
        Ok(match expression.is_match(&body) {
            true => Verdict::passed(format!("status {status}, the body matches")),
            false => Verdict::failed(format!(
                "status {status}, but the body does not match '{expression}'"
            )),
        })
    }
}

/// The address is the check's own: it need not be told.
fn failed(error: HttpError) -> Verdict {
    Verdict::failed(match error {
        HttpError::Exchange { source, .. } => format!("the exchange failed: {source}"),
        HttpError::BrokenOff { source, .. } => format!("the exchange failed: {source}"),
        HttpError::Connect { .. } | HttpError::Tls(_) | HttpError::Slow { .. } => error.to_string(),
    })
}

fn tls(http: &HttpTls, host: &str) -> Result<ClientTls, TlsError> {
    let HttpTls { ca, insecure, server_name } = http.clone();
    let settings = Tls { ca_file: ca, verify: !insecure, server_name, ..Tls::default() };
    ClientTls::new(&settings, host, "tls.ca")
}

fn headers(http: &Http, authority: &str) -> Result<HeaderMap, Unaskable> {
    let mut headers = HeaderMap::new();
    // Credentials in a URL are not part of the host's name.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let mut set = |name: HeaderName, value: &str| -> Result<(), Unaskable> {
        let value =
            HeaderValue::from_str(value).map_err(|_| Unaskable::HeaderValue(name.clone()))?;
        headers.insert(name, value);
        Ok(())
    };
    set(header::HOST, host)?;
    set(header::USER_AGENT, concat!("mainstay/", env!("CARGO_PKG_VERSION")))?;
    set(header::CONNECTION, "close")?;
    for (name, value) in &http.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Unaskable::HeaderName(name.clone()))?;
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
        tokio::join!(probe.exchange(Box::new(ours)), serve).0
    });
    let verdict = verdict.unwrap_or_else(failed);
    (verdict.passed, verdict.output)
}
