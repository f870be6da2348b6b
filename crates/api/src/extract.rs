//! Bodies, paths and queries, read strictly: what is not understood is refused.

use crate::problem::Problem;
use axum::{
    body::Bytes,
    extract::{self, FromRequest, FromRequestParts, Path, Request},
    http::request::Parts,
};
use mainstay_net::listen::{BodyError, BodyLimits, read_body};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use std::time::Duration;

const LIMITS: BodyLimits = BodyLimits { longest: 1 << 20, time: Duration::from_secs(10) };

/// An empty body or query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// `here=true`: this node alone, whatever its fleet says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HereQuery {
    #[serde(default, deserialize_with = "flag")]
    pub(crate) here: bool,
}

/// A word of a query that is set or not: `1` or `true`, `0` or `false`.
pub(crate) fn flag<'de, D: Deserializer<'de>>(word: D) -> Result<bool, D::Error> {
    match String::deserialize(word)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        other => Err(D::Error::custom(format!("'{other}' is neither true nor false"))),
    }
}

/// A JSON body; an empty one stands for `{}`.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Body<T>, Problem> {
        let bytes = bytes(request).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // A list of values would be taken for the fields in their order.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::bad_request("the body is not understood: it is no JSON object"));
        }
        serde_json::from_slice(text)
            .map(Body)
            .map_err(|error| Problem::bad_request(format!("the body is not understood: {error}")))
    }
}

/// All of a body, in time.
pub(crate) async fn bytes(request: Request) -> Result<Bytes, Problem> {
    read_body(request.into_body(), LIMITS).await.map_err(|error| match error {
        BodyError::TooLong | BodyError::BrokenOff => Problem::too_long(),
        BodyError::TooSlow => Problem::too_slow(),
    })
}

/// The query string.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Problem> {
        extract::Query::try_from_uri(&parts.uri).map(|extract::Query(query)| Query(query)).map_err(
            |error| {
                Problem::bad_request(format!("the query is not understood: {}", error.body_text()))
            },
        )
    }
}

/// The name in the path.
pub(crate) struct PathName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathName, Problem> {
        Path::from_request_parts(parts, state).await.map(|Path(name)| PathName(name)).map_err(
            |error| {
                Problem::bad_request(format!("the path is not understood: {}", error.body_text()))
            },
        )
    }
}
