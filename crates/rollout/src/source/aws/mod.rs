//! AWS by its own SDK: nothing of it is set up before a profile, a secret or a metric needs it.
//!
//! Its requests are made as all others are. The SDK does not try again by
//! itself: a token of AppConfig is good for one call, and when to come back is core's affair.

mod appconfig;
mod cloudwatch;
mod requests;

pub(super) use appconfig::AppConfig;

use crate::profile::SecretVersion;
use aws_config::{
    BehaviorVersion, Region, SdkConfig, retry::RetryConfig,
    stalled_stream_protection::StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use mainstay_core::text::Secret;
use requests::Requests;
use std::{
    collections::BTreeMap,
    error::Error as StdError,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;

const CONNECT: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 15 });

/// Connections to AWS, one set of credentials for each region and endpoint.
#[derive(Debug, Clone, Default)]
pub struct Aws {
    places: Arc<Mutex<BTreeMap<Key, AwsPlace>>>,
    #[cfg(test)]
    test_endpoint: Option<String>,
}

type Key = (Option<String>, Option<String>);

/// One region or endpoint.
#[derive(Debug, Clone)]
pub(super) struct AwsPlace {
    region: Option<String>,
    endpoint: Option<String>,
    config: Arc<OnceCell<SdkConfig>>,
}

impl Aws {
    /// All of it at one address, also what has no endpoint of its own.
    #[cfg(test)]
    pub(super) fn at(endpoint: String) -> Aws {
        Aws { test_endpoint: Some(endpoint), ..Aws::default() }
    }

    pub(super) fn place(&self, region: Option<&str>, endpoint: Option<&str>) -> AwsPlace {
        #[cfg(test)]
        let endpoint = endpoint.or(self.test_endpoint.as_deref());
        let key = (region.map(str::to_owned), endpoint.map(str::to_owned));
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let (region, endpoint) = key.clone();
        let made = || AwsPlace { region, endpoint, config: Arc::default() };
        places.entry(key).or_insert_with(made).clone()
    }
}

impl AwsPlace {
    /// Credentials, region and endpoint as AWS's own tools find them.
    async fn config(&self) -> &SdkConfig {
        self.config.get_or_init(|| self.load()).await
    }

    async fn load(&self) -> SdkConfig {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT)
            .operation_timeout(LIMIT)
            .operation_attempt_timeout(LIMIT)
            .build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(Requests::default())
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(timeouts);
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        #[cfg(test)]
        let loader = loader.test_credentials().region(Region::new("us-east-1"));
        loader.load().await
    }

    /// Why not, and whether the server is in trouble itself.
    pub(super) async fn secret(
        &self,
        id: &str,
        version: &SecretVersion,
    ) -> Result<Secret, (String, bool)> {
        let client = aws_sdk_secretsmanager::Client::new(self.config().await);
        let call = client.get_secret_value().secret_id(id);
        let call = match version {
            SecretVersion::Id(version) => call.version_id(version),
            SecretVersion::Stage(stage) => call.version_stage(stage),
        };
        let answer = call.send().await.map_err(|error| {
            let busy = is_busy(error.code(), error.raw_response().map(|it| it.status().as_u16()));
            (told(&error, error.code()), busy)
        })?;
        let text = match (answer.secret_string, answer.secret_binary) {
            (Some(text), _) => text,
            (None, Some(blob)) => String::from_utf8(blob.into_inner())
                .map_err(|_| ("it is binary, and not UTF-8".to_owned(), false))?,
            (None, None) => return Err(("it has no value".to_owned(), false)),
        };
        Ok(Secret::new(text))
    }
}

/// The server has too much to do, or failed itself.
fn is_busy(code: Option<&str>, status: Option<u16>) -> bool {
    let throttled = code.is_some_and(|code| code.contains("Throttl") || code.contains("TooMany"));
    throttled || status.is_some_and(|status| status == 429 || status >= 500)
}

/// An error of the SDK with all that is behind it, which its own text leaves out.
fn told(error: &(dyn StdError + 'static), code: Option<&str>) -> String {
    let mut text = match code {
        Some(code) => format!("{code}: {error}"),
        None => error.to_string(),
    };
    let mut behind = error.source();
    while let Some(error) = behind {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        behind = error.source();
    }
    text.truncate(text.floor_char_boundary(500));
    text
}
