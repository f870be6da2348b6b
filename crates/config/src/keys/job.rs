//! `[jobs.NAME]`: one command, and all that is declared about it.

use crate::{
    keys::{
        Kind,
        Reload::{Live, Restart},
        Table, app, discovery, health, key,
        limits::LIMITS,
        log::{LOG, Logging},
        reload, restart, stdio,
        stop::{STOP, StopKeys},
        when::{self, Follow, WHILE},
    },
    notation::{address, env_file},
    reader::{Place, Reader, Span, Value, as_i64},
    source::read_small,
};
use mainstay_core::{
    name::{Name, NameError},
    plan::{JobPlan, Socket},
};
use toml::de::DeValue;

/// A job as far as it has been read.
pub(crate) struct Job {
    pub(crate) plan: JobPlan,
    pub(crate) exec: bool,
    pub(crate) restart: bool,
    pub(crate) main: Option<Span>,
    pub(crate) sockets: Vec<Span>,
    pub(crate) when: when::UnresolvedWhen,
    pub(crate) when_at: Option<Span>,
    pub(crate) follow: Follow,
    pub(crate) checks: Vec<health::PlacedCheck>,
    /// Of the files; `env` goes over them.
    env_files: Vec<(String, String)>,
    pub(crate) app: Option<Span>,
    pub(crate) place: Option<Span>,
    pub(crate) advertise: Option<Span>,
    pub(crate) tty: Option<Span>,
    pub(crate) stop_timeout: Option<Span>,
    pub(crate) autostart: Option<Span>,
}

/// A job, and where its name is.
pub(crate) struct PlacedJob {
    pub(crate) job: Job,
    pub(crate) at: Place,
    /// The name of its table, which its instances share.
    pub(crate) table_name: String,
    /// Not the first of its instances: its mistakes have been told.
    pub(crate) echo: bool,
}

impl Job {
    pub(crate) fn new(plan: JobPlan) -> Job {
        Job {
            plan,
            exec: false,
            restart: false,
            main: None,
            sockets: Vec::new(),
            when: when::UnresolvedWhen::default(),
            when_at: None,
            follow: Follow::default(),
            checks: Vec::new(),
            env_files: Vec::new(),
            app: None,
            place: None,
            advertise: None,
            tty: None,
            stop_timeout: None,
            autostart: None,
        }
    }
}

/// The most instances that one job can have: more are several jobs, or a fleet.
pub const MOST_INSTANCES: u32 = 1000;

