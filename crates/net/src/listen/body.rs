//! The body of a request, as much of it as is wanted and no longer than it is waited for.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use std::{error::Error as StdError, time::Duration};
use thiserror::Error;
use tokio::time::timeout;

/// What the body of a request may cost.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    pub longest: usize,
    /// For all of it.
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    #[error("the body is too long")]
    TooLong,
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body breaks off")]
    BrokenOff,
}

/// # Errors
/// When it is too long, too slow, or not there as a whole.
pub async fn read_body<B>(body: B, limits: BodyLimits) -> Result<Bytes, BodyError>
where
    B: Body<Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    match timeout(limits.time, Limited::new(body, limits.longest).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong),
        Ok(Err(_)) => Err(BodyError::BrokenOff),
        Err(_) => Err(BodyError::TooSlow),
    }
}
