//! supervisord's INI files: programs become jobs, groups become apps.
//!
//! What Supervisor does by default and Mainstay does not is written down (`stop.timeout`,
//! `start_seconds`, `start_retries`, separate stderr), so that a job behaves as its program did.
//! What Supervisor would refuse is an error here as well.

pub(super) mod include;
mod output;
pub(super) mod program;
mod servers;
pub(super) mod text;

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

/// What becomes of groups, and of sections that Supervisor itself does not know.
pub(super) trait Grouping {
    fn groups(&self) -> &[Group];
    /// It tells of this section itself.
    fn takes(&self, section: &Section) -> bool;
    /// Puts the jobs of all processes where they belong; the tables that this needs.
    fn place(
        &mut self,
        draft: &mut Draft,
        programs: &[Program<'_>],
        processes: &mut [ProgramProcess],
    ) -> Vec<Table>;
    /// What is to be said in `[node]`.
    fn node(&self, table: &mut Table);
}

pub(super) fn import(
    first: &ForeignFile,
    others: &[ForeignFile],
    ctx: &Context,
) -> Result<Imported, Errors> {
    let mut draft = Draft::new("a supervisord configuration", &first.source.name);
    let others: Vec<&ForeignFile> = others.iter().collect();
    let mut sections = Sections::read(&mut draft, first, &others, ctx);
    let mut groups = Groups::read(&mut sections, &first.source.name);
    convert(draft, sections, &first.source.name, ctx, &mut groups)
}

/// The configuration that does what these sections say. `name`: the file they came from.
pub(super) fn convert(
    mut draft: Draft,
    sections: Sections,
    name: &str,
    ctx: &Context,
    grouping: &mut dyn Grouping,
) -> Result<Imported, Errors> {
    let Sections { all: sections, mut problems, .. } = sections;
    let groups = grouping.groups().to_vec();
    for section in sections.iter().filter(|section| !grouping.takes(section)) {
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
    let mut processes: Vec<ProgramProcess> = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        let made = program.tables(&mut draft, &mut names, &mut problems);
        if processes.len() + made.len() > MOST_JOBS {
            let message = format!("more than {MOST_JOBS} jobs");
            return Err(problem(name, 1, message).into());
        }
        let made = made.into_iter().enumerate();
        processes.extend(made.map(|(index, (name, table))| ProgramProcess {
            program: at,
            index,
            name,
            table,
        }));
    }
    if !problems.is_empty() {
        return Err(Errors::of_file(problems));
    }
    if processes.is_empty() {
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
    let placed = grouping.place(&mut draft, &programs, &mut processes);
    let mut own = node(name);
    grouping.node(&mut own);
    draft.push(own);
    draft.push(log(name));
    if let Some(api) = servers::api(&mut draft, &sections, ctx) {
        draft.push(api);
    }
    placed.into_iter().for_each(|table| draft.push(table));
    processes.into_iter().for_each(|process| draft.push(process.table));
    Ok(draft.finish())
}

/// A process of a program, and the job it becomes.
pub(super) struct ProgramProcess {
    /// Its place among the programs.
    pub(super) program: usize,
    /// Among the processes of its program.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) table: Table,
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

/// Groups as Supervisor has them: each is an app.
pub(super) struct Groups {
    all: Vec<Group>,
    file: String,
    /// The valid name of each app.
    apps: BTreeMap<String, String>,
}

impl Groups {
    pub(super) fn read(sections: &mut Sections, file: &str) -> Groups {
        let all = groups(&sections.all, &mut sections.problems);
        Groups { all, file: file.to_owned(), apps: BTreeMap::new() }
    }

    /// The valid name of an app, whatever it is called there.
    pub(super) fn app(&mut self, app: &str) -> String {
        if let Some(known) = self.apps.get(app) {
            return known.clone();
        }
        let mut names = Names::default();
        self.apps.values().for_each(|taken| {
            names.take(taken, None);
        });
        let valid = names.take(app, None);
        self.apps.insert(app.to_owned(), valid.clone());
        valid
    }

    pub(super) fn join(&mut self, program: &Program<'_>, table: &mut Table) {
        let app = match program.group {
            Some(group) => group,
            // A group of its own, as it is there.
            None if program.count > 1 || !program.autostart => program.name,
            None => return,
        };
        let valid = self.app(app);
        table.set("app", quoted(&valid));
        if program.group.is_some() && !program.autostart {
            table.set("place", inline(&[pair("start_sequence", "0")]));
        }
    }

    /// The tables of the apps so far.
    pub(super) fn tables(&self, programs: &[Program<'_>]) -> Vec<Table> {
        let apps = self.apps.iter();
        apps.map(|(name, valid)| app(name, valid, &self.all, programs, &self.file)).collect()
    }
}

impl Grouping for Groups {
    fn groups(&self) -> &[Group] {
        &self.all
    }

    fn takes(&self, _: &Section) -> bool {
        false
    }

    fn place(
        &mut self,
        _: &mut Draft,
        programs: &[Program<'_>],
        processes: &mut [ProgramProcess],
    ) -> Vec<Table> {
        for process in processes {
            self.join(&programs[process.program], &mut process.table);
        }
        self.tables(programs)
    }

    fn node(&self, _: &mut Table) {}
}

/// A `[group:x]`.
#[derive(Clone)]
pub(super) struct Group {
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
        "supvisors" => SUPVISORS.to_owned(),
        "rpcinterface" | "ctlplugin" if name.ends_with(":supvisors") => SUPVISORS.to_owned(),
        _ => "it has no counterpart".to_owned(),
    };
    draft.note_of(section.file.clone(), section.line, format!("[{name}]: {message}"));
}

const SUPVISORS: &str = "the fleet is not made: mainstay import supvisors makes one of it";

/// Something that Supervisor would not have taken either.
pub(super) fn problem(file: &str, line: usize, message: String) -> Diagnostic {
    Diagnostic::error(message).file(format!("{file}:{line}")).help("correct it there")
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no [program:x] in this supervisord configuration")
        .file(file)
        .help("a program needs a name and a command")
}
