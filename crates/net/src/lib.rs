//! Reaching and being reached: the one HTTP client, the one TLS loader and the one accept loop that
//! every part of a node uses, whatever it says over them.
//!
//! ```text
//!   http::Server ─► connect (names) ─► tls::ClientTls ─► http::Connection ─► answer
//!                                                            ▲ kept open by http::Client
//!   listen::Endpoint: AcceptLoop ─► tls::ServerTls ─► write timeout ─► hyper service
//!                        └─ Connections: so many and no more
//!   peers:            AcceptLoop ─► tls::MutualTls ─► whatever they say to each other
//! ```
//!
//! Names are looked up without holding up anything else, TLS is verified unless somebody wrote down
//! that it need not be, and errors are types that name the cause.
#![forbid(unsafe_code)]

mod backoff;
mod connect;
pub mod files;
pub mod http;
mod judged_writes;
pub mod listen;
mod names;
pub mod percent;
mod stream;
pub mod tls;

pub use backoff::{Backoff, share};
pub use connect::{addresses_of, tcp};
pub use stream::{BoxedStream, Stream};
