//! Why a request has no answer.

use crate::tls::{self, TlsError};
use std::{error::Error as StdError, fmt, io, time::Duration};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum HttpError {
    #[error("cannot connect to {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The connection broke, or what came over it is no HTTP.
    #[error("{}", Exchange { address, source })]
    Exchange {
        address: String,
        /// Whether the request cannot have reached the server as a whole.
        unsent: bool,
        source: hyper::Error,
    },
    #[error("the answer of {address} breaks off: {source}")]
    BrokenOff { address: String, source: Box<dyn StdError + Send + Sync> },
    #[error("no answer from {address} within {limit:?}")]
    Slow { address: String, limit: Duration },
}

impl HttpError {
    /// Whether no server has acted on the request.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            HttpError::Connect { .. } | HttpError::Tls(_) => true,
            HttpError::Exchange { unsent, .. } => *unsent,
            HttpError::BrokenOff { .. } | HttpError::Slow { .. } => false,
        }
    }

    /// What the operating system would have called it.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            HttpError::Connect { source, .. }
            | HttpError::Tls(TlsError::Handshake { source, .. }) => Some(source.kind()),
            HttpError::Tls(_) => None,
            HttpError::Exchange { source, .. } if source.is_canceled() => {
                Some(io::ErrorKind::BrokenPipe)
            }
            HttpError::Exchange { source, .. } => io_kind(source),
            HttpError::BrokenOff { source, .. } => io_kind(source.as_ref()),
            HttpError::Slow { .. } => Some(io::ErrorKind::TimedOut),
        }
    }

    /// Whether the server lets nobody in without a certificate, and got none.
    #[must_use]
    pub fn requires_certificate(&self) -> bool {
        match self {
            HttpError::Connect { source, .. }
            | HttpError::Tls(TlsError::Handshake { source, .. }) => {
                tls::requires_certificate(source)
            }
            HttpError::Exchange { source, .. } => tls::requires_certificate(source),
            HttpError::BrokenOff { source, .. } => tls::requires_certificate(source.as_ref()),
            HttpError::Tls(_) | HttpError::Slow { .. } => false,
        }
    }
}

fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return Some(io::ErrorKind::UnexpectedEof);
        }
        next = error.source();
    }
    None
}

/// With what is behind it: a server that wants a certificate of ours says so only there.
struct Exchange<'a> {
    address: &'a str,
    source: &'a hyper::Error,
}

impl fmt::Display for Exchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the exchange with {} failed: {}", self.address, self.source)?;
        let mut behind = self.source.source();
        while let Some(error) = behind {
            write!(f, ": {error}")?;
            behind = error.source();
        }
        match tls::rejects_certificate(self.source) {
            true => f.write_str(
                "; if it wants a certificate of ours, name it with tls.cert and tls.key",
            ),
            false => Ok(()),
        }
    }
}
