//! From the texts to the plan: parse each file, merge what they say, and judge the whole.

use crate::{
    Context, Loaded,
    diag::Errors,
    job::{JOB, Job},
    log::{LOG, Logging},
    node::{self, NODE, Node, Place},
    reader::Reader,
    source::Sources,
};
use mainstay_core::{
    name::Name,
    plan::{ExitRule, JobPlan, Log, Plan, Restart, RestartOn},
};
use std::collections::BTreeMap;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

const MOST_JOBS: usize = 10_000;
/// A larger file that is no TOML gets one report: recovery would make one for nearly every byte.
const RECOVERED: usize = 256 << 10;

const TABLES: [&str; 3] = ["node", "log", "jobs"];
const LATER: [&str; 10] = [
    "watches",
    "discovery",
    "telemetry",
    "api",
    "fleet",
    "apps",
    "rollout",
    "profiles",
    "templates",
    "services",
];

pub(crate) fn assemble(sources: &Sources, ctx: &Context) -> Result<Loaded, Errors> {
    let mut r = Reader::new(sources, ctx);
    let trees: Vec<_> = sources
        .iter()
        .map(|(file, source)| {
            r.file = file;
            (file, tree(&mut r, &source.text))
        })
        .collect();
    let parts = parts(&mut r, &trees);

    let mut node = Node { plan: node::default(ctx), exit: None };
    merge(&mut r, "node", &parts.node, |r, table| r.table(&NODE, table, &mut node));
    let mut log = Logging { log: Log::default(), level: Some(node.plan.log_level.clone()) };
    merge(&mut r, "log", &parts.log, |r, table| r.table(&LOG, table, &mut log));
    node.plan.log_level = log.level.unwrap_or_default();

    let jobs = jobs(&mut r, &parts.jobs, &log.log);
    let plan = judge(&mut r, node, jobs);
    Ok(Loaded { warnings: r.finish()?, plan })
}

fn tree<'t>(r: &mut Reader<'_>, text: &'t str) -> DeTable<'t> {
    match DeTable::parse(text) {
        Ok(tree) => tree.into_inner(),
        Err(first) if text.len() > RECOVERED => {
            r.syntax(first.span(), first.message());
            DeTable::new()
        }
        Err(_) => {
            let (tree, errors) = DeTable::parse_recoverable(text);
            for error in errors {
                r.syntax(error.span(), error.message());
            }
            tree.into_inner()
        }
    }
}

struct Part<'t> {
    file: usize,
    table: &'t DeTable<'t>,
}

/// The tables of all files, sorted by what they are about.
#[derive(Default)]
struct Parts<'t> {
    node: Vec<Part<'t>>,
    log: Vec<Part<'t>>,
    jobs: Vec<Part<'t>>,
}

fn parts<'t>(r: &mut Reader<'_>, trees: &'t [(usize, DeTable<'t>)]) -> Parts<'t> {
    let mut parts = Parts::default();
    for (file, tree) in trees {
        r.file = *file;
        for (name, value) in tree {
            let into = match name.get_ref().as_ref() {
                "node" => &mut parts.node,
                "log" => &mut parts.log,
                "jobs" => &mut parts.jobs,
                later if LATER.contains(&later) => {
                    r.not_yet(later, name.span());
                    continue;
                }
                unknown => {
                    r.unknown(unknown, name.span(), &TABLES, &LATER);
                    continue;
                }
            };
            if let Some(table) = table(r, name, value) {
                into.push(Part { file: *file, table });
            }
        }
    }
    parts
}

type Word<'t> = Spanned<DeString<'t>>;

fn table<'t>(
    r: &mut Reader<'_>,
    name: &Word<'_>,
    value: &'t Spanned<DeValue<'t>>,
) -> Option<&'t DeTable<'t>> {
    if let DeValue::Table(table) = value.get_ref() {
        return Some(table);
    }
    r.within(name.get_ref(), |r| {
        r.wrong(
            name.span(),
            "expected a table",
            "write its name in brackets on a line of its own, and its keys below",
        )
    })
}

