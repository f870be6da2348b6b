//! One job, as it is read.

use super::{
    health::{self, Health},
    json5::{Json5Node, Json5Value},
    reader::{Case, Fields, Reader, Span},
    watch::{SERVICE_HELP, is_service},
    when::WhenKeys,
};
use crate::draft::Names;
use std::time::Duration;

const KEYS: &[&str] = &[
    "name",
    "exec",
    "when",
    "restarts",
    "timeout",
    "stopTimeout",
    "port",
    "health",
    "interfaces",
    "tags",
    "initial_status",
    "consul",
    "logging",
    "meta",
    "uid",
    "gid",
];
const STATUSES: [&str; 3] = ["passing", "warning", "critical"];
/// What ContainerPilot tries when nothing is said.
pub(super) const INTERFACES: [&str; 2] = ["eth0:inet", "inet"];

pub(super) struct Job {
    /// As it is written, and in the catalogue.
    pub(super) name: String,
    /// Its name here.
    pub(super) own: String,
    /// Of its name.
    pub(super) at: Span,
    pub(super) exec: Option<(Vec<String>, Span)>,
    pub(super) when: Option<WhenKeys>,
    pub(super) restarts: Option<(Restarts, Span)>,
    pub(super) timeout: Option<(Duration, Span)>,
    pub(super) stop_timeout: Option<(Duration, Span)>,
    pub(super) health: Vec<Health>,
    pub(super) advertise: Option<Advertise>,
    pub(super) raw: bool,
    /// An earlier job has its name.
    pub(super) is_twin: bool,
    pub(super) user: Option<i64>,
    pub(super) group: Option<i64>,
    /// Lines and what to say about them.
    pub(super) notes: Vec<(usize, String)>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Restarts {
    Never,
    Times(u32),
    Unlimited,
}

/// What Consul is told.
pub(super) struct Advertise {
    pub(super) port: u16,
    pub(super) at: Span,
    pub(super) interfaces: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) initial_status: Option<String>,
    pub(super) enable_tag_override: bool,
    pub(super) deregister_after: Option<Duration>,
    pub(super) meta: Vec<(String, String)>,
}

impl Job {
    /// Whether it says healthy and unhealthy of itself.
    pub(super) fn is_checked(&self) -> bool {
        self.health.iter().any(|it| it.exec.is_some())
    }

    pub(super) fn read(r: &mut Reader<'_>, node: &Json5Node, names: &mut Names) -> Option<Job> {
        let fields = r.fields(node, "a job", KEYS, Case::Any)?;
        let Some(name_node) = fields.filled("name") else {
            let at = fields.at("name");
            return r.wrong(&at, "a job has no name", "add name: \"NAME\"");
        };
        let name = r.text(name_node, "the name of a job")?;
        if name.trim().is_empty() {
            return r.wrong(&name_node.span, "a job has a blank name", "give it a name");
        }
        let what = format!("job '{name}'");
        let mut notes = Vec::new();
        let exec = fields.get("exec").and_then(|node| {
            let words = r.command(node, &format!("exec of {what}"))?;
            notes.extend(odd_words(r, node, &words));
            Some((words, node.span.clone()))
        });
        let when = fields.get("when").and_then(|node| WhenKeys::read(r, node, &what));
        let restarts = fields.filled("restarts").and_then(|node| {
            let it = restarts(r, node, &what)?;
            if it == Restarts::Unlimited && when.as_ref().is_some_and(WhenKeys::is_each) {
                let message = format!("{what} has restarts: \"unlimited\" and 'each'");
                let help = "remove restarts: every event starts it, and each run would never end";
                r.wrong::<()>(&node.span, message, help);
            }
            Some((it, node.span.clone()))
        });
        let mut time = |key: &str| {
            let node = fields.filled(key)?;
            Some((r.duration(node, &format!("{key} of {what}"))?, node.span.clone()))
        };
        let (timeout, stop_timeout) = (time("timeout"), time("stopTimeout"));
        let health = health::read(r, fields.get("health"), &what, &mut notes);
        let advertise = advertise(r, &fields, &name, name_node, &mut notes);
        let raw = raw(r, &fields, &what);
        let mut account = |key: &str| {
            let node = fields.get(key)?;
            let id = r.integer(node, &format!("{key} of {what}"))?;
            if u32::try_from(id).is_err() {
                let message = format!("{key} of {what} is {id}");
                return r.wrong(&node.span, message, "write the number of an account");
            }
            Some(id)
        };
        let (user, group) = (account("uid"), account("gid"));
        let checked = health.iter().any(|it| it.exec.is_some());
        // One with a mistake, which is told, may be all that there is to do.
        let unread = health.is_empty() && fields.get("health").is_some();
        let no_port = fields.get("port").is_none_or(|node| node.value == Json5Value::Number(0.0));
        if !checked && !unread && fields.get("exec").is_none() && no_port {
            let message = format!("{what} has neither exec nor port: there is nothing to do");
            r.wrong::<()>(&name_node.span, message, "add exec: [\"PROGRAM\", \"ARGUMENT\"]");
        }
        let own = names.take(short(&name), None);
        let at = name_node.span.clone();
        Some(Job {
            name,
            own,
            at,
            exec,
            when,
            restarts,
            timeout,
            stop_timeout,
            health,
            advertise,
            raw,
            is_twin: false,
            user,
            group,
            notes,
        })
    }
}

