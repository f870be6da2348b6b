//! A URL as a source, and the AppConfig Agent, which is one on this machine.
//!
//! TLS is verified, a redirect is refused, a body that breaks off is no document.

use super::{
    SourceError,
    fetcher::Fetched,
    request::{Ask, server_of},
};
use crate::profile::{self, Document};
use mainstay_core::plan::ProfileFormat;
use mainstay_net::{
    files,
    http::{Bytes, HeaderMap, HeaderValue, HttpError, Method, StatusCode, Uri, header},
    percent,
};
use mainstay_pool::WATCHED;
use std::{
    path::{Path, PathBuf},
    str,
    time::Duration,
};
use tokio::time::timeout;

/// For connecting, the request and the whole answer.
const LIMIT: Duration = Duration::from_secs(10);
const AGENT: &str = "http://127.0.0.1:2772";
/// What the agent calls a version.
const AGENT_LABEL: &str = "configuration-version";

#[derive(Debug)]
pub(super) struct HttpSource {
    url: String,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    format: Option<ProfileFormat>,
    /// Of the last answer.
    etag: Option<HeaderValue>,
    /// The header with the label of a version.
    label: Option<&'static str>,
}

impl HttpSource {
    pub(super) fn new(
        url: &str,
        token_file: Option<&Path>,
        ca: Option<&Path>,
        format: Option<ProfileFormat>,
    ) -> HttpSource {
        HttpSource {
            url: url.to_owned(),
            token_file: token_file.map(Path::to_owned),
            ca: ca.map(Path::to_owned),
            format,
            etag: None,
            label: None,
        }
    }

    /// Application, environment and profile, as the agent names them.
    pub(super) fn agent(
        names: [&str; 3],
        url: Option<&str>,
        format: Option<ProfileFormat>,
    ) -> HttpSource {
        let [application, environment, profile] = names.map(percent::segment);
        let base = url.unwrap_or(AGENT).trim_end_matches('/');
        let path = format!(
            "{base}/applications/{application}/environments/{environment}/configurations/{profile}"
        );
        HttpSource { label: Some(AGENT_LABEL), ..HttpSource::new(&path, None, None, format) }
    }

    pub(super) async fn fetch(&mut self, fresh: bool) -> Result<Fetched, SourceError> {
        let uri: Uri = self.url.parse().map_err(|_| SourceError::Url(self.url.clone()))?;
        let server = server_of(&uri, self.ca.as_deref(), "ca")?;
        let mut headers = HeaderMap::new();
        if let Some(path) = self.token_file.clone() {
            let token = WATCHED.run(move || files::read_private(&path)).await??;
            headers.insert(
                header::AUTHORIZATION,
                bearer(&token).ok_or_else(|| SourceError::Secret {
                    name: "token_file".to_owned(),
                    why: "it is no token that can be sent".to_owned(),
                    busy: false,
                })?,
            );
        }
        if fresh {
            self.forget();
        }
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        let asked = Ask::of(&uri, Method::GET, headers, Bytes::new())?.put(&server, None);
        let slow = || HttpError::Slow { address: server.address().to_owned(), limit: LIMIT };
        let (status, headers, bytes) = timeout(LIMIT, asked).await.map_err(|_| slow())??;
        self.take(server.address(), status, &headers, bytes)
    }

    pub(super) fn forget(&mut self) {
        self.etag = None;
    }

    fn take(
        &mut self,
        address: &str,
        status: StatusCode,
        headers: &HeaderMap,
        bytes: Vec<u8>,
    ) -> Result<Fetched, SourceError> {
        let address = address.to_owned();
        if status == StatusCode::NOT_MODIFIED && self.etag.is_some() {
            return Ok(Fetched::Unchanged);
        }
        if status != StatusCode::OK {
            let why = match status.is_redirection() {
                true => ", and nothing is followed",
                false => "",
            };
            let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            return Err(SourceError::Status { address, status: status.as_u16(), why, busy });
        }
        let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
        if !is_chunked && !headers.contains_key(header::CONTENT_LENGTH) {
            return Err(SourceError::Endless { address });
        }
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let format = match (self.format, text("content-type")) {
            (Some(format), _) => format,
            (None, Some(header)) => profile::format_of_header(header)?,
            (None, None) => return Err(SourceError::NoType { address }),
        };
        let label = self.label.and_then(text).map(str::to_owned);
        self.etag = headers.get(header::ETAG).cloned();
        Ok(Fetched::Document(Document { format, bytes, label }))
    }
}

fn bearer(token: &[u8]) -> Option<HeaderValue> {
    let token = str::from_utf8(token).ok()?.trim();
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    (!token.is_empty()).then_some(value)
}
