//! supervisord's INI files: programs become jobs, groups become apps.
//!
//! What Supervisor does by default and Mainstay does not is written down (`stop.timeout`,
//! `start_seconds`, separate stderr), so that a job behaves as its program did.

mod program;
mod text;

use super::{
    Imported,
    draft::{Draft, Names, Table, inline, pair, quoted},
    ini::{self, Section},
};
use mainstay_config::{Diagnostic, Errors, Source};
use program::Program;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Included files, and jobs in the end.
const MOST_FILES: usize = 1000;
pub(super) const MOST_JOBS: usize = 10_000;
/// Programs that are not started by themselves.
const ON_DEMAND: &str = "on-demand";

pub(super) fn import(source: &Source, path: &Path) -> Result<Imported, Errors> {
    let mut draft = Draft::new("a supervisord configuration", &source.name);
    let sections = with_includes(&mut draft, &source.name, &source.text, path);
    let groups = groups(&mut draft, &sections);
    let global = sections.iter().find(|section| section.name == "supervisord");
    for section in &sections {
        about(&mut draft, section);
    }
    draft.note(
        None,
        "failed starts are tried again with pauses that grow to 30 s, without limit (startretries); \
         logs are files of Mainstay's own: mainstay logs NAME",
    );

    let mut programs: Vec<Program<'_>> = sections
        .iter()
        .filter_map(|section| {
            let name = section.name.strip_prefix("program:")?.trim();
            let group = groups.iter().find(|group| group.programs.iter().any(|it| it == name));
            Some(Program::new(name, section, group.map(|group| group.name.as_str()), global))
        })
        .collect();
    // Supervisor starts by priority, lowest first; here jobs start in the order of the file.
    programs.sort_by_key(|program| program.priority);
    let mut names = Names::default();
    let mut apps: BTreeMap<String, String> = BTreeMap::new();
    let mut tables = Vec::new();
    for program in &programs {
        if tables.len() >= MOST_JOBS {
            draft.note(None, format!("left out: more than {MOST_JOBS} jobs"));
            break;
        }
        for mut table in program.tables(&mut draft, &mut names) {
            let app = program.group.map(str::to_owned);
            let app = app.or_else(|| (!program.autostart).then(|| ON_DEMAND.to_owned()));
            if let Some(app) = app {
                let mut taken = Names::default();
                let valid = apps.entry(app.clone()).or_insert_with(|| taken.take(&app, None));
                table.set("app", quoted(valid));
                if program.group.is_some() && !program.autostart {
                    table.set("place", inline(&[pair("start_sequence", "0")]));
                }
            }
            if !program.autostart {
                let line = program.line("autostart");
                table.note(line, "autostart = false: start it with mainstay start NAME");
            }
            tables.push(table);
        }
    }
    if tables.is_empty() {
        return Err(nothing(&source.name).into());
    }
    tables.truncate(MOST_JOBS);
    let mut node = Table::new("node", &source.name);
    node.note(None, "as supervisord, the node runs on when every job has ended");
    node.set("exit", quoted("never"));
    draft.push(node);
    let mut log = Table::new("log", &source.name);
    log.note(None, "supervisord's defaults; jobs say where they differ");
    log.set("forward", "false");
    log.set("keep", inline(&[pair("size", quoted("50M")), pair("files", "10")]));
    draft.push(log);
    let mut written: Vec<&String> = Vec::new();
    for (name, valid) in &apps {
        if written.contains(&valid) {
            continue;
        }
        written.push(valid);
        let mut table = Table::new(format!("apps.{valid}"), &source.name);
        if name == ON_DEMAND {
            table.note(None, "programs with autostart = false: not started by themselves");
            table.set("start_sequence", "0");
        } else {
            let line = groups.iter().find(|group| group.name == *name).map(|group| group.line);
            table.note(line, format!("[group:{name}] is an app: its jobs start and stop together"));
        }
        draft.push(table);
    }
    for table in tables {
        draft.push(table);
    }
    Ok(draft.finish())
}

/// The sections of the file and of what it includes.
fn with_includes(draft: &mut Draft, name: &str, text: &str, path: &Path) -> Vec<Section> {
    let here = directory(path);
    let (mut sections, strays) = ini::parse(name, text);
    place(&mut sections, &here);
    for stray in strays {
        draft.note(stray.line, "left out: neither [section] nor key = value");
    }
    let include = sections.iter().find(|section| section.name == "include").cloned();
    let Some(files) = include.as_ref().and_then(|section| section.get("files")) else {
        return sections;
    };
    let mut seen = 0;
    for pattern in files.value.split_whitespace() {
        let pattern = pattern.replace("%%", "%");
        let found = glob(&here.join(&pattern));
        if found.is_empty() {
            draft.note(files.line, format!("include '{pattern}' matches no file"));
        }
        for path in found {
            seen += 1;
            if seen > MOST_FILES {
                draft.note(files.line, format!("left out: more than {MOST_FILES} included files"));
                return sections;
            }
            let name = path.to_string_lossy().into_owned();
            let Ok(source) = Source::read(&path) else {
                draft.note(files.line, format!("'{name}' cannot be read and is left out"));
                continue;
            };
            let (mut more, strays) = ini::parse(&name, &source.text);
            place(&mut more, &directory(&path));
            for stray in strays {
                draft.note_of(
                    name.clone(),
                    stray.line,
                    "left out: neither [section] nor key = value",
                );
            }
            for section in more {
                match sections.iter_mut().find(|it| it.name == section.name) {
                    Some(first) => {
                        let message = format!(
                            "[{}] is there again: its keys go over the first",
                            section.name
                        );
                        draft.note_of(name.clone(), section.line, message);
                        first.go_over(section);
                    }
                    None => sections.push(section),
                }
            }
        }
    }
    sections
}

