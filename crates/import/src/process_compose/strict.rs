//! `is_strict: true`: what process-compose only logs otherwise keeps it from starting.

use super::{Project, process::Process};
use crate::{draft::Draft, yaml::YamlNode};
use std::collections::BTreeMap;

/// The keys of a process. Later versions may have more: an unknown one is a note and no error.
const KEYS: &[&str] = &[
    "availability",
    "command",
    "depends_on",
    "description",
    "disable_ansi_colors",
    "disabled",
    "entrypoint",
    "env_file",
    "environment",
    "extends",
    "is_daemon",
    "is_disabled",
    "is_dotenv_disabled",
    "is_elevated",
    "is_foreground",
    "is_interactive",
    "is_template_disabled",
    "is_tty",
    "launch_timeout_seconds",
    "liveness_probe",
    "log_configuration",
    "log_location",
    "max_concurrent",
    "mcp",
    "name",
    "namespace",
    "readiness_probe",
    "ready_log_line",
    "replicas",
    "schedule",
    "shutdown",
    "success_exit_codes",
    "vars",
    "watch",
    "working_dir",
];

/// What a strict process-compose would not have started with.
pub(super) fn check(
    project: &mut Project<'_>,
    draft: &mut Draft,
    tree: &YamlNode,
    processes: &[Process<'_>],
) {
    let strict = tree.get("is_strict").and_then(|it| project.variables.truth(it));
    if strict != Some(true) {
        return;
    }
    let by_name: BTreeMap<&str, &Process<'_>> =
        processes.iter().map(|process| (process.name, process)).collect();
    for process in by_name.values() {
        for (key, node) in process.node.map() {
            if !key.starts_with("x-") && !KEYS.contains(&key.as_str()) {
                let message = format!(
                    "is_strict: process-compose may not know '{key}' of '{}', and would not start; \
                     it is passed over here",
                    process.name
                );
                draft.note_of(project.file(node).to_owned(), node.line, message);
            }
        }
        let depends_on = process.node.get("depends_on").map(YamlNode::map).unwrap_or_default();
        for (name, node) in depends_on {
            if by_name.get(name.as_str()).is_some_and(|it| it.disabled) {
                let message =
                    format!("is_strict: '{}' depends on '{name}', which is disabled", process.name);
                project.wrong(node, message);
            }
        }
    }
}
