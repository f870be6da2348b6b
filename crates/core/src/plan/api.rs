//! `[api]`: where the API listens beside its unix socket, and whom it lets in.

use serde::{Deserialize, Serialize};
// Addresses as values, without sockets.
use ::core::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiPlan {
    /// `None`: only the unix socket.
    pub listen: Option<SocketAddr>,
    /// Holds the token that clients have to know. The plan never holds the token itself.
    pub token_file: Option<PathBuf>,
    pub tls: Option<ApiTls>,
    /// Whoever can connect may do everything.
    pub insecure: bool,
    /// The group that may use the unix socket, too.
    pub socket_group: Option<String>,
}

/// Files in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiTls {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Clients with a certificate of this authority are let in.
    pub client_ca: Option<PathBuf>,
}
