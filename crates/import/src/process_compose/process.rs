//! One process, and the job it becomes. Of one with replicas each is a job of its own, with its
//! number from 0 as there.

use super::{Dependency, LOGS, ON_DEMAND, Project, probe, template};
use crate::{
    draft::{Draft, Names, Table, inline, is_variable, list, pair, quoted},
    yaml::{YamlNode, YamlValue},
};
use mainstay_config::{cron, duration, env_file};
use mainstay_core::{event::EventName, signal::Signal};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The condition that what is not waited for exactly comes to.
const HEALTHY: &str = "process_healthy";
const MOST_REPLICAS: u32 = 1000;
const MOST_SECONDS: u32 = 1_000_000;
/// Until SIGKILL, where the file names no time.
const STOP_SECONDS: u32 = 10;

pub(super) struct Process<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a YamlNode,
    pub(super) replica_name: String,
    replica: u32,
    /// The name of the job.
    job: String,
    /// For its templates.
    vars: BTreeMap<String, String>,
    pub(super) disabled: bool,
    /// Not started by itself.
    pub(super) deferred: bool,
    pub(super) stop_seconds: u32,
}

impl<'a> Process<'a> {
    /// One for each replica.
    pub(super) fn all(
        name: &'a str,
        node: &'a YamlNode,
        names: &mut Names,
        project: &mut Project<'_>,
    ) -> Vec<Process<'a>> {
        let count = match node.get("replicas") {
            None => 1,
            Some(at) => match project.variables.number(at) {
                Some(count) if count <= MOST_REPLICAS => count.max(1),
                _ => {
                    let message = format!("'{name}': replicas are 1 to {MOST_REPLICAS}");
                    project.wrong(at, message);
                    1
                }
            },
        };
        let said = node.get("is_disabled").and_then(|it| project.variables.truth(it));
        let truth = |key: &str| node.get(key).and_then(|it| project.variables.truth(it));
        let disabled = said.or_else(|| truth("disabled")) == Some(true);
        let deferred = disabled || truth("is_foreground") == Some(true);
        let stop = node.get("shutdown").and_then(|it| it.get("timeout_seconds"));
        let stop = stop.and_then(|it| project.variables.number(it)).filter(|it| *it > 0);
        let stop_seconds = stop.unwrap_or(STOP_SECONDS).min(MOST_SECONDS);
        let width = count.to_string().len();
        (0..count)
            .map(|replica| {
                let replica_name = match count {
                    1 => name.to_owned(),
                    _ => format!("{name}-{replica:0width$}"),
                };
                let mut vars = project.vars.clone();
                vars.extend(node.get("vars").map(self::vars).unwrap_or_default());
                vars.insert("PC_REPLICA_NUM".to_owned(), replica.to_string());
                let job = names.take(&replica_name, None);
                Process {
                    name,
                    node,
                    replica_name,
                    replica,
                    job,
                    vars,
                    disabled,
                    deferred,
                    stop_seconds,
                }
            })
            .collect()
    }

    fn has_probe(&self) -> bool {
        ["readiness_probe", "liveness_probe"].iter().any(|key| self.node.get(key).is_some())
    }

    /// A text with its templates rendered; variables are still marks in it.
    pub(super) fn rendered(&self, project: &mut Project<'_>, node: &YamlNode) -> Option<String> {
        match template::render(node.text()?, &self.vars) {
            Ok(text) => Some(text),
            Err(why) => {
                project.wrong(node, format!("'{}': {why}", self.name));
                None
            }
        }
    }

    /// As a string of ours.
    pub(super) fn written(&self, project: &mut Project<'_>, node: &YamlNode) -> Option<String> {
        let text = self.rendered(project, node)?;
        Some(project.variables.written(&text))
    }

    pub(super) fn table(
        &self,
        project: &mut Project<'_>,
        draft: &mut Draft,
        waits: &[Dependency<'_>],
        all: &[Process<'_>],
        ends_by_failure: bool,
    ) -> Table {
        let mut table = Table::new(format!("jobs.{}", self.job), project.file(self.node));
        if self.job != self.replica_name {
            let message = format!("'{}' is called '{}' here", self.replica_name, self.job);
            table.note(self.node.line, message);
        }
        if let Some(text) = self.node.get("description").and_then(YamlNode::text) {
            table.remark(project.variables.now(text));
        }
        self.command(project, &mut table);
        self.when(project, draft, &mut table, waits, all);
        self.health(project, draft, &mut table);
        self.ending(project, draft, &mut table, ends_by_failure);
        self.stopping(project, &mut table);
        self.environment(project, draft, &mut table);
        if self.deferred {
            table.set("app", quoted(ON_DEMAND));
        }
        if self.node.get("is_tty").and_then(|it| project.variables.truth(it)) == Some(true) {
            table.set("tty", "true");
        }
        self.rest(project, draft);
        table
    }

    fn command(&self, project: &mut Project<'_>, table: &mut Table) {
        let line = self.node.get("command").filter(|it| {
            it.text().is_some_and(|text| !project.variables.now(text).trim().is_empty())
        });
        let words = self.node.get("entrypoint").map(YamlNode::items).unwrap_or_default();
        let exec = match (line, words.first()) {
            (Some(line), _) => {
                let raw = self.node.get("is_template_disabled");
                let raw = raw.and_then(|it| project.variables.truth(it)) == Some(true);
                let text = match raw {
                    true => line.text().map(|text| project.variables.written(text)),
                    false => self.written(project, line),
                };
                let Some(text) = text else { return };
                let shell = project.shell.clone().map(|word| word.replace("${", "$${"));
                list([&shell[0], &shell[1], &text].map(|word| quoted(word)))
            }
            (None, Some(_)) => {
                let words = words.iter().filter_map(YamlNode::text);
                list(words.map(|word| quoted(&project.variables.written(word))))
            }
            (None, None) => {
                return project.wrong(self.node, format!("'{}' has no command", self.name));
            }
        };
        table.set("exec", exec);
    }

    fn when(
        &self,
        project: &mut Project<'_>,
        draft: &mut Draft,
        table: &mut Table,
        waits: &[Dependency<'_>],
        all: &[Process<'_>],
    ) {
        let mut clauses = Vec::new();
        for Dependency { on, condition, node } in waits {
            let Some(source) = all.get(*on) else { continue };
            let mut gather = |message| draft.gather(project.file(node), node.line, message);
            let condition = match *condition {
                HEALTHY if !source.has_probe() => {
                    let message = format!(
                        "'{}' waits until '{}' is healthy, which has no probe",
                        self.name, source.name
                    );
                    project.wrong(node, message);
                    continue;
                }
                "process_started" => {
                    if source.has_probe() {
                        gather("process_started: it waits until the other is healthy");
                    }
                    HEALTHY
                }
                "process_log_ready" => {
                    gather("process_log_ready: it does not wait for a line, only for the start");
                    HEALTHY
                }
                other => other,
            };
            let Some(event) = EventName::of_process_compose(condition) else {
                let message = format!("'{}': condition '{condition}' is not known", self.name);
                project.wrong(node, message);
                continue;
            };
            let once = pair("once", quoted(event.as_str()));
            let clause = [pair("source", quoted(&source.job)), once];
            clauses.push(inline(&clause));
        }
        clauses.extend(self.schedule(project, table));
        table.set_one_or_list("when", clauses);
    }

    /// The trigger that a schedule is, if it can be one.
    fn schedule(&self, project: &mut Project<'_>, table: &mut Table) -> Option<String> {
        let node = self.node.get("schedule")?;
        let text = |key: &str| {
            let text = node.get(key).and_then(|it| project.variables.plain(it));
            text.filter(|it| !it.is_empty())
        };
        let at_start = node.get("run_on_start").and_then(|it| project.variables.truth(it));
        let mut clause = match (text("cron"), text("interval")) {
            (Some(cron), _) if cron::check(&cron).is_ok() => {
                if at_start == Some(true) {
                    table.note(node.line, "run_on_start: a job with cron waits for its first time");
                }
                vec![pair("cron", quoted(&cron))]
            }
            (None, Some(every)) if duration::parse(&every).is_some_and(|it| !it.is_zero()) => {
                if at_start != Some(true) {
                    table.note(node.line, "schedule: a job with interval also runs at startup");
                }
                vec![pair("interval", quoted(&every))]
            }
            _ => {
                let message =
                    format!("'{}': its schedule has no usable cron or interval", self.name);
                project.wrong(node, message);
                return None;
            }
        };
        let is_cron = clause.first().is_some_and(|(key, _)| key == "cron");
        if let Some(zone) = text("timezone").filter(|_| is_cron) {
            match jiff::tz::db().get(&zone) {
                Ok(_) => clause.push(pair("tz", quoted(&zone))),
                Err(_) => table.note(node.line, format!("timezone '{zone}' is not known here")),
            }
        }
        let many = node.get("max_concurrent").and_then(|it| project.variables.number(it));
        if many.is_some_and(|many| many > 1) {
            table.note(node.line, "max_concurrent: a job runs once at a time");
        }
        Some(inline(&clause))
    }

    fn health(&self, project: &mut Project<'_>, draft: &mut Draft, table: &mut Table) {
        let mut checks = Vec::new();
        for kind in ["readiness_probe", "liveness_probe"] {
            if let Some(node) = self.node.get(kind) {
                checks.extend(probe::check(self, project, draft, kind, node));
            }
        }
        table.set_one_or_list("health", checks);
    }

    fn stopping(&self, project: &mut Project<'_>, table: &mut Table) {
        let shutdown = self.node.get("shutdown");
        let get = |key: &str| shutdown.and_then(|it| it.get(key));
        let mut stop = Vec::new();
        if let Some(node) = get("signal") {
            let number = project.variables.number(node).filter(|it| *it != 0);
            let number = number.and_then(|it| i32::try_from(it).ok());
            match number.map(Signal::from_number) {
                None | Some(Some(Signal::TERM)) => {}
                Some(Some(signal)) => stop.push(pair("signal", quoted(&signal.to_string()))),
                Some(None) => {
                    let message = format!("'{}': shutdown.signal is no signal's number", self.name);
                    project.wrong(node, message);
                }
            }
        }
        if get("parent_only").and_then(|it| project.variables.truth(it)) == Some(true) {
            stop.push(pair("to", quoted("leader")));
        }
        stop.push(pair("timeout", quoted(&format!("{}s", self.stop_seconds))));
        if let Some(command) = get("command").and_then(YamlNode::text).filter(|it| !it.is_empty()) {
            let shell = project.shell.clone().map(|word| word.replace("${", "$${"));
            let command = project.variables.written(command);
            stop.push(pair("exec", list([&shell[0], &shell[1], &command].map(|it| quoted(it)))));
        }
        table.set("stop", inline(&stop));
    }

    fn environment(&self, project: &mut Project<'_>, draft: &mut Draft, table: &mut Table) {
        let dir = self.node.get("working_dir").and_then(|it| self.rendered(project, it));
        let dir = dir.filter(|dir| !dir.is_empty());
        table.set_if_some("cwd", dir.as_ref().map(|it| quoted(&project.variables.written(it))));
        let mut env = vec![
            pair("PC_PROC_NAME", self.name.replace("${", "$${")),
            pair("PC_REPLICA_NUM", self.replica.to_string()),
        ];
        let mut set = |name: &str, value: String| {
            env.retain(|(other, _)| other != name);
            env.push((name.to_owned(), value));
        };
        let mut files = Vec::new();
        let off = self.node.get("is_dotenv_disabled");
        if off.and_then(|it| project.variables.truth(it)) != Some(true) {
            let as_it_is = project.variables.dotenv.as_it_is;
            for (name, value) in project.variables.dotenv.all.iter().filter(|it| is_variable(&it.0))
            {
                match (project.variables.is_inherited(name), as_it_is) {
                    (true, true) => set(name, format!("${{{name}}}")),
                    (true, false) | (false, true) => {}
                    (false, false) => set(name, value.replace("${", "$${")),
                }
            }
            if as_it_is && !project.variables.dotenv.all.is_empty() {
                files.push(".env".to_owned());
            }
        }
        for (name, value) in &project.env {
            set(name, project.variables.written(value));
        }
        if let Some(node) = self.node.get("env_file") {
            let path = project.variables.plain(node).unwrap_or_default();
            let dir = dir.map(|dir| project.variables.now(&dir)).unwrap_or_default();
            let path = PathBuf::from(dir).join(path);
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let named = env_file::parse(&text).unwrap_or_default();
                    env.retain(|(name, _)| !named.iter().any(|(other, _)| other == name));
                    files.push(path.to_string_lossy().into_owned());
                }
                Err(why) => {
                    let message = format!("env_file is left out: '{}': {why}", path.display());
                    draft.note_of(project.file(node).to_owned(), node.line, message);
                }
            }
        }
        if let Some(node) = self.node.get("environment") {
            for (name, value) in environment(project, node) {
                let Ok(value) = template::render(&value, &self.vars) else {
                    project.wrong(node, format!("'{}': a template in {name}", self.name));
                    continue;
                };
                env.retain(|(other, _)| *other != name);
                env.push((name, project.variables.written(&value)));
            }
        }
        let files: Vec<String> = files.iter().map(|path| quoted(&placed(path))).collect();
        table.set_one_or_list("env_file", files);
        let env: Vec<(String, String)> =
            env.into_iter().map(|(name, value)| (name, quoted(&value))).collect();
        table.set("env", inline(&env));
    }

    /// Keys that are not as there.
    fn rest(&self, project: &Project<'_>, draft: &mut Draft) {
        let set = |node: &YamlNode| project.variables.truth(node) != Some(false);
        for (key, node) in self.node.map() {
            let message = match key.as_str() {
                "is_daemon" if set(node) => {
                    "is_daemon: what goes into the background is killed when its starter ends: run \
                     it in the foreground"
                }
                "is_elevated" if set(node) => "is_elevated: it runs as everybody else: set user",
                "is_interactive" if set(node) => {
                    "is_interactive: nobody can type into the terminal of a job"
                }
                "log_location" | "log_configuration" => LOGS,
                "watch" => "watch: it is not restarted when files change",
                "mcp" => "mcp: it is no tool for others here",
                _ => continue,
            };
            draft.gather(project.file(node), node.line, message);
        }
    }
}

/// A path that is relative there to where process-compose is started.
fn placed(path: &str) -> String {
    let path = match std::env::current_dir() {
        Ok(here) if !Path::new(path).is_absolute() => {
            here.join(path).to_string_lossy().into_owned()
        }
        _ => path.to_owned(),
    };
    path.replace("${", "$${")
}

/// The scalars of `vars`.
pub(super) fn vars(node: &YamlNode) -> BTreeMap<String, String> {
    let text = |node: &YamlNode| node.text().unwrap_or_default().to_owned();
    node.map().iter().map(|(name, node)| (name.clone(), text(node))).collect()
}

/// `NAME=value` items, or a map.
pub(super) fn environment(project: &mut Project<'_>, node: &YamlNode) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let pairs: Vec<(&YamlNode, &str, &str)> = match &node.value {
        YamlValue::List(items) => items
            .iter()
            .filter_map(|item| {
                let (name, value) = item.text()?.split_once('=')?;
                Some((item, name, value))
            })
            .collect(),
        YamlValue::Map(pairs) => pairs
            .iter()
            .map(|(name, value)| (value, name.as_str(), value.text().unwrap_or_default()))
            .collect(),
        YamlValue::Scalar { .. } => Vec::new(),
    };
    for (at, name, value) in pairs {
        let name = project.variables.now(name);
        if !is_variable(&name) {
            project.wrong(at, format!("'{name}' is no name for a variable"));
            continue;
        }
        all.retain(|(other, _)| *other != name);
        all.push((name, value.to_owned()));
    }
    all
}