/// Of a path, its last part without its ending, as in the variables of 3.8.0.
fn short(name: &str) -> &str {
    let Some((_, base)) = name.trim_end_matches('/').rsplit_once('/') else { return name };
    match base.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        Some(_) | None => base,
    }
}

/// Commands that may not be what somebody meant.
pub(super) fn odd_words(
    r: &Reader<'_>,
    node: &Json5Node,
    words: &[String],
) -> Option<(usize, String)> {
    let Json5Value::Text(text) = &node.value else { return None };
    let odd = if words.iter().any(|word| word.contains(['"', '\''])) {
        "quotes in exec are passed on as they are, as before: write a list instead"
    } else if text.trim().contains("  ") {
        "two blanks in exec make an empty argument, as before: write a list instead"
    } else {
        return None;
    };
    Some((r.line(&node.span), odd.to_owned()))
}

fn restarts(r: &mut Reader<'_>, node: &Json5Node, what: &str) -> Option<Restarts> {
    let number = match &node.value {
        Json5Value::Text(text) if text == "never" => return Some(Restarts::Never),
        Json5Value::Text(text) if text == "unlimited" => return Some(Restarts::Unlimited),
        Json5Value::Text(text) => text.parse::<u32>().ok(),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        Json5Value::Number(number) if (0.0..=4e9).contains(number) => Some(*number as u32),
        _ => None,
    };
    match number {
        Some(0) => Some(Restarts::Never),
        Some(times) => Some(Restarts::Times(times)),
        None => r.wrong(
            &node.span,
            format!("restarts of {what} is not a number of restarts"),
            "write \"never\", \"unlimited\", or a number that is not negative",
        ),
    }
}

