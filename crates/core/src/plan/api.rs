//! `[api]`: where the API listens beside its unix socket, and whom it lets in.

use super::{Listen, Plan};
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
    #[serde(default, with = "crate::text::path")]
    pub token_file: Option<PathBuf>,
    pub tls: Option<ApiTls>,
    /// Whoever can connect may do everything.
    pub insecure: bool,
    /// The group that may use the unix socket, too.
    pub socket_group: Option<String>,
    /// Where XML-RPC is spoken as Supervisor speaks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xmlrpc: Option<XmlRpcPlan>,
}

/// `[api] xmlrpc`: at one of its places at least.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XmlRpcPlan {
    /// `ip:port`
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// A unix socket.
    #[serde(default, with = "crate::text::path")]
    pub socket: Option<PathBuf>,
    /// Who may come in; `None`: whoever can connect.
    #[serde(default)]
    pub login: Option<Login>,
}

/// A user, and where the password is. The plan never holds the password itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub user: String,
    #[serde(with = "crate::text::path")]
    pub password_file: PathBuf,
}

/// Files in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiTls {
    #[serde(with = "crate::text::path")]
    pub cert: PathBuf,
    #[serde(with = "crate::text::path")]
    pub key: PathBuf,
    /// Clients with a certificate of this authority are let in.
    #[serde(default, with = "crate::text::path")]
    pub client_ca: Option<PathBuf>,
}

/// What is to be open besides the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Where telemetry is shown.
    pub telemetry: Option<Listen>,
    /// The socket that speaks as ContainerPilot's does.
    pub containerpilot: Option<PathBuf>,
    /// Where XML-RPC is spoken.
    pub xmlrpc: Option<XmlRpcPlan>,
}

impl Listeners {
    #[must_use]
    pub fn of(plan: &Plan) -> Listeners {
        Listeners {
            telemetry: plan.telemetry.as_ref().map(|telemetry| telemetry.listen.clone()),
            containerpilot: plan.containerpilot.as_ref().and_then(|pilot| pilot.socket.clone()),
            xmlrpc: plan.api.xmlrpc.clone(),
        }
    }
}
