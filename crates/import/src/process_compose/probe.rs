//! `readiness_probe` and `liveness_probe`: checks of a job.

use super::ProcessDefaults;
use crate::{
    draft::{Table, inline, list, literal, pair, quoted},
    yaml::YamlNode,
};
use mainstay_config::is_host;

const MOST_HEADERS: usize = 100;

/// A check as an inline table, or a note why there is none.
pub(super) fn check(
    table: &mut Table,
    defaults: &ProcessDefaults,
    kind: &str,
    node: &YamlNode,
) -> Option<String> {
    let mut pairs = match (node.get("exec"), node.get("http_get")) {
        (Some(exec), _) => exec_of(table, defaults, kind, exec)?,
        (None, Some(http)) => http_of(table, kind, http)?,
        (None, None) => {
            table.note(node.line, format!("{kind} is left out: neither exec nor http_get"));
            return None;
        }
    };
    let name = if kind == "liveness_probe" { "live" } else { "ready" };
    pairs.push(pair("name", quoted(name)));
    let seconds = |key: &str, default: u32| {
        node.get(key)
            .and_then(YamlNode::number)
            .filter(|it| (1..=1_000_000).contains(it))
            .unwrap_or(default)
    };
    pairs.push(pair("interval", quoted(&format!("{}s", seconds("period_seconds", 10)))));
    pairs.push(pair("timeout", quoted(&format!("{}s", seconds("timeout_seconds", 1)))));
    let delay = node.get("initial_delay_seconds").and_then(YamlNode::number).unwrap_or_default();
    if (1..=1_000_000).contains(&delay) {
        pairs.push(pair("start_period", quoted(&format!("{delay}s"))));
    }
    let rise = seconds("success_threshold", 1);
    if rise > 1 {
        pairs.push(pair("rise", rise.to_string()));
    }
    pairs.push(pair("fall", seconds("failure_threshold", 3).to_string()));
    if kind == "liveness_probe" {
        table.note(
            node.line,
            "liveness_probe: a failing check makes the job unhealthy and does not restart it",
        );
    }
    Some(inline(&pairs))
}

fn exec_of(
    table: &mut Table,
    defaults: &ProcessDefaults,
    kind: &str,
    exec: &YamlNode,
) -> Option<Vec<(String, String)>> {
    let Some(command) = exec.get("command").and_then(YamlNode::text).filter(|it| !it.is_empty())
    else {
        table.note(exec.line, format!("{kind} is left out: it has no command"));
        return None;
    };
    let command = match exec.get("working_dir").and_then(YamlNode::text) {
        Some(dir) => format!("cd '{}' && {command}", dir.replace('\'', r"'\''")),
        None => command.to_owned(),
    };
    let words = [defaults.shell[0].as_str(), &defaults.shell[1], &command];
    Some(vec![pair("exec", list(words.map(literal)))])
}

fn http_of(table: &mut Table, kind: &str, node: &YamlNode) -> Option<Vec<(String, String)>> {
    let text = |key: &str, default: &str| {
        node.get(key).and_then(YamlNode::text).unwrap_or(default).to_owned()
    };
    let (scheme, host) = (text("scheme", "http"), text("host", "127.0.0.1"));
    let path = text("path", "/");
    let port = node.get("port").map(YamlNode::number);
    let valid_path = path.bytes().all(|b| b.is_ascii_graphic()) && !path.contains("${");
    let valid_port =
        !matches!(port, Some(None)) && port.flatten().is_none_or(|it| (1..=65535).contains(&it));
    if !["http", "https"].contains(&scheme.as_str())
        || !is_host(&host)
        || !valid_port
        || !valid_path
    {
        table.note(node.line, format!("{kind} is left out: its http_get is no plain URL"));
        return None;
    }
    let port = port.flatten().map(|port| format!(":{port}")).unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let url = quoted(&format!("{scheme}://{host}{port}{slash}{path}"));
    let mut long = vec![pair("url", url.clone())];
    if let Some(code) =
        node.get("status_code").and_then(YamlNode::number).filter(|it| (100..=599).contains(it))
    {
        long.push(pair("status", code.to_string()));
    }
    let headers = node.get("headers").map(|it| headers(table, kind, it)).unwrap_or_default();
    if !headers.is_empty() {
        long.push(pair("headers", inline(&headers)));
    }
    for (key, child) in node.map() {
        if !["headers", "scheme", "host", "path", "port", "status_code"].contains(&key.as_str()) {
            table.note(child.line, format!("{kind}: '{key}' is not mapped"));
        }
    }
    let http = if long.len() == 1 { url } else { inline(&long) };
    Some(vec![pair("http", http)])
}

/// What can be sent.
fn headers(table: &mut Table, kind: &str, node: &YamlNode) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, child) in node.map() {
        let word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let value = child.text().filter(|it| !it.chars().any(char::is_control));
        match value {
            Some(value) if word && all.len() < MOST_HEADERS => {
                all.push(pair(name, literal(value)));
            }
            _ => table.note(child.line, format!("{kind}: header '{name}' is left out")),
        }
    }
    all
}
