//! process-compose's YAML: processes become jobs, `depends_on` becomes `when`.
//!
//! ```text
//! files ─► marks for variables ─► YAML ─► merged tree ─► Process (one for each replica) ─► jobs
//! ```
//!
//! What process-compose would refuse is an error here as well.

mod exit;
mod merge;
mod probe;
mod process;
mod strict;
mod template;
mod variables;

use super::{
    ForeignFile, Imported,
    draft::{Draft, Names, Table},
    yaml::{self, YamlNode, YamlValue},
};
use mainstay_config::{Context, Diagnostic, Errors};
use process::Process;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use variables::{Dotenv, Variables};

const MOST: usize = 10_000;
const MOST_WAITS: usize = 20_000;
const MOST_FILES: usize = 100;
/// Processes that are not started by themselves.
const ON_DEMAND: &str = "on-demand";

/// What holds for all processes.
struct Project<'a> {
    variables: Variables<'a>,
    /// Their names, as the nodes number them.
    files: Vec<String>,
    /// What runs a command line: `["bash", "-c"]`.
    shell: [String; 2],
    env: Vec<(String, String)>,
    vars: BTreeMap<String, String>,
    problems: Vec<Diagnostic>,
}

/// What a process waits for.
#[derive(Clone, Copy)]
struct Dependency<'a> {
    /// Its index.
    on: usize,
    condition: &'a str,
    node: &'a YamlNode,
}

pub(super) fn import(
    first: &ForeignFile,
    others: &[ForeignFile],
    ctx: &Context,
) -> Result<Imported, Errors> {
    let mut draft = Draft::new("a process-compose configuration", &first.source.name);
    let dotenv = Dotenv::read(Path::new(".env")).unwrap_or_else(|line| {
        draft.note_of(".env".to_owned(), line, "it is left out: this line is not understood");
        Dotenv::default()
    });
    let mut project = Project {
        variables: Variables::new(&ctx.env, dotenv),
        files: Vec::new(),
        shell: ["bash".to_owned(), "-c".to_owned()],
        env: Vec::new(),
        vars: BTreeMap::new(),
        problems: Vec::new(),
    };
    let mut tree = project.read(first)?;
    for file in others {
        let over = project.read(file)?;
        tree = merge::merge(tree, &over);
    }
    for (key, node) in tree.map() {
        project.about(&mut draft, key, node);
    }
    let nodes = project.extended(&tree);
    let mut names = Names::default();
    let mut processes: Vec<Process<'_>> = Vec::new();
    let mut index: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (name, node) in &nodes {
        let of_name = Process::all(name, node, &mut names, &mut project);
        for process in of_name {
            if processes.len() == MOST {
                let message = format!("more than {MOST} processes");
                return Err(Diagnostic::error(message).file(&first.source.name).into());
            }
            index.entry(process.replica_name.clone()).or_default().push(processes.len());
            if process.replica_name != *name {
                index.entry(name.clone()).or_default().push(processes.len());
            }
            processes.push(process);
        }
    }
    strict::check(&mut project, &mut draft, &tree, &processes);
    let waits = waits(&mut project, &processes, &index);
    let failing = exit::ending_by_failure(&project, &mut draft, &processes, &waits);
    let tables: Vec<Table> = processes
        .iter()
        .enumerate()
        .map(|(at, process)| {
            let ends = failing.contains(&at);
            process.table(&mut project, &mut draft, &waits[at], &processes, ends)
        })
        .collect();
    if !project.problems.is_empty() {
        return Err(Errors::of_file(project.problems));
    }
    if tables.is_empty() {
        return Err(nothing(&first.source.name).into());
    }
    if processes.iter().any(|process| process.deferred) {
        let mut app = Table::new(format!("apps.{ON_DEMAND}"), &first.source.name);
        app.remark("not started by themselves: mainstay start NAME");
        app.set("start_sequence", "0");
        draft.push(app);
    }
    tables.into_iter().for_each(|table| draft.push(table));
    Ok(draft.finish())
}

