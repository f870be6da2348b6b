//! `consul`: where services are advertised and looked for. What its client library takes from the
//! environment goes over what the file says, as before.

use super::{
    json5::{Json5Node, Json5Value},
    reader::{Case, Fields, Reader, Span, truth},
};
use crate::draft::{Table, inline, literal, pair, quoted};
use std::collections::BTreeMap;

const KEYS: &[&str] = &["address", "scheme", "token", "tls"];
const TLS_KEYS: &[&str] = &["cafile", "capath", "clientcert", "clientkey", "servername", "verify"];
/// Their key, ours, and the variable that goes over both.
const TLS: [(&str, &str, &str); 5] = [
    ("cafile", "ca_file", "CONSUL_CACERT"),
    ("capath", "ca_path", "CONSUL_CAPATH"),
    ("clientcert", "cert", "CONSUL_CLIENT_CERT"),
    ("clientkey", "key", "CONSUL_CLIENT_KEY"),
    ("servername", "server_name", "CONSUL_TLS_SERVER_NAME"),
];
const TOKEN: &str = "CONSUL_HTTP_TOKEN";
const VERIFY: &str = "CONSUL_HTTP_SSL_VERIFY";
const ADDRESS: &str = "CONSUL_HTTP_ADDR";
const DEFAULT: &str = "127.0.0.1:8500";

type Env = BTreeMap<String, String>;

/// The table `[discovery]`; `None`: there is no Consul, or it could not be read.
pub(super) fn read(
    r: &mut Reader<'_>,
    node: &Json5Node,
    at: Span,
    env: &Env,
    file: &str,
) -> Option<Table> {
    let mut table = Table::new("discovery", file).at(at);
    table.set("engine", quoted("consul"));
    let fields = match &node.value {
        Json5Value::Text(text) => {
            address(r, &mut table, text, None, &node.span, env)?;
            None
        }
        Json5Value::Map(_) => {
            let fields = r.fields(node, "consul", KEYS, Case::Any)?;
            let (text, span) = match fields.filled("address") {
                Some(node) => (r.text(node, "address of consul")?, node.span.clone()),
                None => (String::new(), node.span.clone()),
            };
            let scheme = match fields.filled("scheme") {
                Some(node) => Some((r.text(node, "scheme of consul")?, node.span.clone())),
                None => None,
            };
            address(r, &mut table, &text, scheme, &span, env)?;
            Some(fields)
        }
        _ => {
            let message = "consul is neither text nor an object";
            return r.wrong(&node.span, message, "write \"localhost:8500\", or { address: … }");
        }
    };
    let written = fields.as_ref().and_then(|fields| fields.filled("token"));
    let token = written.and_then(|node| r.text(node, "token of consul"));
    if let Some(token) = over(TOKEN, token, env) {
        table.set_at("token", token, written.map_or(&node.span, |node| &node.span).clone());
    }
    tls(r, &mut table, fields.as_ref(), env, node);
    Some(table)
}

/// A value that a variable goes over, as TOML.
fn over(variable: &str, value: Option<String>, env: &Env) -> Option<String> {
    let set = env.get(variable).is_some_and(|value| !value.is_empty());
    match (set, value) {
        // The value of the variable stays where it is: it may be a secret.
        (true, Some(value)) if !value.contains(['}', '$', '{', '\\', '"']) => {
            Some(quoted(&format!("${{{variable}:-{value}}}")))
        }
        (true, _) => Some(quoted(&format!("${{{variable}}}"))),
        (false, Some(value)) => Some(literal(&value)),
        (false, None) => None,
    }
}

