//! TLS on both sides: certificates and keys are loaded here and nowhere else.
//!
//! A client verifies the server unless the user wrote down that it need not; a server may ask its
//! clients for certificates of an authority. Equals, whose certificates are made in memory, have
//! [`MutualTls`] in both directions. What went wrong is a [`TlsError`].

mod client;
mod error;
mod mutual;
mod pem;
mod server;
mod version1;

pub use client::ClientTls;
pub use error::{Distrust, TlsError};
pub(crate) use error::{rejects_certificate, requires_certificate, why_refused};
pub use mutual::{Authorities, CertifiedKey, MutualStream, MutualTls};
pub use server::{ServerTls, TlsFiles};
