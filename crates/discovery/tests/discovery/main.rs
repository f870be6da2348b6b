//! Catalogues against a real Consul agent, and against directories.

mod secure;
mod services;
mod told;
mod watches;

use told::Told;
