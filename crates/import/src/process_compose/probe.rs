//! `readiness_probe` and `liveness_probe`: checks of a job.

use super::{Project, process::Process};
use crate::{
    draft::{Draft, inline, list, pair, quoted},
    yaml::YamlNode,
};
use mainstay_config::is_host;

const MOST_SECONDS: u32 = 1_000_000;

/// A check as an inline table, unless there is something wrong with it.
pub(super) fn check(
    process: &Process<'_>,
    project: &mut Project<'_>,
    draft: &mut Draft,
    kind: &str,
    node: &YamlNode,
) -> Option<String> {
    let mut pairs = match (node.get("exec"), node.get("http_get")) {
        (Some(exec), _) => exec_of(process, project, kind, exec)?,
        (None, Some(http)) => http_of(process, project, kind, http)?,
        (None, None) => {
            project
                .wrong(node, format!("'{}': {kind} has neither exec nor http_get", process.name));
            return None;
        }
    };
    let name = if kind == "liveness_probe" { "live" } else { "ready" };
    pairs.push(pair("name", quoted(name)));
    let seconds = |key: &str, default: u32| {
        let number = node.get(key).and_then(|it| project.variables.number(it));
        number.filter(|it| (1..=MOST_SECONDS).contains(it)).unwrap_or(default)
    };
    pairs.push(pair("interval", quoted(&format!("{}s", seconds("period_seconds", 10)))));
    pairs.push(pair("timeout", quoted(&format!("{}s", seconds("timeout_seconds", 1)))));
    let delay = seconds("initial_delay_seconds", 0);
    if delay > 0 {
        pairs.push(pair("delay", quoted(&format!("{delay}s"))));
    }
    let rise = seconds("success_threshold", 1);
    if rise > 1 {
        pairs.push(pair("rise", rise.to_string()));
    }
    pairs.push(pair("fall", seconds("failure_threshold", 3).to_string()));
    if kind == "readiness_probe" {
        let message =
            "readiness_probe: one that fails makes the job unhealthy, and does not stop it";
        draft.gather(project.file(node), node.line, message);
    }
    Some(inline(&pairs))
}

fn exec_of(
    process: &Process<'_>,
    project: &mut Project<'_>,
    kind: &str,
    exec: &YamlNode,
) -> Option<Vec<(String, String)>> {
    let Some(command) = exec.get("command").filter(|it| it.text().is_some_and(|it| !it.is_empty()))
    else {
        project.wrong(exec, format!("'{}': {kind} has no command", process.name));
        return None;
    };
    let command = process.written(project, command)?;
    let command = match exec.get("working_dir").and_then(YamlNode::text) {
        Some(dir) => {
            let dir = project.variables.written(dir).replace('\'', r"'\''");
            format!("cd '{dir}' && {command}")
        }
        None => command,
    };
    let shell = project.shell.clone().map(|word| word.replace("${", "$${"));
    let words = [&shell[0], &shell[1], &command];
    Some(vec![pair("exec", list(words.map(|word| quoted(word))))])
}

fn http_of(
    process: &Process<'_>,
    project: &mut Project<'_>,
    kind: &str,
    node: &YamlNode,
) -> Option<Vec<(String, String)>> {
    let mut part = |key: &str, default: &str| -> Option<(String, String)> {
        let text = match node.get(key) {
            Some(part) if part.text().is_some() => process.rendered(project, part)?,
            _ => default.to_owned(),
        };
        let now = project.variables.now(&text);
        match now.trim().is_empty() {
            true => Some((default.to_owned(), default.to_owned())),
            false => Some((project.variables.written(&text), now)),
        }
    };
    let (scheme, scheme_now) = part("scheme", "http")?;
    let (host, host_now) = part("host", "127.0.0.1")?;
    let (path, path_now) = part("path", "/")?;
    let (port, port_now) = part("port", "")?;
    let valid_port = port_now.is_empty() || port_now.parse::<u16>().is_ok_and(|port| port > 0);
    let valid_path = path_now.bytes().all(|b| b.is_ascii_graphic());
    let valid_scheme = ["http", "https"].contains(&scheme_now.as_str());
    if !valid_scheme || !is_host(&host_now) || !valid_port || !valid_path {
        let url = format!("{scheme_now}://{host_now}:{port_now}{path_now}");
        let message = format!("'{}': {kind}: '{url}' is no URL that can be asked", process.name);
        project.wrong(node, message);
        return None;
    }
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    let slash = if path_now.starts_with('/') { "" } else { "/" };
    let url = quoted(&format!("{scheme}://{host}{port}{slash}{path}"));
    let mut long = vec![pair("url", url.clone())];
    let code = node.get("status_code").and_then(|it| project.variables.number(it));
    if let Some(code) = code.filter(|it| (100..400).contains(it)) {
        long.push(pair("status", code.to_string()));
    }
    let headers = node.get("headers").map(|it| headers(process, project, kind, it));
    let headers = headers.unwrap_or_default();
    if !headers.is_empty() {
        long.push(pair("headers", inline(&headers)));
    }
    let http = if long.len() == 1 { url } else { inline(&long) };
    Some(vec![pair("http", http)])
}

/// What is sent.
fn headers(
    process: &Process<'_>,
    project: &mut Project<'_>,
    kind: &str,
    node: &YamlNode,
) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, child) in node.map() {
        let word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let value = child.text().map(|text| project.variables.written(text));
        match value.filter(|it| word && !it.chars().any(char::is_control)) {
            Some(value) => all.push(pair(name, quoted(&value))),
            None => {
                let message = format!("'{}': {kind}: header '{name}' cannot be sent", process.name);
                project.wrong(child, message);
            }
        }
    }
    all
}
