//! A connection, whichever way it leads.

use tokio::io::{AsyncRead, AsyncWrite};

/// What bytes go both ways through.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Over TCP, a unix socket or TLS: whoever uses it need not know.
pub type BoxedStream = Box<dyn Stream>;
