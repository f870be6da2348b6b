//! One process, and the job it becomes.

use super::{ON_DEMAND, ProcessDefaults, probe};
use crate::{
    draft::{Draft, Names, Table, inline, is_variable, list, literal, pair, quoted},
    yaml::{YamlNode, YamlValue},
};
use mainstay_config::{MOST_INSTANCES, cron, duration};
use mainstay_core::signal::Signal;

const MOST_VARIABLES: usize = 1000;

pub(super) struct Process<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a YamlNode,
    /// The name of the job.
    pub(super) job: String,
    command: Command<'a>,
    instances: Option<u32>,
    pub(super) disabled: bool,
}

enum Command<'a> {
    Line(&'a str),
    Words(Vec<&'a str>),
}

impl<'a> Process<'a> {
    pub(super) fn new(
        name: &'a str,
        node: &'a YamlNode,
        names: &mut Names,
        draft: &mut Draft,
    ) -> Option<Process<'a>> {
        let words: Vec<&str> = match node.get("entrypoint").map(|it| &it.value) {
            Some(YamlValue::List(all)) => all.iter().filter_map(YamlNode::text).collect(),
            _ => Vec::new(),
        };
        let line = node.get("command").and_then(YamlNode::text).filter(|it| !it.trim().is_empty());
        let command = match (words.first(), line) {
            (Some(first), _) if !first.is_empty() => Command::Words(words),
            (_, Some(line)) => Command::Line(line),
            _ => {
                draft.note(node.line, format!("process '{name}' is left out: it has no command"));
                return None;
            }
        };
        let instances = node
            .get("replicas")
            .and_then(YamlNode::number)
            .filter(|count| (2..=MOST_INSTANCES).contains(count));
        let disabled = node.get("disabled").and_then(YamlNode::truth) == Some(true);
        let job = names.take(name, instances);
        Some(Process { name, node, job, command, instances, disabled })
    }

    fn has_probe(&self) -> bool {
        ["readiness_probe", "liveness_probe"].iter().any(|key| self.node.get(key).is_some())
    }

    pub(super) fn table(
        &self,
        defaults: &ProcessDefaults,
        waits: &[(usize, &str, usize)],
        all: &[Process<'_>],
        main: &mut bool,
    ) -> Table {
        let mut table = Table::new(format!("jobs.{}", self.job), &defaults.file);
        if self.job != self.name {
            let message =
                format!("'{}' is renamed: it is no name here or is there twice", self.name);
            table.note(self.node.line, message);
        }
        if let Some(text) = self.node.get("description").and_then(YamlNode::text) {
            table.note(None, text);
        }
        table.set("exec", self.exec(defaults));
        self.number(&mut table);
        self.when(&mut table, waits, all);
        self.health(&mut table, defaults);
        self.running(&mut table, main);
        self.stopping(&mut table, defaults);
        self.environment(&mut table, defaults);
        if self.disabled {
            let line = self.node.get("disabled").map(|it| it.line);
            table.note(line, "disabled: start it with mainstay start NAME");
            table.set("app", quoted(ON_DEMAND));
        }
        if self.node.get("is_tty").and_then(YamlNode::truth) == Some(true) {
            table.set("tty", "true");
        }
        self.rest(&mut table);
        table
    }

    fn exec(&self, defaults: &ProcessDefaults) -> String {
        match &self.command {
            Command::Words(words) => list(words.iter().map(|word| literal(word))),
            Command::Line(line) => {
                // `$$` is how process-compose writes a dollar that it must not expand.
                let line = numbered(&line.replace("$$", "$"), self.instances);
                list([&defaults.shell[0], &defaults.shell[1], &line].map(|word| literal(word)))
            }
        }
    }

    fn number(&self, table: &mut Table) {
        let Some(node) = self.node.get("replicas") else { return };
        match self.instances {
            Some(count) => {
                table.set("instances", count.to_string());
                table.note(
                    node.line,
                    "replicas: numbers begin at 1 here, {{.PC_REPLICA_NUM}} began at 0",
                );
            }
            None if node.number() == Some(1) => {}
            None => table.note(node.line, "replicas is left out: not a number from 1 to 1000"),
        }
    }

    fn when(&self, table: &mut Table, waits: &[(usize, &str, usize)], all: &[Process<'_>]) {
        let mut clauses = Vec::new();
        for (to, condition, line) in waits {
            let Some(source) = all.get(*to) else { continue };
            let event = match *condition {
                "process_healthy" => "healthy",
                "process_completed_successfully" => "exitSuccess",
                "process_started" => {
                    if source.has_probe() {
                        table.note(*line, "process_started: waits until it is healthy");
                    }
                    "healthy"
                }
                "process_completed" => {
                    let message = "process_completed: waits until it has ended and is not started \
                                   again, also because it was stopped";
                    table.note(*line, message);
                    "stopped"
                }
                other => {
                    table.note(*line, format!("condition '{other}': waits until it is healthy"));
                    "healthy"
                }
            };
            let clause = [pair("source", quoted(&source.job)), pair("once", quoted(event))];
            clauses.push(inline(&clause));
        }
        clauses.extend(self.schedule(table));
        match clauses.as_slice() {
            [] => {}
            [one] => table.set("when", one.clone()),
            _ => table.set("when", list(clauses)),
        }
    }

    /// The trigger that a schedule is, if it can be one.
    fn schedule(&self, table: &mut Table) -> Option<String> {
        let node = self.node.get("schedule")?;
        let text = |key: &str| node.get(key).and_then(YamlNode::text).filter(|it| !it.is_empty());
        let flag = |key: &str| node.get(key).and_then(YamlNode::truth).unwrap_or(false);
        let mut clause = match (text("cron"), text("interval")) {
            (Some(cron), _) if cron::check(cron).is_ok() => {
                if flag("run_on_start") {
                    table.note(node.line, "run_on_start: a job with cron waits for its first time");
                }
                vec![pair("cron", quoted(cron))]
            }
            (None, Some(every)) if duration::parse(every).is_some_and(|it| !it.is_zero()) => {
                if !flag("run_on_start") {
                    table.note(node.line, "schedule: a job with interval also runs at startup");
                }
                vec![pair("interval", quoted(every))]
            }
            _ => {
                table.note(node.line, "schedule is left out: neither cron nor interval is usable");
                return None;
            }
        };
        if let (Some(zone), Some("cron")) =
            (text("timezone"), clause.first().map(|it| it.0.as_str()))
        {
            match jiff::tz::db().get(zone) {
                Ok(_) => clause.push(pair("tz", quoted(zone))),
                Err(_) => table.note(node.line, format!("timezone '{zone}' is not known here")),
            }
        }
        for (key, child) in node.map() {
            if !["cron", "interval", "timezone", "run_on_start"].contains(&key.as_str()) {
                table.note(child.line, format!("schedule: '{key}' is not mapped"));
            }
        }
        Some(inline(&clause))
    }

    fn health(&self, table: &mut Table, defaults: &ProcessDefaults) {
        let mut checks = Vec::new();
        for kind in ["readiness_probe", "liveness_probe"] {
            if let Some(node) = self.node.get(kind) {
                checks.extend(probe::check(table, defaults, kind, node));
            }
        }
        match checks.as_slice() {
            [] => {}
            [one] => table.set("health", one.clone()),
            _ => table.set("health", list(checks)),
        }
    }

    fn running(&self, table: &mut Table, main: &mut bool) {
        let availability = self.node.get("availability");
        let get = |key: &str| availability.and_then(|it| it.get(key));
        let restart = get("restart");
        let on = match restart.and_then(YamlNode::text).unwrap_or("no") {
            "always" => "any",
            "on_failure" => "failure",
            "exit_on_failure" => {
                let line = restart.map(|it| it.line);
                table.note(line, "exit_on_failure: a failure does not end the other jobs");
                "never"
            }
            "no" | "never" | "false" => "never",
            other => {
                let message = format!("restart: '{other}' is unknown");
                table.note(restart.map(|it| it.line), message);
                "never"
            }
        };
        let seconds =
            get("backoff_seconds").and_then(YamlNode::number).filter(|it| *it <= 1_000_000);
        let limit = get("max_restarts").and_then(YamlNode::number).filter(|it| *it > 0);
        if on == "never" {
            table.set("restart", quoted("never"));
        } else {
            let delay = quoted(&format!("{}s", seconds.unwrap_or(1)));
            let mut pairs = vec![
                pair("on", quoted(on)),
                pair("delay", delay.clone()),
                pair("max_delay", delay),
            ];
            pairs.extend(limit.map(|limit| pair("limit", limit.to_string())));
            table.set("restart", inline(&pairs));
        }
        if let Some(node) = get("exit_on_end").filter(|it| it.truth() == Some(true)) {
            if *main || self.instances.is_some() || self.node.get("schedule").is_some() {
                table.note(node.line, "exit_on_end is left out: one job can end the node");
            } else {
                *main = true;
                table.set("main", "true");
            }
        }
    }

    fn stopping(&self, table: &mut Table, defaults: &ProcessDefaults) {
        let shutdown = self.node.get("shutdown");
        let get = |key: &str| shutdown.and_then(|it| it.get(key));
        let mut stop = Vec::new();
        if let Some(node) = get("signal") {
            match node.number().and_then(|it| i32::try_from(it).ok()).and_then(Signal::from_number)
            {
                Some(Signal::TERM) => {}
                Some(signal) => stop.push(pair("signal", quoted(&signal.to_string()))),
                None => table.note(node.line, "shutdown.signal is left out: no signal's number"),
            }
        }
        if get("parent_only").and_then(YamlNode::truth) == Some(true) {
            stop.push(pair("to", quoted("leader")));
        }
        let seconds =
            get("timeout_seconds").and_then(YamlNode::number).unwrap_or(10).min(1_000_000);
        stop.push(pair("timeout", quoted(&format!("{seconds}s"))));
        if let Some(command) = get("command").and_then(YamlNode::text).filter(|it| !it.is_empty()) {
            let words = [defaults.shell[0].as_str(), &defaults.shell[1], command];
            stop.push(pair("exec", list(words.map(literal))));
        }
        table.set("stop", inline(&stop));
    }

    fn environment(&self, table: &mut Table, defaults: &ProcessDefaults) {
        if let Some(dir) = self.node.get("working_dir").and_then(YamlNode::text) {
            if dir.is_empty() {
                return;
            }
            table.set("cwd", quoted(&numbered(&variables(dir), self.instances)));
        }
        let mut env = defaults.env.clone();
        if let Some(node) = self.node.get("environment") {
            for (name, value) in environment(node, |line, why| table.note(line, why)) {
                env.retain(|(other, _)| *other != name);
                env.push((name, value));
            }
        }
        if !env.is_empty() {
            let instances = self.instances;
            let env: Vec<(String, String)> = env
                .into_iter()
                .map(|(name, value)| (name, quoted(&numbered(&variables(&value), instances))))
                .collect();
            table.set("env", inline(&env));
        }
    }

    /// Keys that were not looked at.
    fn rest(&self, table: &mut Table) {
        const KNOWN: [&str; 15] = [
            "command",
            "entrypoint",
            "replicas",
            "depends_on",
            "readiness_probe",
            "liveness_probe",
            "availability",
            "shutdown",
            "working_dir",
            "environment",
            "description",
            "disabled",
            "is_foreground",
            "is_tty",
            "schedule",
        ];
        for (key, node) in self.node.map() {
            let why = match key.as_str() {
                known if KNOWN.contains(&known) => continue,
                "is_daemon" => {
                    "a process that goes into the background is not followed: run it in \
                                the foreground"
                }
                "is_interactive" => "nobody can type into the terminal of a job",
                "log_location" | "log_configuration" => "see mainstay logs, and log of the job",
                "namespace" => "jobs have one name space; an app may group them",
                "ready_log_line" => "use a check instead of a line of the log",
                "vars" => "templates are not expanded",
                _ => "not mapped",
            };
            table.note(node.line, format!("{key}: {why}"));
        }
    }
}

/// `NAME=value` items, or a map.
pub(super) fn environment(
    node: &YamlNode,
    mut note: impl FnMut(usize, String),
) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let pairs: Vec<(usize, &str, &str)> = match &node.value {
        YamlValue::List(items) => items
            .iter()
            .filter_map(|item| {
                let (name, value) = item.text()?.split_once('=')?;
                Some((item.line, name, value))
            })
            .collect(),
        YamlValue::Map(pairs) => pairs
            .iter()
            .map(|(name, value)| (value.line, name.as_str(), value.text().unwrap_or_default()))
            .collect(),
        YamlValue::Scalar { .. } => Vec::new(),
    };
    for (line, name, value) in pairs {
        if !is_variable(name) {
            note(line, format!("'{name}' is no name for a variable"));
            continue;
        }
        if all.len() == MOST_VARIABLES {
            note(line, format!("left out from here: more than {MOST_VARIABLES} variables"));
            break;
        }
        all.retain(|(other, _)| other != name);
        all.push((name.to_owned(), value.to_owned()));
    }
    all
}

/// `$NAME` and `${NAME}` as we write them; an unset one is empty, as it was.
fn variables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            // A literal ${ is $${ for us.
            if tail.starts_with('{') {
                out.push('$');
            }
            rest = tail;
            continue;
        }
        let (braced, inside) = match after.strip_prefix('{') {
            Some(inside) => (true, inside),
            None => (false, after),
        };
        let end =
            inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let (name, tail) = inside.split_at(end);
        let valid = !name.is_empty() && !name.as_bytes()[0].is_ascii_digit();
        match (valid, braced, tail.strip_prefix('}')) {
            (true, false, _) => {
                out.push_str(&format!("${{{name}:-}}"));
                rest = tail;
            }
            (true, true, Some(tail)) => {
                out.push_str(&format!("${{{name}:-}}"));
                rest = tail;
            }
            _ => {
                // Not a variable: it stays as it is.
                out.push_str(if braced { "$${" } else { "$" });
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The number of a replica.
fn numbered(text: &str, instances: Option<u32>) -> String {
    if instances.is_none() {
        return text.to_owned();
    }
    text.replace("{{.PC_REPLICA_NUM}}", "{instance}").replace("{{ .PC_REPLICA_NUM }}", "{instance}")
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_are_written_our_way() {
        for (text, expected) in [
            ("$A/x", "${A:-}/x"),
            ("${A}x", "${A:-}x"),
            ("$$A", "$A"),
            ("$${A}", "$${A}"),
            ("$1 $ ${", "$1 $ $${"),
            ("${A", "$${A"),
        ] {
            assert_eq!(variables(text), expected);
        }
    }
}