pub(crate) static JOB: Table<Job> = Table {
    keys: &[
        key(
            "exec",
            Kind::Command,
            "",
            Restart,
            "The command: a list, or a string that is split as a shell would and never run by one. \
             Required, unless the job is only announced (advertise) or only checked (health).",
            |job, v, r| {
                job.exec = true;
                r.command(v).map(|exec| job.plan.exec = exec)
            },
        ),
        key(
            "when",
            Kind::Tables,
            "",
            Live,
            "When it starts: conditions that must be met once, and at most one trigger; default: at \
             startup.",
            |job, v, r| {
                job.when_at = Some(v.span);
                when::read(v, r).map(|it| job.when = it)
            },
        ),
        key(
            "while",
            Kind::Table,
            "",
            Live,
            "Another job that it follows: it runs while that one is healthy.",
            |job, v, r| {
                r.nested(v, &WHILE, &mut job.follow)?;
                if job.follow.source.is_none() {
                    return r.wrong(v.span, "'source' is missing", "add source = \"JOB\"");
                }
                Some(())
            },
        ),
        key(
            "health",
            Kind::Tables,
            "",
            Live,
            "Checks; the job is healthy while all of them pass, and without any when it runs.",
            |job, v, r| health::read(v, r).map(|it| job.checks = it),
        ),
        key(
            "main",
            Kind::Bool,
            "false",
            Live,
            "Its end ends the node, with its exit code; of several main jobs the first that ends.",
            |job, v, r| {
                job.plan.main = r.boolean(v)?;
                job.main = job.plan.main.then_some(v.span);
                Some(())
            },
        ),
        key(
            "exit_on_failure",
            Kind::Bool,
            "false",
            Live,
            "When it has failed and is not restarted, the node ends with its exit code (unless exit \
             is never).",
            |job, v, r| r.boolean(v).map(|it| job.plan.exit_on_failure = it),
        ),
        key(
            "restart",
            Kind::OneOfOrTable(restart::WORDS),
            "\"on-failure\"",
            Live,
            "What follows an exit that nobody asked for; default for a main or triggered job and for \
             one that runs when another stops: never.",
            |job, v, r| {
                job.restart = true;
                restart::read(v, r).map(|it| job.plan.restart = it)
            },
        ),
        key(
            "start_seconds",
            Kind::Duration,
            "0",
            Live,
            "How long it must run to count as started.",
            |job, v, r| r.duration(v).map(|it| job.plan.start_seconds = it),
        ),
        key(
            "start_retries",
            Kind::Integer,
            "",
            Live,
            "How many starts in a row that fail (the command cannot be run, or ends unexpectedly \
             before start_seconds) are tried again, whatever restart says; then it is given up. \
             Default: restart decides.",
            |job, v, r| r.count(v, 0).map(|it| job.plan.start_retries = Some(it)),
        ),
        key(
            "exit_codes",
            Kind::Integers,
            "[0]",
            Live,
            "The exit codes that are expected.",
            |job, v, r| {
                let codes = r.list(v, |r, one| r.integer(one, 0..=255))?;
                job.plan.exit_codes =
                    codes.into_iter().filter_map(|it| it.try_into().ok()).collect();
                Some(())
            },
        ),
        key(
            "timeout",
            Kind::Duration,
            "",
            Live,
            "The longest run: past it the job is killed, which is a failure; default: no limit.",
            |job, v, r| r.period(v).map(|it| job.plan.timeout = Some(it)),
        ),
        key("stop", Kind::Table, "{}", Live, "How it is asked to end.", |job, v, r| {
            let mut keys = StopKeys::default();
            r.nested(v, &STOP, &mut keys)?;
            (job.plan.stop, job.stop_timeout) = (keys.stop, keys.timeout);
            Some(())
        }),
        key(
            "reload",
            Kind::Table,
            "",
            Live,
            "What mainstay reload JOB does: send a signal, or run a command.",
            |job, v, r| reload::read(v, r).map(|it| job.plan.reload = Some(it)),
        ),
        key(
            "instances",
            Kind::Integer,
            "",
            Live,
            "Run it so many times, as NAME-1, NAME-2, …; {instance} in its strings is the number.",
            |_, v, r| r.integer(v, 1..=i64::from(MOST_INSTANCES)).map(|_| ()),
        ),
        key(
            "user",
            Kind::Account,
            "",
            Restart,
            "The user it runs as; sets HOME, USER and LOGNAME unless env does.",
            |job, v, r| r.account(v).map(|it| job.plan.user = Some(it)),
        ),
        key(
            "group",
            Kind::Account,
            "",
            Restart,
            "The group it runs as; default: that of the user.",
            |job, v, r| r.account(v).map(|it| job.plan.group = Some(it)),
        ),
        key(
            "groups",
            Kind::Accounts,
            "",
            Restart,
            "Its supplementary groups; default: those of the user.",
            |job, v, r| r.list(v, Reader::account).map(|it| job.plan.groups = Some(it)),
        ),
        key(
            "cwd",
            Kind::Text,
            "",
            Restart,
            "The directory it runs in; default: that of mainstay run.",
            |job, v, r| r.filled(v).map(|it| job.plan.cwd = Some(it.into())),
        ),
        key(
            "env",
            Kind::Map,
            "{}",
            Restart,
            "Variables to set over the inherited environment; values may be secrets: \
             ${file:/path}.",
            |job, v, r| {
                let all = r.map(v, variable)?;
                job.plan.secrets =
                    all.iter().filter(|it| it.secret).map(|it| it.name.clone()).collect();
                job.plan.env = all.into_iter().map(|it| (it.name, it.value)).collect();
                Some(())
            },
        ),
        key(
            "env_file",
            Kind::Texts,
            "",
            Restart,
            "Files with NAME=value lines, read when the configuration is; env goes over them. \
             Relative to the file that says so.",
            |job, v, r| {
                let paths = match v.de {
                    DeValue::Array(_) => r.list(v, |r, one| Some((r.filled(one)?, one.span)))?,
                    _ => vec![(r.filled(v)?, v.span)],
                };
                for (path, span) in paths {
                    job.env_files.extend(variables(r, &path, span)?);
                }
                Some(())
            },
        ),
        key(
            "umask",
            Kind::Mode,
            "",
            Restart,
            "Its file mode mask, in octal: \"022\" or 0o022.",
            |job, v, r| umask(v, r).map(|it| job.plan.umask = Some(it)),
        ),
        key(
            "nice",
            Kind::Integer,
            "",
            Restart,
            "Its priority, from -20 (first) to 19 (last).",
            |job, v, r| {
                let nice = r.integer(v, -20..=19)?;
                job.plan.nice = i32::try_from(nice).ok();
                Some(())
            },
        ),
        key("limits", Kind::Table, "{}", Restart, "What it may use.", |job, v, r| {
            r.nested(v, &LIMITS, &mut job.plan.limits)
        }),
        key(
            "sockets",
            Kind::Map,
            "{}",
            Restart,
            "Listening sockets that are opened for it and survive its restarts (LISTEN_FDS).",
            |job, v, r| {
                let (sockets, spans) = r.map(v, socket)?.into_iter().unzip();
                (job.plan.sockets, job.sockets) = (sockets, spans);
                Some(())
            },
        ),
        key(
            "notify",
            Kind::Bool,
            "false",
            Restart,
            "Give it a socket to say that it is ready (NOTIFY_SOCKET).",
            |job, v, r| r.boolean(v).map(|it| job.plan.notify = it),
        ),
        key(
            "stderr",
            Kind::OneOf(&["joined", "separate", "inherit"]),
            "\"joined\"",
            Restart,
            "One pipe with stdout, which keeps lines in order; one of its own; or that of mainstay run, \
             which is in no log.",
            |job, v, r| r.one_of(v).map(|it| job.plan.stderr = it),
        ),
        key(
            "session",
            Kind::Bool,
            "true",
            Restart,
            "A session of its own; false: a process group of its own in the session of mainstay.",
            |job, v, r| r.boolean(v).map(|it| job.plan.session = it),
        ),
        key(
            "stdin",
            Kind::Text,
            "\"null\"",
            Restart,
            "What it reads: \"null\" (nothing), \"open\" (nothing either, but it never ends), \
             \"inherit\" (the input of mainstay run), or the path of a file, with a slash; opened as \
             its user, relative to cwd.",
            |job, v, r| stdio::stdin(v, r).map(|it| job.plan.stdin = it),
        ),
        key(
            "tty",
            Kind::Bool,
            "false",
            Restart,
            "Give it a terminal of its own to write to (stdout, stderr and /dev/tty); its lines are \
             logged as those of a pipe are.",
            |job, v, r| {
                job.plan.tty = r.boolean(v)?;
                job.tty = job.plan.tty.then_some(v.span);
                Some(())
            },
        ),
        key(
            "log",
            Kind::Table,
            "{}",
            Live,
            "Overrides [log] for this job, key by key.",
            |job, v, r| {
                let mut it = Logging { log: job.plan.log.clone(), node: None };
                r.nested(v, &LOG, &mut it)?;
                job.plan.log = it.log;
                Some(())
            },
        ),
        key(
            "autostart",
            Kind::Bool,
            "true",
            Live,
            "It starts by itself; false: by command only. A job with app starts when its app does.",
            |job, v, r| {
                job.plan.autostart = r.boolean(v)?;
                job.autostart = Some(v.span);
                Some(())
            },
        ),
        key(
            "app",
            Kind::Text,
            "",
            Live,
            "The app it belongs to: it starts and stops with it, in order.",
            |job, v, r| {
                let name = r.filled(v)?;
                match Name::new(&name) {
                    Ok(name) => job.plan.app = Some(name),
                    Err(error) => return r.wrong(v.span, error.to_string(), "name an app"),
                }
                job.app = Some(v.span);
                Some(())
            },
        ),
        key("place", Kind::Table, "", Live, "Where it stands in its app.", |job, v, r| {
            job.place = Some(v.span);
            let instances = job.plan.instance_of.is_some();
            app::place(v, instances, r).map(|it| job.plan.place = it)
        }),
        key(
            "advertise",
            Kind::Table,
            "",
            Live,
            "Announce it to service discovery while it is healthy.",
            |job, v, r| {
                job.advertise = Some(v.span);
                let service = job.plan.instance_of.as_ref().unwrap_or(&job.plan.name).to_string();
                discovery::advertise(v, r, &service)
                    .map(|it| job.plan.advertise = Some(Box::new(it)))
            },
        ),
    ],
    later: &["cluster"],
    refused: &[],
};

