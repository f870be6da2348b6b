//! process-compose's YAML: processes become jobs, `depends_on` becomes `when`.

mod probe;
mod process;

use super::{
    Imported,
    draft::{Draft, Names, Table},
    yaml::{self, YamlNode, YamlValue},
};
use mainstay_config::{Diagnostic, Errors, Source};
use process::Process;
use std::collections::BTreeMap;

const MOST: usize = 10_000;
const MOST_WAITS: usize = 20_000;
/// Processes that are not started by themselves.
const ON_DEMAND: &str = "on-demand";

/// What holds for all processes.
struct ProcessDefaults {
    /// What runs a command line: `["bash", "-c"]`.
    shell: [String; 2],
    env: Vec<(String, String)>,
    file: String,
}

pub(super) fn import(source: &Source) -> Result<Imported, Errors> {
    let tree = yaml::parse(&source.text).map_err(|bad| {
        Diagnostic::error(format!("line {}: {}", bad.line, bad.why))
            .file(&source.name)
            .help("correct it: this is no YAML that process-compose would read")
    })?;
    let mut draft = Draft::new("a process-compose configuration", &source.name);
    let mut defaults = ProcessDefaults {
        shell: ["bash".to_owned(), "-c".to_owned()],
        env: Vec::new(),
        file: source.name.clone(),
    };
    for (key, node) in tree.map() {
        about(&mut draft, &mut defaults, key, node);
    }
    let all = tree.get("processes").map(YamlNode::map).unwrap_or_default();
    if all.len() > MOST {
        draft.note(None, format!("left out: more than {MOST} processes"));
    }
    let mut names = Names::default();
    let mut processes: Vec<Process<'_>> = Vec::new();
    let mut index: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, node) in all.iter().take(MOST) {
        match Process::new(name, node, &mut names, &mut draft) {
            Some(process) => {
                index.insert(name, processes.len());
                processes.push(process);
            }
            None => continue,
        }
    }
    if processes.is_empty() {
        return Err(nothing(&source.name).into());
    }
    let waits = waits(&mut draft, &processes, &index);
    let mut main = false;
    let mut tables = Vec::new();
    for (process, waits) in processes.iter().zip(waits) {
        tables.push(process.table(&defaults, &waits, &processes, &mut main));
    }
    if processes.iter().any(|process| process.disabled) {
        let mut app = Table::new(format!("apps.{ON_DEMAND}"), &source.name);
        app.note(None, "disabled processes: not started by themselves");
        app.set("start_sequence", "0");
        draft.push(app);
    }
    for table in tables {
        draft.push(table);
    }
    Ok(draft.finish())
}

/// Which process waits for which, and for what; what would be a circle is left out.
fn waits<'a>(
    draft: &mut Draft,
    processes: &[Process<'a>],
    index: &BTreeMap<&str, usize>,
) -> Vec<Vec<(usize, &'a str, usize)>> {
    let mut waits: Vec<Vec<(usize, &str, usize)>> = vec![Vec::new(); processes.len()];
    let mut edges = 0;
    for (at, process) in processes.iter().enumerate() {
        for (name, node) in process.node.get("depends_on").map(YamlNode::map).unwrap_or_default() {
            let Some(to) = index.get(name.as_str()).copied() else {
                draft.note(node.line, format!("depends_on '{name}' is left out: no such process"));
                continue;
            };
            edges += 1;
            if edges > MOST_WAITS {
                draft.note(
                    node.line,
                    format!("left out from here: more than {MOST_WAITS} dependencies"),
                );
                return waits;
            }
            if reaches(&waits, to, at) {
                let message = format!(
                    "'{}' depends_on '{name}' is left out: they would wait for each other",
                    process.name
                );
                draft.note(node.line, message);
                continue;
            }
            let condition = node.get("condition").and_then(YamlNode::text);
            waits[at].push((to, condition.unwrap_or("process_completed"), node.line));
        }
    }
    waits
}

fn reaches(waits: &[Vec<(usize, &str, usize)>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; waits.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            open.extend(waits[at].iter().map(|(next, _, _)| *next));
        }
    }
    false
}

/// What becomes of the keys at the top.
fn about(draft: &mut Draft, defaults: &mut ProcessDefaults, key: &str, node: &YamlNode) {
    match key {
        "version" | "processes" | "is_strict" | "is_tui_disabled" | "is_dotenv_disabled"
        | "name" => {}
        "environment" => {
            defaults.env = process::environment(node, |line, why| draft.note(line, why))
        }
        "shell" => {
            let filled =
                |key: &str| node.get(key).and_then(YamlNode::text).filter(|it| !it.is_empty());
            if let Some(shell) = filled("shell_command") {
                defaults.shell[0] = shell.to_owned();
            }
            if let Some(argument) = filled("shell_argument") {
                defaults.shell[1] = argument.to_owned();
            }
        }
        "log_location" | "log_level" | "log_length" | "log_configuration" => {
            draft.note(node.line, format!("{key}: see mainstay logs, and the table [log]"));
        }
        // Extensions, which anchors live in.
        _ if key.starts_with("x-") => {}
        _ if matches!(node.value, YamlValue::Scalar { .. }) => {
            draft.note(node.line, format!("'{key}' is not mapped"));
        }
        _ => draft.note(node.line, format!("'{key}' is not mapped: write what it says by hand")),
    }
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no usable process in this process-compose configuration")
        .file(file)
        .help("it needs a map 'processes', each with a command")
}