/// Reads a table that several files may have a part of; none may say what another has said.
fn merge<'t>(
    r: &mut Reader<'_>,
    name: &str,
    parts: &[Part<'t>],
    mut read: impl FnMut(&mut Reader<'_>, &'t DeTable<'t>),
) {
    let mut said: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for part in parts {
        r.file = part.file;
        r.within(name, |r| {
            for (key, _) in part.table {
                match said.get(key.get_ref().as_ref()) {
                    None => {
                        said.insert(key.get_ref(), (part.file, key.span().start));
                    }
                    Some((file, offset)) => {
                        let first = r.position(*file, *offset);
                        let message = format!("'{}' is already set at {first}", key.get_ref());
                        r.wrong::<()>(key.span(), message, "remove one of them");
                    }
                }
            }
            read(r, part.table);
        });
    }
}

/// A job, and where its name is.
struct Placed {
    job: Job,
    at: Place,
}

fn jobs(r: &mut Reader<'_>, parts: &[Part<'_>], log: &Log) -> Vec<Placed> {
    let mut jobs: Vec<Placed> = Vec::new();
    let mut by_name: BTreeMap<Name, usize> = BTreeMap::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            if jobs.len() == MOST_JOBS {
                let message = format!("more than {MOST_JOBS} jobs");
                r.within("jobs", |r| {
                    r.wrong::<()>(name.span(), message, "split them between nodes")
                });
                return jobs;
            }
            let at = Place { file: part.file, span: name.span().into() };
            let valid = match Name::new(name.get_ref()) {
                Ok(valid) => valid,
                Err(error) => {
                    r.within("jobs", |r| {
                        r.wrong::<()>(name.span(), error.to_string(), "rename the job")
                    });
                    continue;
                }
            };
            if let Some(first) = by_name.get(&valid).and_then(|index| jobs.get(*index)) {
                let first = r.position(first.at.file, first.at.span.start);
                let message = format!("job '{valid}' is already defined at {first}");
                r.within("jobs", |r| {
                    r.wrong::<()>(name.span(), message, "rename or remove one of them")
                });
                continue;
            }
            if let Some(job) = job(r, &valid, name, value, log) {
                by_name.insert(valid, jobs.len());
                jobs.push(Placed { job, at });
            }
        }
    }
    jobs
}

fn job<'t>(
    r: &mut Reader<'_>,
    valid: &Name,
    name: &Word<'t>,
    value: &'t Spanned<DeValue<'t>>,
    log: &Log,
) -> Option<Job> {
    r.within("jobs", |r| {
        let table = table(r, name, value)?;
        let mut plan = JobPlan::new(valid.clone(), Vec::new());
        plan.log = log.clone();
        let mut job = Job { plan, exec: false, restart: false, main: None, sockets: Vec::new() };
        r.within(valid.as_str(), |r| {
            r.table(&JOB, table, &mut job);
            if !job.exec && r.is_whole() {
                r.wrong::<()>(
                    name.span(),
                    "'exec' is missing",
                    "add the command: exec = \"program argument\"",
                );
            }
        });
        if job.plan.main && !job.restart {
            job.plan.restart = Restart::on(RestartOn::Never);
        }
        Some(job)
    })
}

/// What can only be said about the whole.
fn judge(r: &mut Reader<'_>, node: Node, jobs: Vec<Placed>) -> Plan {
    one_main(r, &jobs);
    one_user_of_each_address(r, &jobs);
    let main = jobs.iter().any(|it| it.job.plan.main);
    let mut plan = node.plan;
    plan.exit = match node.exit {
        None if main => ExitRule::Main,
        None => ExitRule::All,
        Some((ExitRule::Main, at)) if !main => {
            r.file = at.file;
            let help = "add main = true to a job, or use \"all\" or \"never\"";
            r.within("node.exit", |r| r.wrong::<()>(at.span, "no job is main", help));
            ExitRule::Main
        }
        Some((rule, _)) => rule,
    };
    if jobs.is_empty() {
        r.nothing("there is no job", "add one: [jobs.NAME] with exec = \"program argument\"");
    }
    Plan { node: plan, jobs: jobs.into_iter().map(|it| it.job.plan).collect(), apps: Vec::new() }
}

fn one_main(r: &mut Reader<'_>, jobs: &[Placed]) {
    let mut mains = jobs.iter().filter_map(|it| it.job.main.map(|span| (it, span)));
    let Some((first, _)) = mains.next() else { return };
    for (other, span) in mains {
        r.file = other.at.file;
        let message = format!("job '{}' is main already", first.job.plan.name);
        let path = format!("jobs.{}.main", other.job.plan.name);
        r.within(&path, |r| r.wrong::<()>(span, message, "let one job decide when the node ends"));
    }
}

fn one_user_of_each_address(r: &mut Reader<'_>, jobs: &[Placed]) {
    let mut users: BTreeMap<&str, &Name> = BTreeMap::new();
    for placed in jobs {
        let plan = &placed.job.plan;
        for (socket, span) in plan.sockets.iter().zip(&placed.job.sockets) {
            let Some(user) = users.insert(&socket.address, &plan.name) else { continue };
            r.file = placed.at.file;
            let message = format!("{} is already a socket of job '{user}'", socket.address);
            let path = format!("jobs.{}.sockets.{}", plan.name, socket.name);
            r.within(&path, |r| r.wrong::<()>(*span, message, "use another address"));
        }
    }
}
