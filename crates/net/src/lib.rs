//! Reaching servers as a client: names that are looked up without holding up anything else, and TLS
//! that is verified unless somebody wrote down that it need not be.

mod connect;
mod tls;

pub use connect::{tcp, to};
pub use tls::Secure;
