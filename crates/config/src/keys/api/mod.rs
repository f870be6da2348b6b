//! `[api]`: where the API can be reached beside its unix socket, and by whom.
//!
//! Over TCP nobody gets in without a token or a client certificate, unless the file says in so many
//! words that everybody does.

pub(crate) mod xmlrpc;

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    notation::address,
    reader::{Place, Reader, Value},
};
use mainstay_core::plan::{ApiPlan, ApiTls};
use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// What `[api]` says, and where it says what is judged as a whole.
#[derive(Default)]
pub(crate) struct Api {
    pub(crate) plan: ApiPlan,
    listen: Option<Place>,
    without_listen: Vec<(&'static str, Place)>,
    insecure: Option<Place>,
}

pub(crate) static API: Table<Api> = Table {
    keys: &[
        key(
            "listen",
            Kind::Text,
            "",
            Live,
            "Where to listen for TCP connections, ip:port; needs token_file or tls.client_ca. \
             Default: only the unix socket in the run directory.",
            |api, v, r| {
                let text = r.filled(v)?;
                match tcp(&text) {
                    Ok(address) => api.plan.listen = Some(address),
                    Err(help) => return r.wrong(v.span, format!("'{text}' is no address"), help),
                }
                api.listen = Some(r.here(v.span));
                Some(())
            },
        ),
        key(
            "token_file",
            Kind::Text,
            "",
            Live,
            "A file with the token that clients send (`Authorization: Bearer`): one line of 16 \
             characters at least, not accessible to others. Read again at every reload.",
            |api, v, r| {
                api.without_listen.push(("token_file", r.here(v.span)));
                private(v, r).map(|it| api.plan.token_file = Some(it))
            },
        ),
        key(
            "tls",
            Kind::Table,
            "",
            Live,
            "Encrypts connections, and may let in by client certificate.",
            |api, v, r| {
                api.without_listen.push(("tls", r.here(v.span)));
                let mut tls = ApiTls::default();
                r.nested(v, &TLS, &mut tls)?;
                for (name, path) in [("cert", &tls.cert), ("key", &tls.key)] {
                    if path.as_os_str().is_empty() {
                        let help = format!("add {name} = \"FILE\", in PEM");
                        return r.wrong(v.span, format!("'{name}' is missing"), help);
                    }
                }
                api.plan.tls = Some(tls);
                Some(())
            },
        ),
        key(
            "insecure",
            Kind::Bool,
            "false",
            Live,
            "Lets everybody in who can connect: whoever reaches the address may run commands as the \
             users of the jobs.",
            |api, v, r| {
                api.insecure = Some(r.here(v.span));
                r.boolean(v).map(|it| api.plan.insecure = it)
            },
        ),
        key(
            "socket_group",
            Kind::Account,
            "",
            Live,
            "The group that may use the unix socket, too; default: only the user who runs the node.",
            |api, v, r| r.account(v).map(|it| api.plan.socket_group = Some(it)),
        ),
        key(
            "xmlrpc",
            Kind::Table,
            "",
            Live,
            "Speaks XML-RPC as Supervisor does, for supervisorctl and what was made for it.",
            |api, v, r| xmlrpc::read(v, r).map(|it| api.plan.xmlrpc = Some(it)),
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) static TLS: Table<ApiTls> = Table {
    keys: &[
        key(
            "cert",
            Kind::Text,
            "",
            Live,
            "The certificate of the node and those it was issued by, in PEM. Read again at every \
             reload.",
            |tls, v, r| present(v, r).map(|it| tls.cert = it),
        ),
        key("key", Kind::Text, "", Live, "Its private key, in PEM.", |tls, v, r| {
            private(v, r).map(|it| tls.key = it)
        }),
        key(
            "client_ca",
            Kind::Text,
            "",
            Live,
            "Clients with a certificate of this authority are let in, in PEM.",
            |tls, v, r| present(v, r).map(|it| tls.client_ca = Some(it)),
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn tcp(text: &str) -> Result<SocketAddr, String> {
    let written = address::parse(text)?;
    let address: SocketAddr = written.parse().map_err(|_| "write ip:port or [ip6]:port")?;
    if address.port() == 0 {
        return Err("write a port from 1 to 65535: clients have to know it".to_owned());
    }
    Ok(address)
}

/// A file beside the configuration, or wherever its path leads.
pub(crate) fn file(v: Value<'_>, r: &mut Reader<'_>) -> Option<PathBuf> {
    let text = r.filled(v)?;
    let path = r.directory().join(text);
    Some(std::path::absolute(&path).unwrap_or(path))
}

/// It may be on the machine that runs the node and not on the one that checks.
fn present(v: Value<'_>, r: &mut Reader<'_>) -> Option<PathBuf> {
    let path = file(v, r)?;
    if let Err(error) = fs::metadata(&path) {
        let help = "the API does not listen until it can be read";
        r.warn(v.span, format!("cannot look at {}: {error}", path.display()), help);
    }
    Some(path)
}

/// What such a file holds is worth as much as the node.
pub(super) fn private(v: Value<'_>, r: &mut Reader<'_>) -> Option<PathBuf> {
    let path = present(v, r)?;
    if is_accessible(&path, 0o007) {
        let shown = path.display();
        let help = format!("keep it to those who may use it: chmod o= {shown}");
        return r.wrong(v.span, format!("{shown} is accessible to everybody"), help);
    }
    Some(path)
}

/// Whether others may use it: those that the bits of a mode stand for.
pub(crate) fn is_accessible(path: &Path, to: u32) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & to != 0)
}

/// What can only be said about the whole table.
pub(crate) fn judge(r: &mut Reader<'_>, api: Api) -> ApiPlan {
    let Api { plan, listen, without_listen, insecure } = api;
    let Some(listen) = listen else {
        // A wrong address was told already.
        let lonely = without_listen.first().filter(|_| r.errors() == 0);
        if let Some((name, at)) = lonely {
            r.file = at.file;
            r.within("api", |r| {
                let help = "add listen = \"127.0.0.1:7070\", or remove it";
                r.wrong::<()>(at.span, format!("'{name}' without listen does nothing"), help)
            });
        }
        return plan;
    };
    let keyed = without_listen.iter().any(|(name, _)| *name == "token_file")
        || plan.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    r.file = listen.file;
    let loopback = plan.listen.is_some_and(|address| address.ip().is_loopback());
    match (keyed, insecure.filter(|_| plan.insecure)) {
        (false, None) => {
            let help = "add token_file = \"FILE\", or tls = { cert, key, client_ca }; only where \
                        everybody may do everything: insecure = true";
            r.within("api.listen", |r| {
                r.wrong::<()>(listen.span, "nothing says who may use it", help)
            });
        }
        (true, Some(at)) => {
            r.file = at.file;
            let help = "remove insecure, or the token and the client certificates";
            r.within("api.insecure", |r| {
                let message = "everybody is let in, and not everybody";
                match without_listen.iter().find(|(name, _)| *name == "token_file") {
                    Some((_, token)) => {
                        let token = (*token, "only those with the token");
                        r.wrong_beside::<()>(at.span, token, message, help)
                    }
                    None => r.wrong(at.span, message, help),
                }
            });
        }
        (false, Some(_)) if !loopback => {
            let help = "use token_file or client certificates, or listen on 127.0.0.1";
            r.within("api.insecure", |r| {
                r.warn(listen.span, "whoever reaches this address may run commands here", help)
            });
        }
        (true, None) if plan.tls.is_none() && !loopback => {
            let help = "add tls = { cert = \"FILE\", key = \"FILE\" }";
            r.within("api.listen", |r| {
                r.warn(listen.span, "the token passes the network in clear text", help)
            });
        }
        (false, Some(_)) | (true, None) => {}
    }
    plan
}