impl Project<'_> {
    fn file(&self, node: &YamlNode) -> &str {
        self.files.get(node.file).map_or("", String::as_str)
    }

    /// Something that process-compose would not have taken either, or that we cannot.
    fn wrong(&mut self, node: &YamlNode, message: impl Into<String>) {
        let at = format!("{}:{}", self.file(node), node.line);
        let found = Diagnostic::error(message.into()).file(at).help("correct it there");
        self.problems.push(found);
    }

    /// A file as a tree, with what it extends below it.
    fn read(&mut self, file: &ForeignFile) -> Result<YamlNode, Errors> {
        let number = self.files.len();
        let name = &file.source.name;
        if number == MOST_FILES {
            return Err(Diagnostic::error("too many files extend each other").file(name).into());
        }
        self.files.push(name.clone());
        let bad = |line: usize, why: String| {
            let help = "correct it: this is no YAML that process-compose would read";
            Errors::from(Diagnostic::error(format!("line {line}: {why}")).file(name).help(help))
        };
        let marked = self
            .variables
            .mark(&file.source.text)
            .map_err(|found| bad(file.source.line(found.at) + 1, found.why))?;
        let parsed = |text: &str| yaml::parse(text, number).map_err(|it| bad(it.line, it.why));
        let mut tree = parsed(&marked)?;
        let raw = tree.get("disable_env_expansion").and_then(|it| self.variables.truth(it));
        if raw == Some(true) {
            tree = parsed(&file.source.text)?;
        }
        let Some(below) = tree.get("extends").and_then(|it| self.variables.plain(it)) else {
            return Ok(tree);
        };
        let path = file.directory().join(below);
        let mut base = self.read(&ForeignFile::read(&path)?)?;
        run_in(&mut base, path.parent().unwrap_or(Path::new("/")));
        Ok(merge::merge(base, &tree))
    }

    /// The processes with what they extend.
    fn extended(&mut self, tree: &YamlNode) -> Vec<(String, YamlNode)> {
        let Some(processes) = tree.get("processes") else { return Vec::new() };
        let mut all = Vec::new();
        for (name, node) in processes.map() {
            match node.get("extends") {
                None => all.push((name.clone(), node.clone())),
                Some(at) => match merge::extended(processes, name) {
                    Ok(node) => all.push((name.clone(), node)),
                    Err(why) => self.wrong(at, why),
                },
            }
        }
        all
    }

    /// What becomes of the keys at the top.
    fn about(&mut self, draft: &mut Draft, key: &str, node: &YamlNode) {
        let filled = |key: &str| {
            node.get(key).and_then(|it| self.variables.plain(it)).filter(|it| !it.is_empty())
        };
        let message = match key {
            "version"
            | "processes"
            | "is_strict"
            | "is_tui_disabled"
            | "name"
            | "extends"
            | "disable_env_expansion"
            | "log_length"
            | "log_level"
            | "log_format"
            | "ordered_shutdown" => return,
            "environment" => {
                self.env = process::environment(self, node);
                return;
            }
            "vars" => {
                self.vars = process::vars(node);
                return;
            }
            "shell" => {
                let (command, argument) = (filled("shell_command"), filled("shell_argument"));
                command.into_iter().for_each(|it| self.shell[0] = it);
                argument.into_iter().for_each(|it| self.shell[1] = it);
                return;
            }
            "log_location" | "log_configuration" => {
                return draft.gather(self.file(node), node.line, LOGS);
            }
            // Extensions, which anchors live in.
            _ if key.starts_with("x-") => return,
            "env_cmds" => {
                "env_cmds: no command is run for a variable: set them yourself".to_owned()
            }
            _ => format!("'{key}' has no counterpart"),
        };
        draft.note_of(self.file(node).to_owned(), node.line, message);
    }
}

const LOGS: &str = "log_location, log_configuration: the log is in files of mainstay's own: mainstay \
                    logs NAME";

/// A file that is extended runs its processes where it is.
fn run_in(tree: &mut YamlNode, dir: &Path) {
    let YamlValue::Map(top) = &mut tree.value else { return };
    let Some((_, processes)) = top.iter_mut().find(|(key, _)| key == "processes") else { return };
    let YamlValue::Map(processes) = &mut processes.value else { return };
    for (_, process) in processes {
        let (file, line) = (process.file, process.line);
        let YamlValue::Map(keys) = &mut process.value else { continue };
        let own = keys.iter().find(|(key, _)| key == "working_dir");
        let own = own.and_then(|(_, node)| node.text()).unwrap_or_default();
        let text = dir.join(own).to_string_lossy().into_owned();
        let value = YamlValue::Scalar { text, plain: false };
        keys.retain(|(key, _)| key != "working_dir");
        keys.push(("working_dir".to_owned(), YamlNode { file, line, value }));
    }
}

/// Which process waits for which, and for what.
fn waits<'a>(
    project: &mut Project<'_>,
    processes: &[Process<'a>],
    index: &BTreeMap<String, Vec<usize>>,
) -> Vec<Vec<Dependency<'a>>> {
    let mut waits: Vec<Vec<Dependency<'a>>> = vec![Vec::new(); processes.len()];
    let mut edges = 0;
    for (at, process) in processes.iter().enumerate() {
        for (name, node) in process.node.get("depends_on").map(YamlNode::map).unwrap_or_default() {
            let Some(targets) = index.get(name) else {
                let message = format!("'{}' depends on '{name}', which is not there", process.name);
                project.wrong(node, message);
                continue;
            };
            let condition = node.get("condition").and_then(YamlNode::text);
            let condition = condition.unwrap_or("process_completed");
            for on in targets.iter().copied() {
                edges += 1;
                if edges > MOST_WAITS {
                    project.wrong(node, format!("more than {MOST_WAITS} dependencies"));
                    return waits;
                }
                // One that is not started is not waited for, as in the original.
                if processes[on].deferred {
                    continue;
                }
                if reaches(&waits, on, at) {
                    let message = format!("'{}' and '{name}' wait for each other", process.name);
                    project.wrong(node, message);
                    continue;
                }
                waits[at].push(Dependency { on, condition, node });
            }
        }
    }
    waits
}

fn reaches(waits: &[Vec<Dependency<'_>>], from: usize, to: usize) -> bool {
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(waits[at].iter().map(|dependency| dependency.on));
        }
    }
    false
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no process in this process-compose configuration")
        .file(file)
        .help("it needs a map 'processes', each with a command")
}
