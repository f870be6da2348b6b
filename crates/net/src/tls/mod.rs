//! TLS on both sides: certificates and keys are loaded here and nowhere else.
//!
//! A client verifies the server unless the user wrote down that it need not; a server may ask its
//! clients for certificates of an authority. What went wrong is a [`TlsError`].

mod client;
mod error;
mod pem;
mod server;
mod version1;

pub use client::ClientTls;
pub use error::{Distrust, TlsError};
pub(crate) use error::{rejects_certificate, requires_certificate, why_refused};
pub use server::{ServerTls, TlsFiles};