/// By these a process is known to belong to a job; another value would hide it.
const COOKIE: [&str; 3] = ["MAINSTAY_RUN", "MAINSTAY_JOB", "MAINSTAY_TASK"];

struct Variable {
    name: String,
    value: String,
    secret: bool,
}

fn variable(r: &mut Reader<'_>, name: &str, at: Span, v: Value<'_>) -> Option<Variable> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return r.wrong(at, "not a name for a variable", "use a name without '='");
    }
    if COOKIE.contains(&name) {
        return r.wrong(at, "mainstay sets this one itself", "remove it, or use another name");
    }
    let (value, secret) = r.secret(|r| r.scalar(v))?;
    Some(Variable { name: name.to_owned(), value, secret })
}

/// The variables of a file.
fn variables(r: &mut Reader<'_>, path: &str, span: Span) -> Option<Vec<(String, String)>> {
    let text = match read_small(&r.directory().join(path)) {
        Ok(text) => text,
        Err(why) => {
            let help = "check the path and its permissions";
            return r.wrong(span, format!("cannot read '{path}': {why}"), help);
        }
    };
    let bad = match env_file::parse(&text) {
        Ok(all) => {
            let own = all.iter().find(|(name, _)| COOKIE.contains(&name.as_str()));
            if let Some((name, _)) = own {
                let message = format!("{path}: mainstay sets {name} itself");
                return r.wrong(span, message, "remove it there");
            }
            return Some(all);
        }
        Err(bad) => bad,
    };
    for bad in bad.iter().take(10) {
        let message = format!("{path}:{}: {}", bad.line, bad.why);
        r.wrong::<()>(span, message, "correct it there");
    }
    None
}

