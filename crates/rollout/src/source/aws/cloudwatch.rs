//! CloudWatch: one value of a metric, as a form that is signed. For this one call its own SDK would
//! be as large as all else of AWS together.

use super::{AwsPlace, LIMIT, told};
use crate::source::{
    SourceError,
    request::{Ask, server_of},
};
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningError, SigningSettings, sign},
    sign::v4,
};
use aws_smithy_runtime_api::client::identity::Identity;
use mainstay_core::plan::CloudWatchPlan;
use mainstay_net::{
    http::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, Uri, header},
    percent,
};
use std::time::SystemTime;
use tokio::time::timeout;

/// The name that a signature has for it, and the beginning of its host's.
const SERVICE: &str = "monitoring";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

impl AwsPlace {
    pub(in crate::source) async fn publish(
        &self,
        metric: &CloudWatchPlan,
        value: u8,
    ) -> Result<(), SourceError> {
        let published = timeout(LIMIT, self.put_metric(metric, value)).await;
        published.unwrap_or_else(|_| Err(unpublished(format!("no answer within {LIMIT:?}"))))
    }

    async fn put_metric(&self, metric: &CloudWatchPlan, value: u8) -> Result<(), SourceError> {
        let config = self.config().await;
        let region = config.region().ok_or_else(|| unpublished("no region is known".to_owned()))?;
        let region = region.as_ref();
        let url = config.endpoint_url().map_or_else(|| endpoint(region), ToOwned::to_owned);
        let uri: Uri = url.parse().map_err(|_| SourceError::Url(url.clone()))?;
        let provider = config.credentials_provider();
        let provider =
            provider.ok_or_else(|| unpublished("there are no credentials".to_owned()))?;
        let found = provider.provide_credentials().await;
        let found = found.map_err(|error| unpublished(told(&error, None)))?;
        let body = form(metric, value);
        let headers = signed(&uri, region, &found.into(), &body)?;
        let server = server_of(&uri, None, "SSL_CERT_FILE")?;
        let ask = Ask::of(&uri, Method::POST, headers, Bytes::from(body))?;
        let (status, _, answer) = ask.put(&server, None).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(unpublished(format!("{}{}", status.as_u16(), reason(&answer)))),
        }
    }
}

fn endpoint(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://{SERVICE}.{region}.{domain}/")
}

fn form(metric: &CloudWatchPlan, value: u8) -> String {
    const DATUM: &str = "MetricData.member.1";
    let mut pairs = vec![
        ("Action".to_owned(), "PutMetricData".to_owned()),
        ("Version".to_owned(), "2010-08-01".to_owned()),
        ("Namespace".to_owned(), metric.namespace.clone()),
        (format!("{DATUM}.MetricName"), metric.name.clone()),
        (format!("{DATUM}.Value"), value.to_string()),
        (format!("{DATUM}.Unit"), "Count".to_owned()),
    ];
    for (number, (name, value)) in (1..).zip(&metric.dimensions) {
        let dimension = format!("{DATUM}.Dimensions.member.{number}");
        pairs.push((format!("{dimension}.Name"), name.clone()));
        pairs.push((format!("{dimension}.Value"), value.clone()));
    }
    let coded = pairs.iter().map(|(name, value)| format!("{name}={}", percent::segment(value)));
    coded.collect::<Vec<_>>().join("&")
}

fn signed(
    uri: &Uri,
    region: &str,
    identity: &Identity,
    body: &str,
) -> Result<HeaderMap, SourceError> {
    let unsigned = |error: SigningError| unpublished(told(&error, None));
    let params = v4::SigningParams::builder()
        .identity(identity)
        .region(region)
        .name(SERVICE)
        .time(SystemTime::now())
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| unpublished(told(&error, None)))?
        .into();
    let headers = [(header::CONTENT_TYPE.as_str(), FORM)];
    let body = SignableBody::Bytes(body.as_bytes());
    let request = SignableRequest::new("POST", uri.to_string(), headers.into_iter(), body);
    let request = request.map_err(unsigned)?;
    let (instructions, _) = sign(request, &params).map_err(unsigned)?.into_parts();
    let mut all = HeaderMap::new();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static(FORM));
    for (name, value) in instructions.headers() {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            all.insert(name, value);
        }
    }
    Ok(all)
}

/// What the answer says of itself: XML, of which one element is for people.
fn reason(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let after = text.split_once("<Message>").map(|(_, after)| after);
    let message = after.and_then(|it| it.split_once("</Message>")).map(|(message, _)| message);
    message.map_or_else(String::new, |it| {
        let mut text = format!(": {it}");
        text.truncate(text.floor_char_boundary(200));
        text
    })
}

fn unpublished(why: String) -> SourceError {
    SourceError::CloudWatch { why }
}
