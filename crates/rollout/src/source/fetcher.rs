//! One kind of source for each word after `source =`.

#[cfg(feature = "aws")]
use super::aws::AppConfig;
use super::{Shared, SourceError, file::FileSource, http::HttpSource};
use crate::profile::Document;
use mainstay_core::plan::{ProfilePlan, ProfileSource};
use std::time::Duration;

/// What a source has for us.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// Nothing but what it said last; never of a fresh one.
    Unchanged,
    Document(Document),
}

#[derive(Debug)]
pub(super) enum Fetcher {
    File(FileSource),
    Http(HttpSource),
    #[cfg(feature = "aws")]
    AppConfig(Box<AppConfig>),
    #[cfg(not(feature = "aws"))]
    NoAws,
}

impl Fetcher {
    #[cfg_attr(not(feature = "aws"), allow(unused_variables))]
    pub(super) fn new(plan: &ProfilePlan, shared: &Shared) -> Fetcher {
        match &plan.source {
            ProfileSource::File { path } => Fetcher::File(FileSource::new(path, plan.format)),
            ProfileSource::Http { url, token_file, ca } => {
                let (token_file, ca) = (token_file.as_deref(), ca.as_deref());
                Fetcher::Http(HttpSource::new(url, token_file, ca, plan.format))
            }
            ProfileSource::Agent { application, environment, profile, url } => {
                let url = url.as_deref();
                Fetcher::Http(HttpSource::agent(
                    [application, environment, profile],
                    url,
                    plan.format,
                ))
            }
            #[cfg(feature = "aws")]
            ProfileSource::AppConfig { application, environment, profile, region, endpoint } => {
                let client = shared.aws.place(region.as_deref(), endpoint.as_deref());
                let names = [application.as_str(), environment, profile];
                Fetcher::AppConfig(Box::new(AppConfig::new(names, client, plan.format)))
            }
            #[cfg(not(feature = "aws"))]
            ProfileSource::AppConfig { .. } => Fetcher::NoAws,
        }
    }

    pub(super) async fn fetch(
        &mut self,
        fresh: bool,
    ) -> Result<(Fetched, Option<Duration>), SourceError> {
        match self {
            Fetcher::File(source) => Ok((source.fetch(fresh).await?, None)),
            Fetcher::Http(source) => Ok((source.fetch(fresh).await?, None)),
            #[cfg(feature = "aws")]
            Fetcher::AppConfig(source) => source.fetch(fresh).await,
            #[cfg(not(feature = "aws"))]
            Fetcher::NoAws => Err(SourceError::NoAws),
        }
    }

    /// What it has served could not be used: it shall serve it again.
    pub(super) fn forget(&mut self) {
        match self {
            Fetcher::File(source) => source.forget(),
            Fetcher::Http(source) => source.forget(),
            #[cfg(feature = "aws")]
            Fetcher::AppConfig(source) => source.forget(),
            #[cfg(not(feature = "aws"))]
            Fetcher::NoAws => {}
        }
    }
}
