//! `logging`: one output, in one format, for jobs, checks and the supervisor alike.

use super::{
    json5::Json5Node,
    reader::{Case, Fields, Reader},
};
use crate::draft::{Table, literal, quoted};
use mainstay_config::nearest;

const KEYS: &[&str] = &["level", "format", "output"];
const LEVELS: [&str; 7] = ["debug", "info", "warn", "warning", "error", "fatal", "panic"];
/// As they are called there and here.
const FORMATS: [(&str, &str); 3] = [("default", "stamped"), ("text", "logfmt"), ("json", "logrus")];

/// The table `[log]`, and whether what jobs write is forwarded.
pub(super) fn read(r: &mut Reader<'_>, node: Option<&Json5Node>, file: &str) -> (Table, bool) {
    let fields = node.and_then(|node| r.fields(node, "logging", KEYS, Case::Any));
    let at = node.map(|node| node.span.clone()).unwrap_or_default();
    let mut table = Table::new("log", file).at(at);
    let forward = fields.as_ref().is_none_or(|fields| level(r, fields, &mut table));
    let format = fields.as_ref().and_then(|fields| format(r, fields)).unwrap_or("stamped");
    table.set("format", quoted(format));
    if let Some(node) = fields.as_ref().and_then(|fields| fields.filled("output"))
        && let Some(text) = r.text(node, "output of logging")
    {
        match text.to_ascii_lowercase().as_str() {
            "stdout" => {}
            "stderr" => table.set_at("output", quoted("stderr"), node.span.clone()),
            _ if !text.starts_with('/') => {
                let message = format!("output of logging is '{text}', which is no whole path");
                let help = "use stdout, stderr, or a path from the root: it would depend on where \
                            this is started";
                r.wrong::<()>(&node.span, message, help);
            }
            _ => table.set_at("output", literal(&text), node.span.clone()),
        }
    }
    table.set("together", "true");
    if !forward {
        table.set("forward", "false");
    }
    (table, forward)
}

/// The level of our own log; whether that of what jobs write, which is info, is shown.
fn level(r: &mut Reader<'_>, fields: &Fields<'_>, table: &mut Table) -> bool {
    let Some(node) = fields.filled("level") else { return true };
    let Some(text) = r.text(node, "level of logging") else { return true };
    let level = match text.to_ascii_lowercase().as_str() {
        "debug" => "debug",
        "info" => return true,
        "warn" | "warning" => "warn",
        "error" | "fatal" | "panic" => "error",
        other => {
            let message = format!("'{text}' is not a level of logging");
            r.wrong::<()>(&node.span, message, help(other, &LEVELS));
            return true;
        }
    };
    table.set_at("level", quoted(level), node.span.clone());
    if level == "debug" {
        return true;
    }
    let message = "above info what jobs write is not shown, as before; mainstay logs has it";
    table.note(r.line(&node.span), message);
    false
}

fn format(r: &mut Reader<'_>, fields: &Fields<'_>) -> Option<&'static str> {
    let node = fields.filled("format")?;
    let text = r.text(node, "format of logging")?;
    let word = text.to_ascii_lowercase();
    let found = FORMATS.iter().find(|(theirs, _)| *theirs == word);
    if found.is_none() {
        let message = format!("'{text}' is not a format of logging");
        r.wrong::<()>(&node.span, message, help(&word, &FORMATS.map(|(theirs, _)| theirs)));
    }
    found.map(|(_, ours)| *ours)
}

fn help(word: &str, words: &[&str]) -> String {
    match nearest(word, words.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("use one of: {}", words.join(", ")),
    }
}
