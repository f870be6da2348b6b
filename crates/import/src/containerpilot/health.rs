//! `health` of a job: its check, or several as the seed has it, and how often Consul hears of it.

use super::{
    job::odd_words,
    json5::{Json5Node, Json5Value},
    reader::{Case, Reader, Span},
};
use std::time::Duration;

const KEYS: &[&str] = &["exec", "interval", "ttl", "timeout", "logging", "heartbeat"];

pub(super) struct Health {
    pub(super) exec: Option<(Vec<String>, Span)>,
    pub(super) interval: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) ttl: Duration,
    pub(super) heartbeat: Option<Duration>,
    /// What its check writes is passed on as it is.
    pub(super) raw: bool,
}

pub(super) fn read(
    r: &mut Reader<'_>,
    node: Option<&Json5Node>,
    what: &str,
    notes: &mut Vec<(usize, String)>,
) -> Vec<Health> {
    match node.map(|node| (node, &node.value)) {
        None => Vec::new(),
        Some((_, Json5Value::List(all))) => {
            all.iter().filter_map(|node| Health::read(r, node, what, notes)).collect()
        }
        Some((node, _)) => Health::read(r, node, what, notes).into_iter().collect(),
    }
}

impl Health {
    fn read(
        r: &mut Reader<'_>,
        node: &Json5Node,
        what: &str,
        notes: &mut Vec<(usize, String)>,
    ) -> Option<Health> {
        let what = format!("health of {what}");
        let fields = r.fields(node, &what, KEYS, Case::Any)?;
        let exec = fields.get("exec").and_then(|node| {
            let words = r.command(node, &format!("exec in {what}"))?;
            notes.extend(odd_words(r, node, &words));
            Some((words, node.span.clone()))
        });
        let mut seconds = |key: &str, example: &str| match fields.get(key) {
            Some(node) => r.seconds(node, &format!("{key} in {what}")),
            None => r.wrong(&fields.span, format!("{what} has no {key}"), format!("add {example}")),
        };
        let interval = seconds("interval", "interval: 10");
        let ttl = seconds("ttl", "ttl: 25");
        let timeout = fields.filled("timeout").and_then(|node| {
            let timeout = r.duration(node, &format!("timeout in {what}"))?;
            if exec.is_none() {
                let message = "timeout means nothing without exec, as before";
                notes.push((r.line(&node.span), message.to_owned()));
            }
            Some(timeout)
        });
        let heartbeat = fields
            .get("heartbeat")
            .and_then(|node| r.seconds(node, &format!("heartbeat in {what}")));
        let logging = fields
            .get("logging")
            .and_then(|node| r.fields(node, &format!("logging in {what}"), &["raw"], Case::Any));
        let raw = logging.as_ref().and_then(|logging| logging.get("raw"));
        let raw = raw.and_then(|node| r.boolean(node, &format!("raw in {what}")));
        let raw = raw.unwrap_or(false);
        Some(Health { exec, interval: interval?, timeout, ttl: ttl?, heartbeat, raw })
    }
}
