//! `[api] xmlrpc`: where XML-RPC is spoken, and who may speak it.
//!
//! A socket is for the user who runs the node alone. Over TCP nobody gets in without a password.

use crate::{
    keys::{
        Kind,
        Reload::Live,
        Table,
        api::{file, private, tcp},
        key,
    },
    reader::{Place, Reader, Value},
};
use mainstay_core::plan::{Login, XmlRpcPlan};
use std::path::PathBuf;

/// What the table says, and where it says what is judged as a whole.
#[derive(Default)]
pub(crate) struct XmlRpc {
    plan: XmlRpcPlan,
    listen: Option<Place>,
    user: Option<String>,
    password_file: Option<PathBuf>,
}

pub(crate) static XML_RPC: Table<XmlRpc> = Table {
    keys: &[
        key(
            "listen",
            Kind::Text,
            "",
            Live,
            "Where to listen for TCP connections, ip:port; needs user and password_file.",
            |it, v, r| {
                let text = r.filled(v)?;
                match tcp(&text) {
                    Ok(address) => it.plan.listen = Some(address),
                    Err(help) => return r.wrong(v.span, format!("'{text}' is no address"), help),
                }
                it.listen = Some(r.here(v.span));
                Some(())
            },
        ),
        key(
            "socket",
            Kind::Text,
            "",
            Live,
            "A unix socket, for the user who runs the node.",
            |it, v, r| file(v, r).map(|path| it.plan.socket = Some(path)),
        ),
        key(
            "user",
            Kind::Text,
            "",
            Live,
            "The name that clients have to give, with a password.",
            |it, v, r| {
                let text = r.filled(v)?;
                if text.contains(':') || text.chars().any(char::is_control) {
                    return r.wrong(v.span, "a user has no ':' in the name", "use another name");
                }
                it.user = Some(text);
                Some(())
            },
        ),
        key(
            "password_file",
            Kind::Text,
            "",
            Live,
            "A file with the password: one line, not accessible to others. Read again at every reload.",
            |it, v, r| private(v, r).map(|path| it.password_file = Some(path)),
        ),
    ],
    later: &[],
    refused: &[],
};

/// The table, judged as a whole.
pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<XmlRpcPlan> {
    let mut it = XmlRpc::default();
    let before = r.errors();
    r.nested(v, &XML_RPC, &mut it)?;
    // What is missing may be what was wrong, and that was told.
    if r.errors() > before {
        return None;
    }
    let XmlRpc { mut plan, listen, user, password_file } = it;
    if plan.listen.is_none() && plan.socket.is_none() {
        let help = "add socket = \"/run/supervisor.sock\", or listen = \"127.0.0.1:9001\"";
        return r.wrong(v.span, "nothing says where", help);
    }
    plan.login = match (user, password_file) {
        (Some(user), Some(password_file)) => Some(Login { user, password_file }),
        (None, None) => None,
        (Some(_), None) => {
            return r.wrong(v.span, "a user without a password", "add password_file = \"FILE\"");
        }
        (None, Some(_)) => {
            return r.wrong(v.span, "a password without a user", "add user = \"NAME\"");
        }
    };
    if let (Some(listen), None) = (listen, &plan.login) {
        let help = "add user = \"NAME\" and password_file = \"FILE\"";
        return r.wrong(listen.span, "nothing says who may use it", help);
    }
    if let Some(listen) = listen
        && plan.listen.is_some_and(|address| !address.ip().is_loopback())
    {
        let help = "listen on 127.0.0.1, and reach it by a tunnel";
        r.warn(listen.span, "the password passes the network in clear text", help);
    }
    Some(plan)
}
