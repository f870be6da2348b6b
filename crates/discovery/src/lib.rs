//! Everything that talks to service discovery, and nothing that decides.
//!
//! A [`Catalogue`] takes what is wanted (these services with this standing, those watches) and
//! works towards it in the background, each service and each watch by itself; what it finds comes
//! back as [`Report`]s. Whoever holds it never waits. Dropped, it ends what it has under way, and
//! leaves announced services to their ttl. [`Documents`] are files that are watched in the same way.

mod backoff;
mod catalogue;
mod consul;
mod document;
mod driver;
mod file;
mod service;
mod trouble;
mod watch_task;

pub use catalogue::{About, Catalogue, Report};
pub use document::Documents;
pub use mainstay_core::{
    discovery::{
        Backend, Consul, FileCatalogue, Instance, InstanceList, Query, Registration, Standing, Tls,
    },
    interface::{InterfaceSpec, NoAddress, choose},
    text::Secret,
};
pub use mainstay_sys::interface::addresses;
