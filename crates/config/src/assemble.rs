//! From the texts to the plan: parse each file, merge what they say, and judge the whole.

use crate::{
    Context, JobPlace, Loaded, alone,
    api::{self, API, Api},
    app::APP,
    containerpilot::CONTAINERPILOT,
    diag::Errors,
    discovery::{self, DISCOVERY, WATCH},
    health,
    job::{JOB, Job, MOST_INSTANCES, Placed},
    log::{LOG, Logging},
    nearest::nearest,
    node::{self, NODE, Node, Place},
    order,
    reader::Reader,
    source::Sources,
    stdio,
    telemetry::{self, TELEMETRY, Telemetry},
    value::{Span, as_i64},
};
use mainstay_core::{
    name::Name,
    plan::{
        ApiPlan, AppPlan, ContainerPilotPlan, ExitRule, JobPlan, Log, Plan, Probe, Restart,
        RestartOn, WatchPlan, Watched,
    },
};
use std::collections::{BTreeMap, BTreeSet};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

const MOST_JOBS: usize = 10_000;
const MOST_APPS: usize = 1000;
const MOST_WATCHES: usize = 1000;
/// A larger file that is no TOML gets one report: recovery would make one for nearly every byte.
const RECOVERED: usize = 256 << 10;

const TABLES: [&str; 9] =
    ["node", "log", "jobs", "apps", "watches", "discovery", "telemetry", "containerpilot", "api"];
const LATER: [&str; 5] = ["fleet", "rollout", "profiles", "templates", "services"];

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

    let mut watched = Telemetry::default();
    merge(&mut r, "telemetry", &parts.telemetry, |r, table| {
        r.table(&TELEMETRY, table, &mut watched);
    });
    let at = parts.telemetry.first().map(|it| Place { file: it.file, span: it.at });
    let telemetry = telemetry::settle(&mut r, watched, at);
    let mut containerpilot = (!parts.containerpilot.is_empty()).then(ContainerPilotPlan::default);
    if let Some(pilot) = &mut containerpilot {
        merge(&mut r, "containerpilot", &parts.containerpilot, |r, table| {
            r.table(&CONTAINERPILOT, table, pilot);
        });
    }
    let mut engine = discovery::Written::default();
    merge(&mut r, "discovery", &parts.discovery, |r, table| {
        r.table(&DISCOVERY, table, &mut engine);
    });
    let discovery = parts.discovery.first().and_then(|part| {
        let at = part.at;
        r.file = part.file;
        r.within("discovery", |r| engine.judge(at, r))
    });
    let watches = watches(&mut r, &parts.watches);
    alone::one_watch_for_each_variable(&mut r, &watches);
    let mut api = Api::default();
    merge(&mut r, "api", &parts.api, |r, table| r.table(&API, table, &mut api));
    let api = api::judge(&mut r, api);

    let apps = apps(&mut r, &parts.apps);
    let mut jobs = jobs(&mut r, &parts.jobs, &log.log);
    order::settle(&mut r, &mut jobs, &watches);
    whom_to_tell(&mut r, parts.discovery.is_empty(), &jobs, &watches);
    membership(&mut r, &apps, &jobs);
    let apps = apps.into_iter().map(|(app, _)| app).collect();
    let places = jobs.iter().map(|it| place(&r, it)).collect();
    let mut plan = judge(&mut r, node, jobs, apps, api);
    plan.telemetry = telemetry;
    plan.containerpilot = containerpilot;
    plan.watches = watches.into_iter().map(|(watch, _)| watch).collect();
    plan.discovery = discovery;
    Ok(Loaded { warnings: r.finish()?, plan, places })
}

fn place(r: &Reader<'_>, it: &Placed) -> JobPlace {
    let line = |span: Span| r.file_line(it.at.file, span.start);
    JobPlace { job: it.job.plan.name.clone(), at: line(it.at.span), when: it.job.when_at.map(line) }
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
    /// Its name.
    at: Span,
    table: &'t DeTable<'t>,
}