/// The directory of a file, whatever directory we are in.
fn directory(file: &Path) -> PathBuf {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    whole.parent().map(Path::to_owned).unwrap_or(whole)
}

/// `%(here)s` is the directory of the file that says so.
fn place(sections: &mut [Section], here: &Path) {
    let here = here.to_string_lossy().replace('%', "%%");
    for entry in sections.iter_mut().flat_map(|section| &mut section.entries) {
        if entry.value.contains("%(here)s") {
            entry.value = entry.value.replace("%(here)s", &here);
        }
    }
}

/// Files that match a pattern with `*` and `?` in its last part, sorted.
fn glob(pattern: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(last)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let last = last.to_string_lossy();
    if !last.contains(['*', '?']) {
        return if pattern.is_file() { vec![pattern.to_owned()] } else { Vec::new() };
    }
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| matches(&last, &entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Which prefixes of the pattern match the name so far.
    let mut row = vec![false; pattern.len() + 1];
    row[0] = true;
    let stars = |row: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            if pattern[at] == '*' && row[at] {
                row[at + 1] = true;
            }
        }
    };
    stars(&mut row);
    for c in name {
        let mut next = vec![false; pattern.len() + 1];
        for at in 0..pattern.len() {
            let fits = pattern[at] == '?' || pattern[at] == c;
            next[at + 1] =
                (row[at] && fits && pattern[at] != '*') || (pattern[at] == '*' && row[at + 1]);
        }
        stars(&mut next);
        row = next;
    }
    row[pattern.len()]
}

struct Group {
    name: String,
    line: usize,
    programs: Vec<String>,
}

fn groups(draft: &mut Draft, sections: &[Section]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for section in sections {
        let Some(name) = section.name.strip_prefix("group:") else { continue };
        let listed = section.get("programs");
        let names = listed.iter().flat_map(|entry| entry.value.split([',', '\n']));
        let mut programs: Vec<String> = Vec::new();
        for program in names.map(str::trim).filter(|it| !it.is_empty()) {
            let of = |kind: &str| sections.iter().any(|it| it.name == format!("{kind}:{program}"));
            let taken = |group: &&Group| group.programs.iter().any(|it| it == program);
            let why = match groups.iter().find(taken) {
                _ if of("fcgi-program") => "it is a fcgi-program, which is not mapped".to_owned(),
                _ if !of("program") => "there is no such program".to_owned(),
                Some(first) => format!("it is in [group:{}] already", first.name),
                None => {
                    programs.push(program.to_owned());
                    continue;
                }
            };
            let line = listed.map_or(section.line, |entry| entry.line);
            let message = format!("[group:{}]: '{program}' is left out: {why}", name.trim());
            draft.note_of(section.file.clone(), line, message);
        }
        if programs.is_empty() {
            let message = format!("[group:{}] is left out: it has no programs", name.trim());
            draft.note_of(section.file.clone(), section.line, message);
        }
        if let Some(priority) = section.get("priority") {
            let message = "priority of a group: set start_sequence of the app if the order matters";
            draft.note_of(section.file.clone(), priority.line, message);
        }
        groups.push(Group { name: name.trim().to_owned(), line: section.line, programs });
    }
    groups
}

/// What becomes of sections that are no program.
fn about(draft: &mut Draft, section: &Section) {
    let mut note =
        |line: usize, message: String| draft.note_of(section.file.clone(), line, message);
    let name = section.name.as_str();
    let kind = name.split(':').next().unwrap_or_default();
    match kind {
        "program" | "group" | "include" | "supervisorctl" | "rpcinterface" => {}
        "supervisord" => {
            for entry in &section.entries {
                match entry.key.as_str() {
                    // Used for every program, or without a counterpart that anybody would miss.
                    "environment" | "umask" | "directory" | "nodaemon" | "pidfile" | "logfile"
                    | "logfile_maxbytes" | "logfile_backups" | "loglevel" | "childlogdir"
                    | "silent" | "nocleanup" | "strip_ansi" | "identifier" => {}
                    "user" => note(
                        entry.line,
                        "user of supervisord: run mainstay as that user, or set user of the jobs"
                            .to_owned(),
                    ),
                    "minfds" => note(
                        entry.line,
                        format!("minfds: add limits = {{ nofile = {} }} to the jobs", entry.value),
                    ),
                    "minprocs" => note(
                        entry.line,
                        format!("minprocs: add limits = {{ nproc = {} }} to the jobs", entry.value),
                    ),
                    other => note(entry.line, format!("'{other}' has no counterpart")),
                }
            }
        }
        "unix_http_server" | "inet_http_server" => {
            note(section.line, format!("[{name}]: the API of mainstay is on its own unix socket"))
        }
        "eventlistener" => note(
            section.line,
            format!("[{name}] is not mapped: follow events with mainstay events or a when"),
        ),
        "fcgi-program" => note(
            section.line,
            format!(
                "[{name}] is not mapped: use a job with sockets, which are passed as LISTEN_FDS"
            ),
        ),
        _ => note(section.line, format!("[{name}] is not mapped")),
    }
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error("there is no usable [program:x] in this supervisord configuration")
        .file(file)
        .help("a program needs a name and a command")
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".a.conf", false),
            ("a?c*", "abc", true),
            ("a?c*", "ac", false),
            ("*", "x", true),
            ("**a*b", "xxaxxb", true),
            ("a", "b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
