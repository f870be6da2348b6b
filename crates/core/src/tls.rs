//! How a server proves itself to us, and we to it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// Certificates to trust instead of the machine's.
    #[serde(default, with = "crate::text::path")]
    pub ca_file: Option<PathBuf>,
    /// A directory of such files.
    #[serde(default, with = "crate::text::path")]
    pub ca_path: Option<PathBuf>,
    /// Our own certificate and its key.
    #[serde(default, with = "crate::text::path")]
    pub cert: Option<PathBuf>,
    #[serde(default, with = "crate::text::path")]
    pub key: Option<PathBuf>,
    /// The name in the server's certificate, where it is not the host of the address.
    pub server_name: Option<String>,
    pub verify: bool,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls { ca_file: None, ca_path: None, cert: None, key: None, server_name: None, verify: true }
    }
}