/// The tables of all files, sorted by what they are about.
#[derive(Default)]
struct Parts<'t> {
    node: Vec<Part<'t>>,
    log: Vec<Part<'t>>,
    jobs: Vec<Part<'t>>,
    apps: Vec<Part<'t>>,
    telemetry: Vec<Part<'t>>,
    containerpilot: Vec<Part<'t>>,
    watches: Vec<Part<'t>>,
    discovery: Vec<Part<'t>>,
    api: Vec<Part<'t>>,
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
                "apps" => &mut parts.apps,
                "telemetry" => &mut parts.telemetry,
                "containerpilot" => &mut parts.containerpilot,
                "watches" => &mut parts.watches,
                "discovery" => &mut parts.discovery,
                "api" => &mut parts.api,
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
                into.push(Part { file: *file, at: name.span().into(), table });
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

/// The jobs so far, and the names that are taken.
#[derive(Default)]
struct Jobs {
    all: Vec<Placed>,
    taken: BTreeMap<String, Place>,
}

fn jobs(r: &mut Reader<'_>, parts: &[Part<'_>], log: &Log) -> Vec<Placed> {
    let mut jobs = Jobs::default();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            let more = r.within("jobs", |r| jobs.add(r, name, value, at, log));
            if more.is_none() {
                return jobs.all;
            }
        }
    }
    jobs.all
}

impl Jobs {
    /// Adds a job or all its instances; `None` when there are too many.
    fn add<'t>(
        &mut self,
        r: &mut Reader<'_>,
        name: &Word<'t>,
        value: &'t Spanned<DeValue<'t>>,
        at: Place,
        log: &Log,
    ) -> Option<()> {
        let wrong = |r: &mut Reader<'_>, message: String, help: &str| {
            r.wrong::<()>(name.span(), message, help);
        };
        let base = match Name::new(name.get_ref()) {
            Ok(base) => base,
            Err(error) => {
                wrong(r, error.to_string(), "rename the job");
                return Some(());
            }
        };
        let Some(table) = table(r, name, value) else { return Some(()) };
        let count = instances(table);
        let numbers: Vec<Option<u32>> =
            count.map_or_else(|| vec![None], |count| (1..=count).map(Some).collect());
        if self.all.len() + numbers.len() > MOST_JOBS {
            wrong(r, format!("more than {MOST_JOBS} jobs"), "split them between nodes");
            return None;
        }
        let before = r.errors();
        for number in numbers {
            let full = number.map_or_else(|| base.to_string(), |n| format!("{base}-{n}"));
            let full = match Name::new(&full) {
                Ok(full) => full,
                Err(error) => {
                    wrong(r, error.to_string(), "rename the job: its instances are numbered");
                    return Some(());
                }
            };
            let taken = self.taken.get(full.as_str()).or_else(|| self.taken.get(base.as_str()));
            if let Some(first) =
                taken.filter(|first| first.span != at.span || first.file != at.file)
            {
                let first = r.position(first.file, first.span.start);
                let message = format!("job '{full}' is already defined at {first}");
                wrong(r, message, "rename or remove one of them");
                return Some(());
            }
            let mut plan = JobPlan::new(full.clone(), Vec::new());
            plan.log = log.clone();
            plan.instance_of = number.map(|_| base.clone());
            let echo = number.is_some_and(|n| n > 1);
            // What is wrong with one instance is most often wrong with all: it is told once.
            let known = echo && r.errors() > before;
            r.instance = number;
            let job = r.quiet(known, |r| r.within(base.as_str(), |r| read(r, plan, name, table)));
            r.instance = None;
            if let (2, Some(span)) = (number.unwrap_or_default(), job.main) {
                r.within(&format!("{base}.main"), |r| {
                    let help = "remove main or instances";
                    r.wrong::<()>(span, "a main job with several instances", help)
                });
            }
            self.taken.insert(full.as_str().to_owned(), at);
            self.all.push(Placed { job, at, written: base.to_string(), echo });
        }
        self.taken.insert(base.as_str().to_owned(), at);
        Some(())
    }
}

/// How many instances the table asks for; a wrong number is told when the key is read.
fn instances(table: &DeTable<'_>) -> Option<u32> {
    let (_, value) = table.iter().find(|(key, _)| key.get_ref() == "instances")?;
    let DeValue::Integer(number) = value.get_ref() else { return None };
    let count = as_i64(number).and_then(|count| u32::try_from(count).ok())?;
    (1..=MOST_INSTANCES).contains(&count).then_some(count)
}

