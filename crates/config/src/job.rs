//! `[jobs.NAME]`: one command, and all that is declared about it.

use crate::{
    address,
    key::{
        Kind,
        Reload::{Live, Restart},
        Table, key,
    },
    limits::LIMITS,
    log::{LOG, Logging},
    reader::Reader,
    restart,
    stop::STOP,
    value::{Span, Value, as_i64},
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
}

pub(crate) static JOB: Table<Job> = Table {
    keys: &[
        key(
            "exec",
            Kind::Command,
            "",
            Restart,
            "The command: a list, or a string that is split as a shell would and never run by one. \
             Required.",
            |job, v, r| {
                job.exec = true;
                r.command(v).map(|exec| job.plan.exec = exec)
            },
        ),
        key(
            "main",
            Kind::Bool,
            "false",
            Live,
            "The job whose end ends the node, with its exit code.",
            |job, v, r| {
                job.plan.main = r.boolean(v)?;
                job.main = job.plan.main.then_some(v.span);
                Some(())
            },
        ),
        key(
            "restart",
            Kind::OneOfOrTable(restart::WORDS),
            "\"on-failure\"",
            Live,
            "What follows an exit that nobody asked for; default for a main job: never.",
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
        key("stop", Kind::Table, "{}", Live, "How it is asked to end.", |job, v, r| {
            r.nested(v, &STOP, &mut job.plan.stop)
        }),
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
            "Variables to set over the inherited environment.",
            |job, v, r| r.map(v, variable).map(|it| job.plan.env = it),
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
            Kind::OneOf(&["joined", "separate"]),
            "\"joined\"",
            Restart,
            "One pipe with stdout, which keeps lines in order, or one of its own.",
            |job, v, r| r.one_of(v).map(|it| job.plan.stderr = it),
        ),
        key(
            "log",
            Kind::Table,
            "{}",
            Live,
            "Overrides [log] for this job, key by key.",
            |job, v, r| {
                let mut it = Logging { log: job.plan.log.clone(), level: None };
                r.nested(v, &LOG, &mut it)?;
                job.plan.log = it.log;
                Some(())
            },
        ),
    ],
    later: &[
        "when",
        "while",
        "health",
        "reload",
        "timeout",
        "instances",
        "env_file",
        "session",
        "stdin",
        "tty",
        "advertise",
        "app",
        "place",
        "cluster",
    ],
    refused: &[],
};

/// By these a process is known to belong to a job; another value would hide it.
const COOKIE: [&str; 2] = ["MAINSTAY_RUN", "MAINSTAY_JOB"];

fn variable(r: &mut Reader<'_>, name: &str, at: Span, v: Value<'_>) -> Option<(String, String)> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return r.wrong(at, "not a name for a variable", "use a name without '='");
    }
    if COOKIE.contains(&name) {
        return r.wrong(at, "mainstay sets this one itself", "remove it, or use another name");
    }
    Some((name.to_owned(), r.scalar(v)?))
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
