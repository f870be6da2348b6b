//! What ends the whole: `exit_on_end`, `exit_on_skipped`, `restart: exit_on_failure`.

use super::{Dependency, Project, process::Process};
use crate::{
    draft::{Draft, Table, inline, pair, quoted},
    yaml::YamlNode,
};
use std::collections::BTreeSet;

const MOST_SECONDS: u32 = 1_000_000;

/// The processes whose failure ends the whole because another would be skipped.
pub(super) fn ending_by_failure(
    project: &Project<'_>,
    draft: &mut Draft,
    processes: &[Process<'_>],
    waits: &[Vec<Dependency<'_>>],
) -> BTreeSet<usize> {
    let mut ending = BTreeSet::new();
    for (process, waits) in processes.iter().zip(waits) {
        let Some(node) = availability(process, "exit_on_skipped") else { continue };
        if project.variables.truth(node) != Some(true) {
            continue;
        }
        for dependency in waits {
            match dependency.condition {
                "process_completed_successfully" => {
                    ending.insert(dependency.on);
                }
                "process_healthy" | "process_log_ready" => draft.gather(
                    project.file(node),
                    node.line,
                    "exit_on_skipped: it waits on if what it depends on ends before it is healthy",
                ),
                _ => {}
            }
        }
    }
    ending
}

fn availability<'a>(process: &Process<'a>, key: &str) -> Option<&'a YamlNode> {
    process.node.get("availability").and_then(|it| it.get(key))
}

impl Process<'_> {
    /// What follows its end.
    pub(super) fn ending(
        &self,
        project: &mut Project<'_>,
        draft: &mut Draft,
        table: &mut Table,
        ends_by_failure: bool,
    ) {
        let get = |key: &str| availability(self, key);
        let number = |project: &Project<'_>, key: &str| {
            get(key).and_then(|it| project.variables.number(it)).filter(|it| *it <= MOST_SECONDS)
        };
        let policy = get("restart").and_then(|it| project.variables.plain(it));
        let policy = policy.unwrap_or_else(|| "no".to_owned());
        let on = match policy.as_str() {
            "always" => "any",
            "on_failure" => "failure",
            "exit_on_failure" | "no" | "" | "never" | "false" => "never",
            other => {
                let message = format!("'{}': restart '{other}' is not known", self.name);
                project.wrong(get("restart").unwrap_or(self.node), message);
                "never"
            }
        };
        if on == "never" {
            table.set("restart", quoted("never"));
        } else {
            let seconds = number(project, "backoff_seconds").unwrap_or(1).max(1);
            let delay = quoted(&format!("{seconds}s"));
            let mut pairs = vec![
                pair("on", quoted(on)),
                pair("delay", delay.clone()),
                pair("max_delay", delay),
            ];
            let limit = number(project, "max_restarts").filter(|it| *it > 0);
            pairs.extend(limit.map(|limit| pair("limit", limit.to_string())));
            table.set("restart", inline(&pairs));
        }
        let codes = self.success_codes(project);
        if !codes.is_empty() {
            table.set("exit_codes", format!("{codes:?}"));
        }
        let truth = |key: &str| get(key).filter(|it| project.variables.truth(it) == Some(true));
        match truth("exit_on_end") {
            Some(node) if self.node.get("schedule").is_some() => {
                let message = "exit_on_end: the end of a scheduled process does not end the others";
                draft.gather(project.file(node), node.line, message);
            }
            Some(_) => table.set("main", "true"),
            None => {}
        }
        if policy == "exit_on_failure" || ends_by_failure {
            table.set("exit_on_failure", "true");
        }
    }

    /// All that count as success, if there are others than 0.
    fn success_codes(&self, project: &mut Project<'_>) -> Vec<u32> {
        let Some(node) = self.node.get("success_exit_codes") else { return Vec::new() };
        let mut codes = vec![0];
        for item in node.items() {
            match project.variables.number(item).filter(|code| *code <= 255) {
                Some(code) if codes.contains(&code) => {}
                Some(code) => codes.push(code),
                None => {
                    let message = format!("'{}': success_exit_codes are 0 to 255", self.name);
                    project.wrong(item, message);
                }
            }
        }
        if codes.len() > 1 { codes } else { Vec::new() }
    }
}
