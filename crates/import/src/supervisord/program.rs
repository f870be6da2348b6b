//! One `[program:x]`, and the jobs it becomes.

use super::{
    MOST_JOBS,
    text::{Number, Scope, ValueError, expand, size, truth, variables},
};
use crate::{
    draft::{Draft, Names, Table, inline, is_variable, pair, quoted},
    ini::{Entry, Section},
};
use mainstay_config::shell_words;
use mainstay_core::signal::Signal;

const MOST_PROCESSES: u32 = 1000;

pub(super) struct Program<'a> {
    name: &'a str,
    section: &'a Section,
    pub(super) group: Option<&'a str>,
    global: Option<&'a Section>,
    pub(super) priority: i64,
    pub(super) autostart: bool,
}

impl<'a> Program<'a> {
    pub(super) fn new(
        name: &'a str,
        section: &'a Section,
        group: Option<&'a str>,
        global: Option<&'a Section>,
    ) -> Program<'a> {
        let number = |key: &str| section.get(key).and_then(|entry| entry.value.parse().ok());
        Program {
            name,
            section,
            group,
            global,
            priority: number("priority").unwrap_or(999),
            autostart: section.get("autostart").and_then(|it| truth(&it.value)).unwrap_or(true),
        }
    }

    pub(super) fn line(&self, key: &str) -> usize {
        self.section.get(key).map_or(self.section.line, |entry| entry.line)
    }

    /// A table for each job; none if the program cannot be run.
    pub(super) fn tables(&self, draft: &mut Draft, names: &mut Names) -> Vec<Table> {
        let number = |key: &str, default: u32| {
            self.section.get(key).map_or(Some(default), |entry| entry.value.parse().ok())
        };
        let count = number("numprocs", 1).filter(|count| (1..=MOST_PROCESSES).contains(count));
        let first = number("numprocs_start", 0).filter(|first| *first < 1 << 20);
        let (Some(count), Some(first)) = (count, first) else {
            self.left_out(draft, "numprocs", "numprocs is not a number from 1 to 1000");
            return Vec::new();
        };
        if count == 1 {
            return self.table(draft, names, Number::Known(first), count).into_iter().collect();
        }
        // Numbered as instances are, or not used but for the name: one job with instances.
        let used = self
            .section
            .entries
            .iter()
            .any(|entry| entry.key != "process_name" && entry.value.contains("%(process_num)"));
        let padded =
            self.section.entries.iter().any(|entry| {
                entry.key != "process_name" && entry.value.contains("%(process_num)0")
            });
        if !used || (first == 1 && !padded) {
            return self.table(draft, names, Number::Instance, count).into_iter().collect();
        }
        (first..first + count)
            .take(MOST_JOBS)
            .map_while(|number| self.table(draft, names, Number::Known(number), count))
            .collect()
    }

    fn left_out(&self, draft: &mut Draft, key: &str, why: &str) {
        let message = format!("[program:{}] is left out: {why}", self.name);
        draft.note_of(self.section.file.clone(), self.line(key), message);
    }

    fn table(
        &self,
        draft: &mut Draft,
        names: &mut Names,
        number: Number,
        count: u32,
    ) -> Option<Table> {
        let group = self.group.unwrap_or(self.name);
        let scope = Scope { program: self.name, group, number, count };
        let command = match self.section.get("command") {
            None => {
                self.left_out(draft, "", "it has no command");
                return None;
            }
            Some(entry) => match runnable(&entry.value, &scope) {
                Ok(command) => command,
                Err(why) => {
                    self.left_out(draft, "command", &why.to_string());
                    return None;
                }
            },
        };
        let instances = (number == Number::Instance).then_some(count);
        let wanted = self.process_name(&scope, instances);
        let name = names.take(&wanted, instances);
        let mut table = Table::new(format!("jobs.{name}"), &self.section.file);
        if name != wanted {
            let message = format!("'{wanted}' is renamed: it is no name here or is there twice");
            table.note(self.section.line, message);
        }
        table.set("exec", quoted(&command));
        if let Some(count) = instances {
            table.set("instances", count.to_string());
            let message = format!("numprocs: its processes are called {name}-1 to {name}-{count}");
            table.note(self.line("numprocs"), message);
        }
        self.running(&mut table);
        self.stopping(&mut table);
        self.environment(&mut table, &scope);
        self.output(&mut table);
        self.rest(&mut table);
        Some(table)
    }

    fn process_name(&self, scope: &Scope<'_>, instances: Option<u32>) -> String {
        if instances.is_some() {
            return self.name.to_owned();
        }
        let default = if scope.count == 1 { self.name } else { "%(program_name)s_%(process_num)d" };
        let written = self.section.get("process_name").map_or(default, |entry| &entry.value);
        expand(written, scope).unwrap_or_else(|_| self.name.to_owned())
    }

    /// Sets a key from a value that is a number of seconds.
    fn seconds(&self, table: &mut Table, key: &str, default: u32) -> u32 {
        let Some(entry) = self.section.get(key) else { return default };
        entry.value.parse().ok().filter(|it| *it <= 1_000_000).unwrap_or_else(|| {
            table.note(entry.line, format!("{key}: '{}' is no number of seconds", entry.value));
            default
        })
    }

    fn running(&self, table: &mut Table) {
        let seconds = self.seconds(table, "startsecs", 1);
        if seconds > 0 {
            table.set("start_seconds", seconds.to_string());
        }
        if let Some(entry) = self.section.get("autorestart") {
            match (truth(&entry.value), entry.value.as_str()) {
                (Some(true), _) => table.set("restart", quoted("always")),
                (Some(false), _) => table.set("restart", quoted("never")),
                (None, "unexpected") => {}
                (None, other) => {
                    table.note(entry.line, format!("autorestart: '{other}' is unknown"))
                }
            }
        }
        if let Some(entry) = self.section.get("startretries") {
            let message = "startretries: restart = { limit, within } counts all restarts and is left \
                           out";
            table.note(entry.line, message);
        }
        if let Some(entry) = self.section.get("exitcodes") {
            let codes: Option<Vec<u8>> =
                entry.value.split(',').map(|code| code.trim().parse().ok()).collect();
            match codes {
                Some(codes) if codes == [0] => {}
                Some(codes) => table.set("exit_codes", format!("{codes:?}")),
                None => table.note(entry.line, format!("exitcodes: '{}' is unknown", entry.value)),
            }
        }
    }

    fn stopping(&self, table: &mut Table) {
        let mut stop = Vec::new();
        if let Some(entry) = self.section.get("stopsignal") {
            match entry.value.parse::<Signal>() {
                Ok(Signal::TERM) => {}
                Ok(signal) => stop.push(pair("signal", quoted(&signal.to_string()))),
                Err(_) => {
                    table.note(entry.line, format!("stopsignal: '{}' is unknown", entry.value))
                }
            }
        }
        let flag = |key: &str| self.section.get(key).and_then(|entry| truth(&entry.value));
        if flag("stopasgroup") != Some(true) {
            stop.push(pair("to", quoted("leader")));
        }
        if let Some(entry) = self.section.get("killasgroup")
            && truth(&entry.value) == Some(false)
        {
            table.note(entry.line, "killasgroup = false: SIGKILL always hits the whole tree");
        }
        let seconds = self.seconds(table, "stopwaitsecs", 10);
        stop.push(pair("timeout", quoted(&format!("{seconds}s"))));
        table.set("stop", inline(&stop));
    }

    fn environment(&self, table: &mut Table, scope: &Scope<'_>) {
        if let Some(entry) = self.section.get("user")
            && let Some(user) = self.expanded(table, entry, scope)
        {
            match user.split_once(':') {
                Some((user, group)) if !user.is_empty() && !group.is_empty() => {
                    table.set("user", quoted(user));
                    table.set("group", quoted(group));
                }
                _ => table.set("user", quoted(&user)),
            }
        }
        let directory = self.section.get("directory");
        let directory = directory.or_else(|| self.global.and_then(|it| it.get("directory")));
        if let Some(entry) = directory
            && let Some(directory) = self.expanded(table, entry, scope)
        {
            table.set("cwd", quoted(&directory));
        }
        let umask = self.section.get("umask");
        if let Some(entry) = umask.or_else(|| self.global.and_then(|it| it.get("umask"))) {
            match u32::from_str_radix(&entry.value, 8) {
                Ok(mask) if mask <= 0o777 => table.set("umask", quoted(&format!("{mask:03o}"))),
                _ => table.note(entry.line, format!("umask: '{}' is no octal mode", entry.value)),
            }
        }
        let mut env: Vec<(String, String)> = Vec::new();
        let of_all = self.global.and_then(|section| section.get("environment"));
        for entry in of_all.into_iter().chain(self.section.get("environment")) {
            for (name, value) in self.variables(table, entry, scope) {
                env.retain(|(other, _)| *other != name);
                env.push((name, quoted(&value)));
            }
        }
        if !env.is_empty() {
            table.set("env", inline(&env));
        }
    }

    fn expanded(&self, table: &mut Table, entry: &Entry, scope: &Scope<'_>) -> Option<String> {
        match expand(&entry.value, scope) {
            Ok(text) if !text.is_empty() => return Some(text),
            Ok(_) => {}
            Err(why) => table.note(entry.line, format!("{} is left out: {why}", entry.key)),
        }
        None
    }

    fn variables(
        &self,
        table: &mut Table,
        entry: &Entry,
        scope: &Scope<'_>,
    ) -> Vec<(String, String)> {
        let all = match variables(&entry.value) {
            Ok(all) => all,
            Err(why) => {
                table.note(entry.line, format!("environment is left out: {why}"));
                return Vec::new();
            }
        };
        let mut kept = Vec::new();
        for (name, value) in all {
            match expand(&value, scope) {
                Ok(value) if is_variable(&name) => kept.push((name, value)),
                Ok(_) => table.note(entry.line, format!("'{name}' is no name for a variable")),
                Err(why) => table.note(entry.line, format!("{name} is left out: {why}")),
            }
        }
        kept
    }

    fn output(&self, table: &mut Table) {
        let joined = self.section.get("redirect_stderr").and_then(|entry| truth(&entry.value));
        if joined != Some(true) {
            table.set("stderr", quoted("separate"));
        }
        let mut log = Vec::new();
        if let Some(entry) = self.section.get("stdout_logfile") {
            match entry.value.as_str() {
                "AUTO" | "auto" => {}
                "NONE" | "none" => log.push(pair("file", quoted("none"))),
                "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" | "syslog" => {
                    log.push(pair("forward", "true"));
                    log.push(pair("format", quoted("raw")));
                    log.push(pair("file", quoted("none")));
                }
                path => table.note(entry.line, format!("stdout_logfile {path}: see mainstay logs")),
            }
        }
        let mut keep = Vec::new();
        if let Some(entry) = self.section.get("stdout_logfile_maxbytes") {
            match (size(&entry.value), entry.value.as_str()) {
                (_, "0") => {
                    table.note(entry.line, "stdout_logfile_maxbytes = 0: logs are rotated here")
                }
                (Some(size), _) => keep.push(pair("size", size)),
                (None, other) => table.note(entry.line, format!("'{other}' is no size")),
            }
        }
        if let Some(entry) = self.section.get("stdout_logfile_backups") {
            match entry.value.parse::<u32>() {
                Ok(files) => keep.push(pair("files", files.to_string())),
                Err(_) => table.note(entry.line, format!("'{}' is no number", entry.value)),
            }
        }
        if !keep.is_empty() {
            log.push(pair("keep", inline(&keep)));
        }
        if !log.is_empty() {
            table.set("log", inline(&log));
        }
    }

    /// Keys that were not looked at.
    fn rest(&self, table: &mut Table) {
        const KNOWN: [&str; 24] = [
            "command",
            "process_name",
            "numprocs",
            "numprocs_start",
            "priority",
            "autostart",
            "startsecs",
            "startretries",
            "autorestart",
            "exitcodes",
            "stopsignal",
            "stopwaitsecs",
            "stopasgroup",
            "killasgroup",
            "user",
            "directory",
            "umask",
            "environment",
            "redirect_stderr",
            "stdout_logfile",
            "stdout_logfile_maxbytes",
            "stdout_logfile_backups",
            "serverurl",
            "stdout_capture_maxbytes",
        ];
        if let Some(entry) = self.section.get("priority") {
            table.note(entry.line, "priority: jobs start in the order of this file");
        }
        for entry in self.section.entries.iter().filter(|it| !KNOWN.contains(&it.key.as_str())) {
            let message = if entry.key.starts_with("stderr_logfile") {
                format!("{}: stderr is in the job's log, with its own tag", entry.key)
            } else {
                format!("'{}' is not mapped", entry.key)
            };
            table.note(entry.line, message);
        }
    }
}

/// The command as an exec string, if it is one.
fn runnable(value: &str, scope: &Scope<'_>) -> Result<String, ValueError> {
    let command = expand(&value.replace('\n', " "), scope)?;
    match shell_words::split(&command) {
        Ok(words) if words.first().is_some_and(|word| !word.text.is_empty()) => {}
        Ok(_) => return Err(ValueError::EmptyCommand),
        Err(open) => return Err(ValueError::OpenCommand(open)),
    }
    Ok(command)
}
