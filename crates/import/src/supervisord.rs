//! supervisord's INI files: programs become jobs, groups become apps.
//!
//! What Supervisor does by default and Mainstay does not is written down (`stop.timeout`,
//! `start_seconds`, `start_retries`, separate stderr), so that a job behaves as its program did.
//! What Supervisor would refuse is an error here as well.

mod include;
mod output;
mod program;
mod servers;
mod text;

use super::{
    ForeignFile, Imported,
    draft::{Draft, Names, Table, inline, pair, quoted},
    ini::Section,
};
use include::Sections;
use mainstay_config::{Context, Diagnostic, Errors};
use program::{Globals, Program};
use std::collections::BTreeMap;

/// Jobs in the end.
const MOST_JOBS: usize = 10_000;
/// Of groups and programs.
const PRIORITY: i64 = 999;

pub(super) fn import(
    first: &ForeignFile,
    others: &[ForeignFile],
    ctx: &Context,
) -> Result<Imported, Errors> {
    let name = &first.source.name;
    let mut draft = Draft::new("a supervisord configuration", name);
    let Sections { all: sections, mut problems, .. } =
        Sections::read(&mut draft, first, others, ctx);
    let groups = groups(&sections, &mut problems);
    for section in &sections {
        about(&mut draft, section);
    }
    let globals = Globals::read(&sections, ctx, &mut problems);
    let mut programs = Vec::new();
    for section in &sections {
        let Some(name) = section.name.strip_prefix("program:").map(str::trim) else { continue };
        let group = groups.iter().find(|group| group.programs.iter().any(|it| it == name));
        let group = group.map(|group| (group.name.as_str(), group.priority));
        match Program::read(name, section, group, &globals) {
            Ok(program) => programs.push(program),
            Err(problem) => problems.push(*problem),
        }
    }
    programs.sort_by_cached_key(Program::rank);
    let mut names = Names::default();
    let mut apps: BTreeMap<String, String> = BTreeMap::new();
    let mut tables = Vec::new();
    for program in &programs {
        for mut table in program.tables(&mut draft, &mut names, &mut problems) {
            if tables.len() == MOST_JOBS {
                let message = format!("more than {MOST_JOBS} jobs");
                return Err(problem(name, 1, message).into());
            }
            join_app(program, &mut apps, &mut table);
            tables.push(table);
        }
    }
    if !problems.is_empty() {
        return Err(Errors::of_file(problems));
    }
    if tables.is_empty() {
        return Err(nothing(name).into());
    }
    let mut ranks: Vec<i64> = programs.iter().map(|program| program.priority).collect();
    ranks.dedup();
    if ranks.len() > 1 {
        let at = programs.iter().find_map(Program::priority_line);
        let (file, line) = at.unwrap_or((name, 1));
        let message = "priority: jobs start in that order; they stop together, not one after the \
                       other";
        draft.note_of(file.to_owned(), line, message);
    }
    draft.push(node(name));
    draft.push(log(name));
    if let Some(api) = servers::api(&mut draft, &sections, ctx) {
        draft.push(api);
    }
    for (name, valid) in &apps {
        draft.push(app(name, valid, &groups, &programs, &first.source.name));
    }
    tables.into_iter().for_each(|table| draft.push(table));
    Ok(draft.finish())
}

fn node(file: &str) -> Table {
    let mut node = Table::new("node", file);
    node.remark("as supervisord, it runs on when every job has ended");
    node.set("exit", quoted("never"));
    node
}

fn log(file: &str) -> Table {
    let mut log = Table::new("log", file);
    log.remark("supervisord's defaults; jobs say where they differ");
    log.set("forward", "false");
    log.set("keep", inline(&[pair("size", quoted("50M")), pair("files", "10")]));
    log
}

fn app(name: &str, valid: &str, groups: &[Group], programs: &[Program<'_>], file: &str) -> Table {
    let mut table = Table::new(format!("apps.{valid}"), file);
    if groups.iter().any(|group| group.name == name) {
        table.remark(format!("[group:{name}]"));
    } else if programs.iter().any(|program| program.name == name && !program.autostart) {
        table.remark("autostart=false: only by command");
        table.set("start_sequence", "0");
    } else {
        table.remark(format!("[program:{name}] numprocs: its processes are a group"));
    }
    table
}

fn join_app(program: &Program<'_>, apps: &mut BTreeMap<String, String>, table: &mut Table) {
    let app = match program.group {
        Some(group) => group,
        // A group of its own, as it is there.
        None if program.count > 1 || !program.autostart => program.name,
        None => return,
    };
    if !apps.contains_key(app) {
        let mut names = Names::default();
        apps.values().for_each(|taken| {
            names.take(taken, None);
        });
        apps.insert(app.to_owned(), names.take(app, None));
    }
    table.set_if_some("app", apps.get(app).map(|app| quoted(app)));
    if program.group.is_some() && !program.autostart {
        table.set("place", inline(&[pair("start_sequence", "0")]));
    }
}

struct Group {
    name: String,
    priority: i64,
    programs: Vec<String>,
}

fn groups(sections: &[Section], problems: &mut Vec<Diagnostic>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for section in sections {
        let Some(name) = section.name.strip_prefix("group:").map(str::trim) else { continue };
        let mut wrong = |key: &str, message: String| {
            let line = section.get(key).map_or(section.line, |entry| entry.line);
            problems.push(problem(&section.file, line, format!("[group:{name}]: {message}")));
        };
        let listed = section.get("programs").map(|entry| entry.value.as_str());
        let mut programs: Vec<String> = Vec::new();
        let all = listed.unwrap_or_default().split([',', '\n']).map(str::trim);
        for program in all.filter(|it| !it.is_empty()) {
            let of = |kind: &str| sections.iter().any(|it| it.name == format!("{kind}:{program}"));
            if of("program") {
                programs.push(program.to_owned());
            } else if !of("fcgi-program") {
                wrong("programs", format!("there is no program '{program}'"));
            }
        }
        let priority = section.get("priority").map_or(Ok(PRIORITY), |entry| entry.value.parse());
        if priority.is_err() {
            wrong("priority", "its priority is no number".to_owned());
        }
        let priority = priority.unwrap_or(PRIORITY);
        groups.push(Group { name: name.to_owned(), priority, programs });
    }
    groups
}

/// What becomes of sections that are no program.
fn about(draft: &mut Draft, section: &Section) {
    let name = section.name.as_str();
    let message = match name.split(':').next().unwrap_or_default() {
        "program" | "group" | "supervisord" | "supervisorctl" | "unix_http_server" => return,
        "rpcinterface" if name == "rpcinterface:supervisor" => return,
        "inet_http_server" => {
            "nothing listens there: put the password into a file and add [api] xmlrpc = { listen, \
             user, password_file }"
                .to_owned()
        }
        "eventlistener" => {
            "it is not run: a job with when, or mainstay events, follows events here".to_owned()
        }
        "fcgi-program" => {
            "it is not run: write a job with sockets, passed as LISTEN_FDS".to_owned()
        }
        _ => "it has no counterpart".to_owned(),
    };
    draft.note_of(section.file.clone(), section.line, format!("[{name}]: {message}"));
}

/// Something that Supervisor would not have taken either.
fn problem(file: &str, line: usize, message: String) -> Diagnostic {
    Diagnostic::error(message).file(format!("{file}:{line}")).help("correct it there")
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no [program:x] in this supervisord configuration")
        .file(file)
        .help("a program needs a name and a command")
}