/// Sets `address` and `scheme`.
fn address(
    r: &mut Reader<'_>,
    table: &mut Table,
    text: &str,
    scheme: Option<(String, Span)>,
    span: &Span,
    env: &Env,
) -> Option<()> {
    let set = env.get(ADDRESS).filter(|_| text.is_empty()).filter(|it| !it.is_empty());
    let text = match (set, text.is_empty()) {
        (Some(address), _) => address.as_str(),
        (None, true) => DEFAULT,
        (None, false) => text,
    };
    if text == DEFAULT && set.is_none() && span.is_empty() {
        table.note(r.line(span), format!("consul has no address: {DEFAULT}"));
    }
    let (written, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_owned()), rest),
        None => (None, text),
    };
    let (scheme, scheme_at) = match (written, scheme) {
        (Some(scheme), _) => (scheme, span.clone()),
        (None, Some((scheme, at))) => (scheme.to_ascii_lowercase(), at),
        (None, None) => ("http".to_owned(), span.clone()),
    };
    if !matches!(scheme.as_str(), "http" | "https") {
        let message = format!("'{scheme}' is not how Consul is spoken to");
        return r.wrong(&scheme_at, message, "use http or https");
    }
    let rest = rest.trim_end_matches('/');
    let (host, port) = match rest.rsplit_once(':') {
        // An IPv6 address in brackets has colons of its own.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let port = match port.map(str::parse::<u16>) {
        Some(Ok(port)) if port > 0 => port,
        None => {
            let port = if scheme == "https" { 443 } else { 80 };
            let message =
                format!("consul has no port: {port}, as before; it mostly listens at 8500");
            table.note(r.line(span), message);
            port
        }
        Some(_) => {
            let message = format!("'{text}' is not an address of Consul");
            return r.wrong(span, message, "write host:port, for example \"localhost:8500\"");
        }
    };
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if !host.chars().all(plain) {
        let message = format!("'{text}' is not an address of Consul");
        return r.wrong(span, message, "write host:port, for example \"localhost:8500\"");
    }
    let host = if host.is_empty() {
        let message = "consul has no host: 127.0.0.1, as before";
        table.note(r.line(span), message);
        "127.0.0.1"
    } else {
        host
    };
    table.set_at("address", quoted(&format!("{host}:{port}")), span.clone());
    if scheme == "https" {
        table.set_at("scheme", quoted("https"), scheme_at);
    }
    Some(())
}

fn tls(
    r: &mut Reader<'_>,
    table: &mut Table,
    fields: Option<&Fields<'_>>,
    env: &Env,
    at: &Json5Node,
) {
    let node = fields.and_then(|fields| fields.get("tls"));
    let block = node.and_then(|node| r.fields(node, "tls of consul", TLS_KEYS, Case::Any));
    let mut pairs = Vec::new();
    for (theirs, ours, variable) in TLS {
        let value = block.as_ref().and_then(|block| block.filled(theirs));
        let value = value.and_then(|node| r.text(node, &format!("{theirs} of consul")));
        if let Some(value) = over(variable, value, env) {
            pairs.push(pair(ours, value));
        }
    }
    let verify = block.as_ref().and_then(|block| block.get("verify"));
    let verify = verify.and_then(|node| r.boolean(node, "verify of consul"));
    let verify = match env.get(VERIFY).filter(|value| !value.is_empty()) {
        None => verify,
        Some(value) => match truth(value) {
            Some(verify) => Some(verify),
            None => {
                let message = format!("the variable {VERIFY} is '{value}'");
                r.wrong(&at.span, message, "set it to true or false")
            }
        },
    };
    if let Some(verify) = verify {
        pairs.push(pair("verify", verify.to_string()));
    }
    let line = r.line(node.map_or(&at.span, |node| &node.span));
    if !table.has("scheme") {
        if node.is_some() {
            table.note(line, "tls means nothing over http, as before: write scheme: \"https\"");
        }
        return;
    }
    if verify.is_none() {
        let message = "certificates are verified; 3.8.0 did not unless verify was true. verify: \
                       false turns it off";
        table.note(line, message);
    }
    if !pairs.is_empty() {
        let span = node.map_or(&at.span, |node| &node.span).clone();
        table.set_at("tls", inline(&pairs), span);
    }
}
