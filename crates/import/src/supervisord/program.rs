//! One `[program:x]`, and the jobs it becomes.

use super::{
    PRIORITY, problem,
    text::{Scope, ValueError, Variable, truth, variables},
};
use crate::{
    draft::{Draft, Names, Table, inline, is_variable, pair, quoted},
    ini::{Entry, Section},
};
use mainstay_config::{Context, Diagnostic, shell_words};
use mainstay_core::signal::Signal;
use std::collections::BTreeMap;

const MOST_PROCESSES: u32 = 10_000;
const MOST_SECONDS: u32 = 1_000_000;
/// So many files can be open without asking for more.
const USUAL_FILES: u32 = 1024;
const USUAL_PROCESSES: u32 = 200;

type Wrong = (String, ValueError);

/// What `[supervisord]` says about every program.
pub(super) struct Globals<'a> {
    section: Option<&'a Section>,
    ctx: &'a Context,
    env: BTreeMap<String, Variable>,
}

impl<'a> Globals<'a> {
    pub(super) fn read(
        sections: &'a [Section],
        ctx: &'a Context,
        problems: &mut Vec<Diagnostic>,
    ) -> Globals<'a> {
        let section = sections.iter().find(|section| section.name == "supervisord");
        let mut globals = Globals { section, ctx, env: BTreeMap::new() };
        let entry = section.and_then(|section| section.get("environment"));
        if let (Some(section), Some(entry)) = (section, entry) {
            match set(&entry.value, &globals.scope("supervisord", "supervisord")) {
                Ok(env) => globals.env = env.into_iter().collect(),
                Err((key, why)) => {
                    let message = format!("[supervisord] environment: {key}{why}");
                    problems.push(problem(&section.file, entry.line, message));
                }
            }
        }
        globals
    }

    fn scope<'s>(&'s self, program: &'s str, group: &'s str) -> Scope<'s> {
        let (host, env) = (self.ctx.host_name.as_str(), &self.ctx.env);
        Scope { program, group, number: 0, count: 1, host, env, set: self.env.clone() }
    }

    fn get(&self, key: &str) -> Option<&'a Entry> {
        self.section.and_then(|section| section.get(key))
    }
}

/// The variables of an `environment`, in its order.
fn set(text: &str, scope: &Scope<'_>) -> Result<Vec<(String, Variable)>, Wrong> {
    let bare = |why| (String::new(), why);
    let mut all: Vec<(String, Variable)> = Vec::new();
    for (name, value) in variables(text).map_err(bare)? {
        if !is_variable(&name) {
            return Err((String::new(), ValueError::Unfit(name, "a name for a variable")));
        }
        let written = scope.written(&value).map_err(|why| (format!("{name}: "), why))?;
        all.retain(|(other, _)| *other != name);
        all.push((name, Variable { written, now: scope.now(&value).ok() }));
    }
    Ok(all)
}

pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    section: &'a Section,
    globals: &'a Globals<'a>,
    pub(crate) group: Option<&'a str>,
    group_priority: i64,
    pub(super) priority: i64,
    pub(crate) autostart: bool,
    stop_seconds: u32,
    /// Its number of processes, and the number of the first.
    pub(crate) count: u32,
    first: u32,
}

/// The values of a program in one of its processes.
pub(super) struct Values<'p, 's> {
    section: &'p Section,
    scope: Scope<'s>,
}