impl Job {
    /// Puts `env` over what the files say.
    pub(crate) fn merge_env(&mut self) {
        let mut merged: Vec<(String, String)> = Vec::new();
        let mut at: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        let all = self.env_files.drain(..).chain(self.plan.env.drain(..));
        for (name, value) in all {
            match at.get(&name).and_then(|at| merged.get_mut(*at)) {
                Some(pair) => pair.1 = value,
                None => {
                    at.insert(name.clone(), merged.len());
                    merged.push((name, value));
                }
            }
        }
        self.plan.env = merged;
    }
}

fn socket(r: &mut Reader<'_>, name: &str, at: Span, v: Value<'_>) -> Option<(Socket, Span)> {
    if matches!(Name::new(name), Err(NameError::Shape(_))) {
        return r.wrong(at, "not a name for a socket", "use letters, digits, '_' or '-'");
    }
    let text = r.text(v)?;
    match address::parse(&text) {
        Ok(address) => Some((Socket { name: name.to_owned(), address }, v.span)),
        Err(help) => r.wrong(v.span, format!("'{text}' is not an address to listen on"), help),
    }
}

fn umask(v: Value<'_>, r: &mut Reader<'_>) -> Option<u32> {
    let mode = match v.de {
        DeValue::String(_) => {
            let text = r.text(v)?;
            let digits = text.strip_prefix("0o").unwrap_or(&text);
            let octal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            octal.then(|| u32::from_str_radix(digits, 8).ok()).flatten()
        }
        // A decimal number that looks octal would be a mask that nobody meant.
        DeValue::Integer(number) if number.radix() == 8 || number.as_str() == "0" => {
            as_i64(number).and_then(|it| u32::try_from(it).ok())
        }
        DeValue::Integer(_) => None,
        _ => return r.unfit(v),
    };
    match mode.filter(|mode| *mode <= 0o777) {
        Some(mode) => Some(mode),
        None => r.wrong(v.span, "not an octal mode", "write \"022\" or 0o022, at most 0o777"),
    }
}