fn raw(r: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> bool {
    let Some(node) = fields.get("logging") else { return false };
    let logging = format!("logging of {what}");
    let Some(logging) = r.fields(node, &logging, &["raw"], Case::Any) else { return false };
    let raw = logging.get("raw").and_then(|node| r.boolean(node, &format!("raw of {what}")));
    raw.unwrap_or(false)
}

fn advertise(
    r: &mut Reader<'_>,
    fields: &Fields<'_>,
    name: &str,
    name_node: &Json5Node,
    notes: &mut Vec<(usize, String)>,
) -> Option<Advertise> {
    let what = format!("job '{name}'");
    let port = fields.get("port").and_then(|node| {
        let port = r.integer(node, &format!("port of {what}"))?;
        u16::try_from(port).ok().or_else(|| {
            let message = format!("port of {what} is {port}");
            r.wrong(&node.span, message, "write a port from 1 to 65535")
        })
    });
    let port = port.unwrap_or_default();
    // They are read in any case: what is wrong in them is wrong without a port, too.
    let interfaces = fields
        .filled("interfaces")
        .and_then(|node| r.interfaces(node, &format!("interfaces of {what}")));
    let tags = fields.filled("tags").and_then(|node| r.texts(node, &format!("tags of {what}")));
    let meta = meta(r, fields, &what);
    let (enable_tag_override, deregister_after) = consul(r, fields, &what, notes);
    let status = fields.filled("initial_status").and_then(|node| {
        Some((r.text(node, &format!("initial_status of {what}"))?, node.span.clone()))
    });
    if port == 0 {
        for key in ["interfaces", "tags", "initial_status", "consul", "meta"] {
            if fields.get(key).is_some() {
                let message = format!("{key} means nothing without a port, as before");
                notes.push((r.line(&fields.at(key)), message));
            }
        }
        return None;
    }
    if !is_service(name) {
        let message = format!("'{name}' has a port, and its name is none for a service");
        r.wrong::<()>(&name_node.span, message, SERVICE_HELP);
    }
    if fields.get("health").is_none() {
        let message = format!("{what} has a port and no health");
        r.wrong::<()>(&fields.at("port"), message, "add health: { interval: 10, ttl: 25 }");
    }
    let initial_status = status.and_then(|(status, span)| {
        if STATUSES.contains(&status.as_str()) {
            return Some(status);
        }
        let message = format!("initial_status of {what} is '{status}'");
        r.wrong(&span, message, format!("use one of: {}", STATUSES.join(", ")))
    });
    Some(Advertise {
        port,
        at: fields.at("port"),
        interfaces: interfaces.unwrap_or_else(|| INTERFACES.map(str::to_owned).to_vec()),
        tags: tags.unwrap_or_default(),
        initial_status,
        enable_tag_override,
        deregister_after,
        meta,
    })
}

fn meta(r: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> Vec<(String, String)> {
    let Some(node) = fields.get("meta") else { return Vec::new() };
    let Json5Value::Map(entries) = &node.value else {
        r.wrong::<()>(
            &node.span,
            format!("meta of {what} must be an object"),
            "write { key: value }",
        );
        return Vec::new();
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for entry in entries {
        if all.iter().any(|(key, _)| *key == entry.key) {
            let message = format!("'{}' is there twice in meta of {what}", entry.key);
            r.wrong::<()>(&entry.span, message, "remove one of them");
            continue;
        }
        if let Some(text) = r.text(&entry.node, &format!("{} in meta of {what}", entry.key)) {
            all.push((entry.key.clone(), text));
        }
    }
    all
}

fn consul(
    r: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
    notes: &mut Vec<(usize, String)>,
) -> (bool, Option<Duration>) {
    const KEYS: &[&str] = &["enableTagOverride", "deregisterCriticalServiceAfter"];
    let Some(node) = fields.get("consul") else { return (false, None) };
    let Some(block) = r.fields(node, &format!("consul of {what}"), KEYS, Case::Any) else {
        return (false, None);
    };
    let tags = block
        .get("enableTagOverride")
        .and_then(|node| r.boolean(node, &format!("enableTagOverride of {what}")));
    let after = match block.filled("deregisterCriticalServiceAfter") {
        Some(node) => r.duration(node, &format!("deregisterCriticalServiceAfter of {what}")),
        None => {
            let message =
                "deregisterCriticalServiceAfter may be left out; 3.8.0 refused the job then";
            notes.push((r.line(&node.span), message.to_owned()));
            None
        }
    };
    (tags.unwrap_or(false), after)
}