impl Values<'_, '_> {
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.section.get(key)
    }

    pub(super) fn line(&self, key: &str) -> usize {
        self.section.get(key).map_or(self.section.line, |entry| entry.line)
    }

    /// What a key comes to now.
    pub(super) fn now_if_there(&self, key: &str) -> Result<Option<String>, Wrong> {
        let Some(entry) = self.section.get(key) else { return Ok(None) };
        self.scope.now(&entry.value).map(Some).map_err(|why| (key.to_owned(), why))
    }

    fn written(&self, entry: Option<&Entry>) -> Result<Option<String>, Wrong> {
        let Some(entry) = entry else { return Ok(None) };
        let text = self.scope.written(&entry.value).map_err(|why| (entry.key.clone(), why))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    pub(super) fn number(
        &self,
        key: &str,
        default: u32,
        least: u32,
        most: u32,
    ) -> Result<u32, Wrong> {
        let Some(text) = self.now_if_there(key)? else { return Ok(default) };
        let number = text.trim().parse().ok().filter(|it| (least..=most).contains(it));
        let unfit = || (key.to_owned(), ValueError::Unfit(text.clone(), "a number for this"));
        number.ok_or_else(unfit)
    }

    pub(super) fn truth(&self, key: &str, default: bool) -> Result<bool, Wrong> {
        let Some(text) = self.now_if_there(key)? else { return Ok(default) };
        truth(text.trim()).ok_or_else(|| (key.to_owned(), ValueError::Unfit(text, "true or false")))
    }
}

