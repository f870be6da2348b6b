//! Names of AWS's servers, looked up as all others are: no thread is got for it.

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use std::io;

#[derive(Debug, Clone, Copy)]
pub(super) struct Names;

impl ResolveDns for Names {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move {
            // Of an address with its port only the address counts.
            let found = mainstay_net::addresses_of(&format!("{name}:443")).await;
            let found = found.map_err(|error: io::Error| ResolveDnsError::new(error))?;
            Ok(found.into_iter().map(|address| address.ip()).collect())
        })
    }
}
