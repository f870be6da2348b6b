//! Where profiles come from: asked once for each load, with the secrets that their content names.
//!
//! ```text
//!  load ─► Fetcher (file, http, agent, appconfig) ─► Document ─► read ─► secrets resolved ─► Served
//!             └─ nothing new: secrets by stage are read again all the same ─► Unchanged
//! ```
//!
//! A source keeps what it needs between two loads (an ETag, a token, the document) and decides
//! nothing: when to ask again is said along with the outcome, if the source has a say in it.

#[cfg(feature = "aws")]
mod aws;
mod fetcher;
mod file;
mod http;
mod notices;
mod request;
mod secrets;
#[cfg(test)]
mod tests;

#[cfg(feature = "aws")]
pub use aws::Aws;
pub use notices::Notices;

use crate::profile::{self, BadSecretRef, DataError, Document, UnknownType};
use fetcher::{Fetched, Fetcher};
use mainstay_core::{
    plan::{CloudWatchPlan, ProfilePlan},
    rollout::{LoadOutcome, Trouble, Version},
};
use mainstay_net::{Backoff, files::FileError, http::HttpError};
use mainstay_pool::Unserved;
use secrets::Secrets;
use std::{io, sync::Arc, time::Duration};
use thiserror::Error;

/// A server that is in trouble is left alone for so long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Why a load has failed.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    #[error("cannot read {path}: {source}")]
    File { path: String, source: io::Error },
    #[error("{0} is being written")]
    BeingWritten(String),
    #[error("'{0}' is no URL that can be asked")]
    Url(String),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Tls(#[from] mainstay_net::tls::TlsError),
    #[error(transparent)]
    Token(#[from] FileError),
    #[error("{address} answers with {status}{why}")]
    Status { address: String, status: u16, why: &'static str, busy: bool },
    #[error("the answer of {address} does not say where it ends")]
    Endless { address: String },
    #[error("the answer of {address} has no content type: set 'format'")]
    NoType { address: String },
    #[error(transparent)]
    Type(#[from] UnknownType),
    #[error("{0}")]
    Data(#[from] DataError),
    #[error("{0}")]
    SecretRef(#[from] BadSecretRef),
    #[error("the secret '{name}': {why}")]
    Secret { name: String, why: String, busy: bool },
    #[cfg(feature = "aws")]
    #[error("AppConfig: {why}")]
    AppConfig { why: String, busy: bool, not_before: Option<Duration> },
    #[cfg(feature = "aws")]
    #[error("CloudWatch: {why}")]
    CloudWatch { why: String },
    #[cfg(not(feature = "aws"))]
    #[error("this binary was built without AWS")]
    NoAws,
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

impl SourceError {
    /// The server wants to be left alone, or is in trouble itself.
    fn is_busy(&self) -> bool {
        match self {
            SourceError::Status { busy, .. } | SourceError::Secret { busy, .. } => *busy,
            #[cfg(feature = "aws")]
            SourceError::AppConfig { busy, .. } => *busy,
            _ => false,
        }
    }

    fn not_before(&self) -> Option<Duration> {
        match self {
            #[cfg(feature = "aws")]
            SourceError::AppConfig { not_before, .. } => *not_before,
            _ => None,
        }
    }
}

/// What came of a load, and how long the source wants to be left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub outcome: LoadOutcome,
    pub not_before: Option<Duration>,
}

/// All that sources share: connections to AWS, if any are needed.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    #[cfg(feature = "aws")]
    pub aws: Aws,
}

impl Shared {
    /// Publishes whether something has failed.
    ///
    /// # Errors
    /// For people: the next value is published in its time.
    pub async fn publish(&self, metric: &CloudWatchPlan, failing: bool) -> Result<(), Trouble> {
        #[cfg(feature = "aws")]
        let published = {
            let place = self.aws.place(metric.region.as_deref(), metric.endpoint.as_deref());
            place.publish(metric, u8::from(failing)).await
        };
        #[cfg(not(feature = "aws"))]
        let published: Result<(), SourceError> = {
            let _ = (metric, failing);
            Err(SourceError::NoAws)
        };
        published.map_err(|error| Trouble(error.to_string()))
    }
}

/// Between two tries: nodes of one fleet, and profiles of one node, do not come at once.
fn between_tries(profile: &str) -> Backoff {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Backoff::new(format!("{node} {profile}"), FIRST_WAIT, LONGEST_WAIT)
}

/// The source of one profile.
#[derive(Debug)]
pub struct Source {
    name: String,
    fetcher: Fetcher,
    secrets: Secrets,
    backoff: Backoff,
    /// What was served last.
    last: Option<(Document, Version)>,
}

impl Source {
    #[must_use]
    pub fn new(plan: &ProfilePlan, shared: &Shared) -> Source {
        let name = plan.name.to_string();
        Source {
            fetcher: Fetcher::new(plan, shared),
            secrets: Secrets::new(plan, shared),
            backoff: between_tries(&name),
            last: None,
            name,
        }
    }

    /// Asks once. `fresh`: whatever it serves comes back whole.
    pub async fn load(&mut self, fresh: bool) -> Loaded {
        if fresh {
            self.last = None;
        }
        match self.ask(fresh).await {
            Ok((outcome, not_before)) => {
                self.backoff.reset();
                Loaded { outcome, not_before }
            }
            Err(error) => {
                let busy = error.is_busy().then(|| self.backoff.next_wait());
                let not_before = error.not_before().max(busy);
                let trouble = Trouble(format!("profile '{}': {error}", self.name));
                Loaded { outcome: LoadOutcome::Failed(trouble), not_before }
            }
        }
    }

    async fn ask(&mut self, fresh: bool) -> Result<(LoadOutcome, Option<Duration>), SourceError> {
        let (fetched, not_before) = self.fetcher.fetch(fresh).await?;
        let last = self.last.take();
        let document = match (fetched, &last) {
            (Fetched::Document(document), _) => document,
            // Its secrets may be others by now.
            (Fetched::Unchanged, Some((document, _))) if self.secrets.can_change() => {
                document.clone()
            }
            (Fetched::Unchanged, _) => {
                self.last = last;
                return Ok((LoadOutcome::Unchanged, not_before));
            }
        };
        let (version, content) = match self.resolve(document.clone()).await {
            Ok(served) => served,
            Err(error) => {
                // The source would say next time that nothing is new.
                self.fetcher.forget();
                return Err(error);
            }
        };
        let same = last.is_some_and(|(_, last)| last == version);
        self.last = Some((document, version.clone()));
        let outcome = match same && !fresh {
            true => LoadOutcome::Unchanged,
            false => LoadOutcome::Served { version, content: Arc::new(content) },
        };
        Ok((outcome, not_before))
    }

    /// As if the server's interval were over.
    #[cfg(all(test, feature = "aws"))]
    fn skip_interval(&mut self) {
        if let Fetcher::AppConfig(source) = &mut self.fetcher {
            source.skip_interval();
        }
    }

    async fn resolve(
        &mut self,
        document: Document,
    ) -> Result<(Version, mainstay_core::rollout::Content), SourceError> {
        let data = profile::read(document.format, &document.bytes)?;
        let refs = profile::secret_refs(&data)?;
        let secrets = self.secrets.resolve(&refs).await?;
        Ok(document.with_secrets(secrets))
    }
}