fn read<'t>(r: &mut Reader<'_>, plan: JobPlan, name: &Word<'t>, table: &'t DeTable<'t>) -> Job {
    let mut job = Job::new(plan);
    r.table(&JOB, table, &mut job);
    if !job.exec && job.advertise.is_none() && job.checks.is_empty() && r.is_whole() {
        let help = "add the command: exec = \"program argument\"";
        r.wrong::<()>(name.span(), "'exec' is missing", help);
    }
    job.merge_env();
    job.plan.notify |= health::wants_notify(&job.checks);
    sockets_and_fds(r, &job);
    stdio::agree(r, &job);
    job.plan.checks = std::mem::take(&mut job.checks).into_iter().map(|it| it.check).collect();
    let triggered = job.when.trigger.is_some();
    if triggered && let Some(span) = job.main {
        r.within("main", |r| {
            r.wrong::<()>(
                span,
                "a job that starts again and again cannot be the one whose end ends the node",
                "remove main, or start it once",
            )
        });
    }
    if let (Some(span), None) = (job.place, job.app) {
        r.within("place", |r| {
            r.wrong::<()>(span, "a job without app has no place in one", "add app = \"NAME\"")
        });
    }
    if (job.plan.main || triggered || job.when.is_hook()) && !job.restart {
        job.plan.restart = Restart::on(RestartOn::Never);
    }
    job
}

/// Sockets are handed over from descriptor 3 on; one to be written to cannot be among them.
fn sockets_and_fds(r: &mut Reader<'_>, job: &Job) {
    let sockets = u32::try_from(job.plan.sockets.len()).unwrap_or(u32::MAX);
    for it in &job.checks {
        if let Probe::Fd(fd) = it.check.probe
            && fd < sockets.saturating_add(3)
        {
            let message = format!("descriptor {fd} is one of the job's {sockets} sockets");
            let help = format!("use {} or above", sockets.saturating_add(3));
            r.within("health.fd", |r| r.wrong::<()>(it.span, message, help));
        }
    }
}

fn watches(r: &mut Reader<'_>, parts: &[Part<'_>]) -> Vec<(WatchPlan, Place)> {
    let mut watches: Vec<(WatchPlan, Place)> = Vec::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            if watches.len() == MOST_WATCHES {
                let message = format!("more than {MOST_WATCHES} watches");
                r.within("watches", |r| r.wrong::<()>(at.span, message, "watch fewer services"));
                return watches;
            }
            r.within("watches", |r| {
                let valid = match Name::new(name.get_ref()) {
                    Ok(valid) => valid,
                    Err(error) => {
                        return r.wrong::<()>(name.span(), error.to_string(), "rename the watch");
                    }
                };
                if let Some((_, first)) = watches.iter().find(|(watch, _)| watch.name == valid) {
                    let first = r.position(first.file, first.span.start);
                    let message = format!("watch '{valid}' is already defined at {first}");
                    return r.wrong(name.span(), message, "rename or remove one of them");
                }
                let from = table(r, name, value)?;
                let plan = r.within(name.get_ref(), |r| {
                    let mut watch = discovery::Watch::default();
                    r.table(&WATCH, from, &mut watch);
                    watch.judge(valid, r)
                })?;
                watches.push((plan, at));
                Some(())
            });
        }
    }
    watches
}

/// Who is announced or asks about a service needs somewhere to do so.
fn whom_to_tell(
    r: &mut Reader<'_>,
    nowhere: bool,
    jobs: &[Placed],
    watches: &[(WatchPlan, Place)],
) {
    if !nowhere {
        return;
    }
    let help = "add [discovery] with engine = \"consul\" or engine = \"file\"";
    for placed in jobs.iter().filter(|it| !it.echo) {
        let Some(span) = placed.job.advertise else { continue };
        r.file = placed.at.file;
        r.within(&format!("jobs.{}.advertise", placed.written), |r| {
            r.wrong::<()>(span, "there is nowhere to announce it", help)
        });
    }
    for (watch, at) in watches.iter().filter(|(it, _)| matches!(it.of, Watched::Service { .. })) {
        r.file = at.file;
        r.within(&format!("watches.{}", watch.name), |r| {
            r.wrong::<()>(at.span, "there is nobody to ask", help)
        });
    }
}

