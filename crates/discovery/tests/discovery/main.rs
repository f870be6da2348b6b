//! Catalogues against a real Consul agent, and against directories.

mod directory;
mod secure;
mod services;
mod told;
mod watches;

use told::Told;
