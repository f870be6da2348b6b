//! `telemetry` and `control`.

use super::{
    health::Health,
    job::{Advertise, INTERFACES, Job},
    json5::Json5Node,
    reader::{Case, Reader, Span},
    watch::items,
};
use crate::draft::{Names, Table, list, literal, quoted};
use mainstay_config::nearest;
use std::time::Duration;

const KEYS: &[&str] = &["port", "interfaces", "tags", "metrics"];
const METRIC_KEYS: &[&str] = &["namespace", "subsystem", "name", "help", "type"];
const TYPES: [&str; 4] = ["counter", "gauge", "histogram", "summary"];
const DEFAULT_PORT: u16 = 9090;
/// As ContainerPilot advertises itself.
const NAME: &str = "containerpilot";
pub(super) const SOCKET: &str = "/var/run/containerpilot.socket";

/// The table `[telemetry]` and one for each metric, and the job that advertises it.
pub(super) fn telemetry(
    r: &mut Reader<'_>,
    node: &Json5Node,
    names: &mut Names,
    file: &str,
) -> Option<(Vec<Table>, Job)> {
    let fields = r.fields(node, "telemetry", KEYS, Case::Any)?;
    let mut table = Table::new("telemetry", file).at(node.span.clone());
    // What is wrong in the rest is told with it.
    let port = fields.get("port").and_then(|node| {
        let port = r.integer(node, "port of telemetry")?;
        u16::try_from(port).ok().or_else(|| {
            let message = format!("port of telemetry is {port}");
            r.wrong(&node.span, message, "write a port from 1 to 65535")
        })
    });
    let port = port.filter(|port| *port > 0).unwrap_or(DEFAULT_PORT);
    let interfaces =
        fields.filled("interfaces").and_then(|node| r.interfaces(node, "interfaces of telemetry"));
    let interfaces = interfaces.unwrap_or_else(|| INTERFACES.map(str::to_owned).to_vec());
    let tags = fields.filled("tags").and_then(|node| r.texts(node, "tags of telemetry"));
    let mut tags = tags.unwrap_or_default();
    tags.push(env!("CARGO_PKG_VERSION").to_owned());
    table.set_at("port", port.to_string(), fields.at("port"));
    let specs = list(interfaces.iter().map(|spec| literal(spec)));
    table.set_at("interfaces", specs, fields.at("interfaces"));
    let mut tables = vec![table];
    for node in items(r, fields.get("metrics"), "metrics of telemetry") {
        tables.extend(metric(r, node, file));
    }
    let health = Health {
        exec: None,
        interval: Duration::from_secs(5),
        timeout: None,
        ttl: Duration::from_secs(15),
        heartbeat: None,
        raw: false,
    };
    let advertise = Advertise {
        port,
        at: node.span.clone(),
        interfaces,
        tags,
        initial_status: None,
        enable_tag_override: false,
        deregister_after: None,
        meta: Vec::new(),
    };
    let job = Job {
        name: NAME.to_owned(),
        own: names.take(NAME, None),
        at: fields.span.clone(),
        exec: None,
        when: None,
        restarts: None,
        timeout: None,
        stop_timeout: None,
        health: vec![health],
        advertise: Some(advertise),
        raw: false,
        is_twin: false,
        user: None,
        group: None,
        notes: vec![(
            r.line(&fields.span),
            "telemetry is advertised as before; its last tag is the version of Mainstay".to_owned(),
        )],
    };
    Some((tables, job))
}

fn metric(r: &mut Reader<'_>, node: &Json5Node, file: &str) -> Option<Table> {
    let fields = r.fields(node, "a metric", METRIC_KEYS, Case::Any)?;
    // An item of a list of tables.
    let mut table = Table::new("[telemetry.metrics]", file).at(node.span.clone());
    for key in ["namespace", "subsystem", "name", "help"] {
        if let Some(node) = fields.filled(key) {
            let text = r.text(node, &format!("{key} of a metric"))?;
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let first = text.chars().next().is_some_and(|c| c.is_ascii_digit());
            if key != "help" && (first || !text.chars().all(word)) {
                let message = format!("{key} '{text}' cannot be in the name of a metric");
                return r.wrong(&node.span, message, "use letters, digits and '_'");
            }
            table.set_at(key, literal(&text), node.span.clone());
        }
    }
    if fields.filled("name").is_none() {
        return r.wrong(&fields.span, "a metric has no name", "add name: \"NAME\"");
    }
    if fields.filled("namespace").is_none() || fields.filled("subsystem").is_none() {
        let message = "a metric without namespace or subsystem counts; 3.8.0 lost what it was sent";
        table.note(r.line(&fields.span), message);
    }
    let Some(kind) = fields.filled("type") else {
        let help = format!("add type, one of: {}", TYPES.join(", "));
        return r.wrong(&fields.span, "a metric has no type", help);
    };
    let text = r.text(kind, "type of a metric")?;
    if !TYPES.contains(&text.as_str()) {
        let help = match nearest(&text, TYPES.into_iter()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("use one of: {}", TYPES.join(", ")),
        };
        return r.wrong(&kind.span, format!("'{text}' is not a type of metric"), help);
    }
    table.set_at("type", quoted(&text), kind.span.clone());
    Some(table)
}

/// Where the control socket is.
pub(super) fn control(r: &mut Reader<'_>, node: Option<&Json5Node>) -> (String, Option<Span>) {
    let default = (SOCKET.to_owned(), None);
    let Some(node) = node else { return default };
    let Some(fields) = r.fields(node, "control", &["socket"], Case::Any) else { return default };
    let Some(node) = fields.get("socket") else { return default };
    match r.text(node, "socket of control") {
        Some(path) if !path.is_empty() => (path, Some(node.span.clone())),
        Some(_) => {
            let message = "the path of the control socket is empty";
            r.wrong::<()>(&node.span, message, "write a path, or remove it");
            default
        }
        None => default,
    }
}