fn apps(r: &mut Reader<'_>, parts: &[Part<'_>]) -> Vec<(AppPlan, Place)> {
    let mut apps: Vec<(AppPlan, Place)> = Vec::new();
    for part in parts {
        r.file = part.file;
        for (name, value) in part.table {
            let at = Place { file: part.file, span: name.span().into() };
            if apps.len() == MOST_APPS {
                let message = format!("more than {MOST_APPS} apps");
                r.within("apps", |r| r.wrong::<()>(at.span, message, "split them between nodes"));
                return apps;
            }
            r.within("apps", |r| {
                let valid = match Name::new(name.get_ref()) {
                    Ok(valid) => valid,
                    Err(error) => {
                        return r.wrong::<()>(name.span(), error.to_string(), "rename the app");
                    }
                };
                if let Some((_, first)) = apps.iter().find(|(app, _)| app.name == valid) {
                    let first = r.position(first.file, first.span.start);
                    let message = format!("app '{valid}' is already defined at {first}");
                    return r.wrong(name.span(), message, "rename or remove one of them");
                }
                let mut app = AppPlan::new(valid);
                let from = table(r, name, value)?;
                r.within(name.get_ref(), |r| r.table(&APP, from, &mut app));
                apps.push((app, at));
                Some(())
            });
        }
    }
    apps
}

/// Every app that a job names exists, and every app has a job.
fn membership(r: &mut Reader<'_>, apps: &[(AppPlan, Place)], jobs: &[Placed]) {
    for placed in jobs.iter().filter(|it| !it.echo) {
        let (Some(app), Some(span)) = (&placed.job.plan.app, placed.job.app) else { continue };
        if apps.iter().any(|(known, _)| known.name == *app) {
            continue;
        }
        r.file = placed.at.file;
        let help = match nearest(app.as_str(), apps.iter().map(|(app, _)| app.name.as_str())) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("add the table [apps.{app}]"),
        };
        r.within(&format!("jobs.{}.app", placed.written), |r| {
            r.wrong::<()>(span, format!("there is no app '{app}'"), help)
        });
    }
    let used: BTreeSet<&Name> = jobs.iter().filter_map(|it| it.job.plan.app.as_ref()).collect();
    for (app, at) in apps.iter().filter(|(app, _)| !used.contains(&app.name)) {
        r.file = at.file;
        r.within(&format!("apps.{}", app.name), |r| {
            let help = format!("add app = \"{}\" to the jobs that belong to it", app.name);
            r.warn(at.span, "no job belongs to this app", help);
        });
    }
}

/// What can only be said about the whole.
fn judge(
    r: &mut Reader<'_>,
    node: Node,
    jobs: Vec<Placed>,
    apps: Vec<AppPlan>,
    api: ApiPlan,
) -> Plan {
    one_main(r, &jobs);
    one_user_of_each_address(r, &jobs);
    alone::one_job_for_each_entry(r, &node.plan.name, &jobs);
    let main = jobs.iter().any(|it| it.job.plan.main);
    let mut plan = node.plan;
    plan.exit = match node.exit {
        None if main => ExitRule::Main,
        // Somebody means to come and ask, also when nothing runs.
        None if api.listen.is_some() => ExitRule::Never,
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
    let jobs = jobs.into_iter().map(|it| it.job.plan).collect();
    Plan { apps, api, ..Plan::new(plan, jobs) }
}

fn one_main(r: &mut Reader<'_>, jobs: &[Placed]) {
    let mut mains =
        jobs.iter().filter(|it| !it.echo).filter_map(|it| it.job.main.map(|span| (it, span)));
    let Some((first, _)) = mains.next() else { return };
    for (other, span) in mains {
        r.file = other.at.file;
        let message = format!("job '{}' is main already", first.job.plan.name);
        let path = format!("jobs.{}.main", other.written);
        r.within(&path, |r| r.wrong::<()>(span, message, "let one job decide when the node ends"));
    }
}

fn one_user_of_each_address(r: &mut Reader<'_>, jobs: &[Placed]) {
    let mut users: BTreeMap<&str, &Name> = BTreeMap::new();
    let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
    for placed in jobs {
        let plan = &placed.job.plan;
        for (socket, span) in plan.sockets.iter().zip(&placed.job.sockets) {
            let Some(user) = users.insert(&socket.address, &plan.name) else { continue };
            // Of many instances with one address the second says it all.
            if !told.insert((&placed.written, &socket.name)) {
                continue;
            }
            r.file = placed.at.file;
            let message = format!("{} is already a socket of job '{user}'", socket.address);
            let path = format!("jobs.{}.sockets.{}", placed.written, socket.name);
            let help = if placed.echo {
                "give each instance its own: put {instance} into the address"
            } else {
                "use another address"
            };
            r.within(&path, |r| r.wrong::<()>(*span, message, help));
        }
    }
}