impl<'a> Program<'a> {
    pub(super) fn read(
        name: &'a str,
        section: &'a Section,
        group: Option<(&'a str, i64)>,
        globals: &'a Globals<'a>,
    ) -> Result<Program<'a>, Box<Diagnostic>> {
        let scope = globals.scope(name, group.map_or(name, |(group, _)| group));
        let values = Values { section, scope };
        let read = || -> Result<Program<'a>, Wrong> {
            let priority = match values.now_if_there("priority")? {
                None => PRIORITY,
                Some(text) => text.trim().parse().map_err(|_| {
                    ("priority".to_owned(), ValueError::Unfit(text.clone(), "a number"))
                })?,
            };
            Ok(Program {
                name,
                section,
                globals,
                group: group.map(|(group, _)| group),
                // One that is in no group is a group of its own.
                group_priority: group.map_or(priority, |(_, priority)| priority),
                priority,
                autostart: values.truth("autostart", true)?,
                stop_seconds: values.number("stopwaitsecs", 10, 0, MOST_SECONDS)?,
                count: values.number("numprocs", 1, 1, MOST_PROCESSES)?,
                first: values.number("numprocs_start", 0, 0, 1 << 20)?,
            })
        };
        read().map_err(|wrong| Box::new(told(name, section, wrong)))
    }

    pub(crate) fn file(&self) -> &str {
        &self.section.file
    }

    /// Where a key of it stands, else it itself.
    pub(crate) fn line(&self, key: &str) -> usize {
        self.section.get(key).map_or(self.section.line, |entry| entry.line)
    }

    /// Supervisor starts the lowest first, those that are equal by name.
    pub(super) fn rank(&self) -> (i64, String, i64, String) {
        let group = self.group.unwrap_or(self.name).to_owned();
        (self.group_priority, group, self.priority, self.name.to_owned())
    }

    pub(super) fn priority_line(&self) -> Option<(&str, usize)> {
        self.section.get("priority").map(|entry| (self.file(), entry.line))
    }

    /// A table for each process, with the name of that.
    pub(super) fn tables(
        &self,
        draft: &mut Draft,
        names: &mut Names,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<(String, Table)> {
        let process_name = self.section.get("process_name").map(|entry| entry.value.as_str());
        let numbered = process_name.is_some_and(|name| name.contains("%(process_num)"));
        if self.count > 1 && !numbered {
            let why = ValueError::Unfit(
                process_name.unwrap_or(self.name).to_owned(),
                "a name for several processes: it needs %(process_num)d",
            );
            problems.push(told(self.name, self.section, ("process_name".to_owned(), why)));
            return Vec::new();
        }
        let mut tables = Vec::new();
        for number in self.first..self.first + self.count {
            match self.table(draft, names, number) {
                Ok(table) => tables.push(table),
                // What is wrong with one is wrong with all.
                Err(wrong) => {
                    problems.push(told(self.name, self.section, wrong));
                    break;
                }
            }
        }
        tables
    }

    fn table(
        &self,
        draft: &mut Draft,
        names: &mut Names,
        number: u32,
    ) -> Result<(String, Table), Wrong> {
        let scope = self.globals.scope(self.name, self.group.unwrap_or(self.name));
        let mut values =
            Values { section: self.section, scope: Scope { number, count: self.count, ..scope } };
        let own = match self.section.get("environment") {
            None => Vec::new(),
            Some(entry) => set(&entry.value, &values.scope)
                .map_err(|(name, why)| (format!("environment: {name}"), why))?,
        };
        let global: Vec<(String, Variable)> = self.globals.env.clone().into_iter().collect();
        values.scope.set.extend(own.iter().cloned());
        let command = runnable(&values)?;
        let process = match self.section.get("process_name") {
            None => self.name.to_owned(),
            Some(entry) => {
                values.scope.now(&entry.value).map_err(|why| (entry.key.clone(), why))?
            }
        };
        let name = names.take(&process, None);
        let mut table = Table::new(format!("jobs.{name}"), self.file());
        if name != process {
            let key = self.section.get("process_name").map_or(self.section.line, |it| it.line);
            table.note(key, format!("'{process}' is called '{name}' here"));
        }
        table.set("exec", quoted(&command));
        self.running(&mut table, &values)?;
        self.stopping(&mut table, &values)?;
        self.identity(draft, &mut table, &values)?;
        table.set("stdin", quoted("open"));
        let group = self.group.unwrap_or(self.name);
        let told = [
            ("SUPERVISOR_ENABLED", "1".to_owned()),
            ("SUPERVISOR_PROCESS_NAME", process.replace("${", "$${")),
            ("SUPERVISOR_GROUP_NAME", group.replace("${", "$${")),
        ];
        let told = told.map(|(name, written)| (name.to_owned(), Variable { written, now: None }));
        let mut env: Vec<(String, String)> = Vec::new();
        for (name, value) in told.into_iter().chain(global).chain(own) {
            env.retain(|(other, _)| *other != name);
            env.push((name, quoted(&value.written)));
        }
        table.set("env", inline(&env));
        self.output(draft, &mut table, &values)?;
        self.rest(draft);
        Ok((process, table))
    }

    fn running(&self, table: &mut Table, values: &Values<'_, '_>) -> Result<(), Wrong> {
        let seconds = values.number("startsecs", 1, 0, MOST_SECONDS)?;
        if seconds > 0 {
            table.set("start_seconds", seconds.to_string());
        }
        table.set("start_retries", values.number("startretries", 3, 0, u32::MAX)?.to_string());
        if let Some(text) = values.now_if_there("autorestart")? {
            match (truth(&text), text.as_str()) {
                (Some(true), _) => table.set("restart", quoted("always")),
                (Some(false), _) => table.set("restart", quoted("never")),
                (None, "unexpected") => {}
                (None, _) => {
                    let why = ValueError::Unfit(text, "true, false or unexpected");
                    return Err(("autorestart".to_owned(), why));
                }
            }
        }
        if let Some(text) = values.now_if_there("exitcodes")? {
            let codes: Option<Vec<u8>> =
                text.split(',').map(|code| code.trim().parse().ok()).collect();
            match codes {
                Some(codes) if codes == [0] => {}
                Some(codes) => table.set("exit_codes", format!("{codes:?}")),
                None => {
                    let why = ValueError::Unfit(text, "a list of exit codes");
                    return Err(("exitcodes".to_owned(), why));
                }
            }
        }
        Ok(())
    }

    fn stopping(&self, table: &mut Table, values: &Values<'_, '_>) -> Result<(), Wrong> {
        let mut stop = Vec::new();
        if let Some(text) = values.now_if_there("stopsignal")? {
            match text.trim().parse::<Signal>() {
                Ok(Signal::TERM) => {}
                Ok(signal) => stop.push(pair("signal", quoted(&signal.to_string()))),
                Err(_) => {
                    return Err(("stopsignal".to_owned(), ValueError::Unfit(text, "a signal")));
                }
            }
        }
        if !values.truth("stopasgroup", false)? {
            stop.push(pair("to", quoted("leader")));
        }
        stop.push(pair("timeout", quoted(&format!("{}s", self.stop_seconds))));
        table.set("stop", inline(&stop));
        Ok(())
    }

    fn identity(
        &self,
        draft: &mut Draft,
        table: &mut Table,
        values: &Values<'_, '_>,
    ) -> Result<(), Wrong> {
        let own = self.section.get("user");
        let user = own.or_else(|| self.globals.get("user").filter(|it| it.value != "root"));
        if let Some(entry) = user {
            self.knows(entry, values)?;
        }
        if let Some(user) = values.written(user)? {
            if own.is_some() {
                let message = "user: HOME, USER and LOGNAME are those of the user, where supervisord \
                               leaves its own";
                draft.gather(self.file(), values.line("user"), message);
            }
            match user.split_once(':') {
                Some((user, group)) if !user.is_empty() && !group.is_empty() => {
                    table.set("user", quoted(user));
                    table.set("group", quoted(group));
                }
                _ => table.set("user", quoted(&user)),
            }
        }
        let either = |key: &str| self.section.get(key).or_else(|| self.globals.get(key));
        table.set_if_some("cwd", values.written(either("directory"))?.map(|it| quoted(&it)));
        if let Some(entry) = either("umask") {
            let mask = u32::from_str_radix(entry.value.trim(), 8).ok().filter(|it| *it <= 0o777);
            let unfit = || ValueError::Unfit(entry.value.clone(), "an octal mode");
            let mask = mask.ok_or_else(|| ("umask".to_owned(), unfit()))?;
            table.set("umask", quoted(&format!("{mask:03o}")));
        }
        for (key, usual, limit) in
            [("minfds", USUAL_FILES, "nofile"), ("minprocs", USUAL_PROCESSES, "nproc")]
        {
            let Some(entry) = self.globals.get(key) else { continue };
            if entry.value.trim().parse::<u32>().is_ok_and(|it| it > usual) {
                let message =
                    format!("{key}: it is not raised: add limits = {{ {limit} = … }} to the jobs");
                let file = self.globals.section.map_or("", |section| &section.file);
                draft.note_once(file, entry.line, &message);
            }
        }
        Ok(())
    }

    /// supervisord does not start with a user that it cannot find.
    fn knows(&self, user: &Entry, values: &Values<'_, '_>) -> Result<(), Wrong> {
        let Some(is_known) = self.globals.ctx.knows_user else { return Ok(()) };
        // One that is known later only is looked for then.
        let Ok(now) = values.scope.now(&user.value) else { return Ok(()) };
        let name = now.split_once(':').map_or(now.as_str(), |(name, _)| name);
        match name.is_empty() || is_known(name) {
            true => Ok(()),
            false => {
                let why = ValueError::Unfit(name.to_owned(), "a user of this machine");
                Err(("user".to_owned(), why))
            }
        }
    }

    /// What only an event listener would hear.
    fn rest(&self, draft: &mut Draft) {
        for key in ["stdout_events_enabled", "stderr_events_enabled"] {
            if let Some(entry) = self.section.get(key).filter(|it| truth(&it.value) == Some(true)) {
                draft.gather(self.file(), entry.line, format!("{key}: no event is made of output"));
            }
        }
    }
}

fn told(program: &str, section: &Section, (key, why): Wrong) -> Diagnostic {
    let first = key.split(':').next().unwrap_or_default();
    let line = section.get(first).map_or(section.line, |entry| entry.line);
    let what = if key.is_empty() { String::new() } else { format!("{key}: ") };
    problem(&section.file, line, format!("[program:{program}] {what}{why}"))
}

/// The command as an exec string, if it is one.
fn runnable(values: &Values<'_, '_>) -> Result<String, Wrong> {
    let wrong = |why| ("command".to_owned(), why);
    let text = values.entry("command").map(|entry| entry.value.replace('\n', " "));
    let command = values.scope.written(&text.unwrap_or_default()).map_err(wrong)?;
    match shell_words::split(&command) {
        Ok(words) if words.first().is_some_and(|word| !word.text.is_empty()) => Ok(command),
        Ok(_) => Err(wrong(ValueError::Empty)),
        Err(open) => Err(wrong(ValueError::OpenCommand(open))),
    }
}
