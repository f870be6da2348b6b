//! ContainerPilot 3: a JSON5 file that is a Go template over the environment.
//!
//! ```text
//! file ─► template (rendered text that knows its origin) ─► json5 (tree with places)
//!      ─► reader (keys strictly, types weakly) ─► jobs, watches, consul, telemetry ─► Draft
//! ```
//!
//! Where version 3.8.0 did something else than its design says, the design holds, and a comment in
//! the outcome says so. Every mistake is told with its line and column in the file as it was
//! written, also one that is only found in what the file becomes.

mod actions;
mod consul;
mod duration;
mod functions;
mod health;
mod job;
mod json5;
mod logging;
mod parts;
mod reader;
mod regex;
mod telemetry;
mod template;
mod watch;
mod when;
mod work;
mod write;

use super::{
    Imported,
    draft::{Draft, Names, Places, Table, quoted},
};
use job::{Job, Restarts};
use json5::{Json5Node, Json5Value};
use mainstay_config::{Context, Diagnostic, Errors, Source, cycle};
use parts::Parts;
use reader::{Case, Reader};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use when::When;
use write::JobDefaults;

const KEYS: &[&str] =
    &["consul", "logging", "stopTimeout", "jobs", "watches", "telemetry", "control"];
const STOP: i64 = 5;
/// For a job that runs when another one stops and says nothing of how long it may.
const HOOK: Duration = Duration::from_secs(60);
const MOST_JOBS: usize = 10_000;
const NO_JOB: &str = "there is no job in this ContainerPilot configuration";
const NO_JOB_HELP: &str = "it needs a list 'jobs', each with a name and what to run";

pub(super) use parts::read as sources;

/// `name`: what the files are called together.
pub(super) fn import(sources: &[Source], name: &str, ctx: &Context) -> Result<Imported, Errors> {
    let parts = Parts::render(sources, ctx)?;
    let mut r = Reader::new(&parts);
    let draft = match parts.tree() {
        Ok(tree) => read(&mut r, &tree, name, ctx),
        Err(bad) => r.wrong(&bad.span, bad.message, bad.help),
    };
    r.finish()?;
    let Some(draft) = draft else { return Err(nothing(name).into()) };
    let (mut imported, places) = draft.finish_with_places();
    proven(name, &parts, &imported, &places, ctx)?;
    let written = places.iter();
    let written = written.filter_map(|(line, span)| Some((*line, parts.written_at(span)?)));
    imported.places = written.collect();
    Ok(imported)
}

/// The files with their templates rendered, and nothing else done to them.
pub(super) fn render(sources: &[Source], ctx: &Context) -> Result<String, Errors> {
    Ok(Parts::render(sources, ctx)?.texts().collect())
}

/// The control socket that the files name, however broken the rest of them is.
pub(super) fn socket(sources: &[Source], ctx: &Context) -> PathBuf {
    let found = sources.iter().find_map(|source| {
        let rendered = template::render(&source.text, &ctx.env).map(|it| it.text);
        named_socket(rendered.as_deref().unwrap_or(&source.text))
    });
    found.unwrap_or_else(|| telemetry::SOCKET.to_owned()).into()
}

fn named_socket(text: &str) -> Option<String> {
    let member = |node: Json5Node, key: &str| match node.value {
        Json5Value::Map(entries) => {
            entries.into_iter().find(|it| it.key.eq_ignore_ascii_case(key)).map(|it| it.node)
        }
        _ => None,
    };
    let found = match json5::parse(text) {
        Ok(tree) => match member(tree, "control").and_then(|control| member(control, "socket")) {
            Some(Json5Node { value: Json5Value::Text(path), .. }) => Some(path),
            Some(_) | None => None,
        },
        Err(_) => looked_for(text),
    };
    found.filter(|path| !path.is_empty())
}

/// The socket in a text that cannot be parsed.
fn looked_for(text: &str) -> Option<String> {
    let pattern =
        r#"(?s)\bcontrol["']?\s*:\s*\{[^{}]*?\bsocket["']?\s*:\s*(?:"([^"\n]*)"|'([^'\n]*)')"#;
    let found = ::regex::Regex::new(pattern).ok()?;
    let found = found.captures(text)?;
    let path = found.get(1).or_else(|| found.get(2))?.as_str();
    (!path.contains("{{")).then(|| path.to_owned())
}

/// Whether the outcome loads. What it does not load for is told where the file says it.
fn proven(
    name: &str,
    parts: &Parts<'_>,
    imported: &Imported,
    places: &Places,
    ctx: &Context,
) -> Result<(), Errors> {
    let Err(errors) = mainstay_config::parse(name, &imported.toml, ctx) else {
        return Ok(());
    };
    let told = |found: &Diagnostic| {
        let line = found.spot.as_ref().map_or(0, |spot| spot.line);
        let place = places.iter().rev().find(|(at, _)| *at <= line);
        match place.and_then(|(_, span)| parts.locate(span)) {
            Some(at) => found.clone().at(at.source, at.span),
            None => found.clone().nowhere(),
        }
    };
    Err(Errors::of_file(errors.iter().map(told).collect()))
}

fn nothing(file: &str) -> Diagnostic {
    Diagnostic::error(NO_JOB).file(file).help(NO_JOB_HELP)
}

fn read(r: &mut Reader<'_>, tree: &Json5Node, file: &str, ctx: &Context) -> Option<Draft> {
    let fields = r.fields(tree, "the configuration", KEYS, Case::Exact)?;
    let off = |node: &&Json5Node| node.value == Json5Value::Bool(false);
    let consul = fields.get("consul").filter(|node| !off(node));
    let discovery =
        consul.and_then(|node| consul::read(r, node, fields.at("consul"), &ctx.env, file));
    let stop = stop_timeout(r, fields.get("stopTimeout"));
    let (log, forward) = logging::read(r, fields.get("logging"), file);
    let (socket, socket_at) = telemetry::control(r, fields.get("control"));
    let watches = watch::read(r, fields.get("watches"));
    let mut names = Names::default();
    let mut jobs = Vec::new();
    for node in watch::items(r, fields.get("jobs"), "jobs") {
        if jobs.len() == MOST_JOBS {
            let message = format!("more than {MOST_JOBS} jobs");
            r.wrong::<()>(&node.span, message, "split them between containers");
            break;
        }
        jobs.extend(Job::read(r, node, &mut names));
    }
    let telemetry = fields.get("telemetry").and_then(|node| {
        let (tables, job) = telemetry::telemetry(r, node, &mut names, file)?;
        match consul {
            Some(_) => jobs.push(job),
            None => drop(job),
        }
        Some(tables)
    });
    twins(r, &mut jobs);
    if consul.is_none() {
        needs_consul(r, &jobs, &watches);
    }
    let whens = resolve(r, &jobs, &watches)?;
    if jobs.is_empty() {
        return r.wrong(&fields.at("jobs"), NO_JOB, NO_JOB_HELP);
    }

    let mut draft = Draft::new("a ContainerPilot configuration", file);
    about(&mut draft, r, &jobs, &whens, consul.is_some());
    let bounds = bounds(&jobs, &whens);
    let mut node = Table::new("node", file).at(fields.at("stopTimeout"));
    let room = hooks_need(&jobs, &whens, &bounds);
    node.set("stop_timeout", duration::written(stop + room));
    node.set("exit", quoted("all"));
    node.note(
        fields.get("stopTimeout").map(|node| r.line(&node.span)),
        "stopTimeout is a limit: the node ends as soon as nothing is left, where 3.8.0 waited it out",
    );
    if !room.is_zero() {
        let message = format!(
            "{} of it are for jobs that run when others stop",
            duration::written(room).trim_matches('"')
        );
        node.note(None, message);
    }
    draft.push(node);
    let mut pilot = Table::new("containerpilot", file).at(socket_at.unwrap_or_default());
    pilot.set("socket", super::draft::literal(&socket));
    draft.push(pilot);
    let tables = [log].into_iter().chain(discovery).chain(telemetry.unwrap_or_default());
    for table in tables.filter(|table| !table.is_empty()) {
        draft.push(table);
    }
    for watch in &watches {
        draft.push(watch.table(r));
    }
    let defaults = JobDefaults { stop, forward };
    for (at, (job, when)) in jobs.iter().zip(&whens).enumerate() {
        let bound = bounds.get(at).copied().flatten();
        let mut table = write::table(r, &defaults, job, when, bound);
        if let Some((_, span)) = &job.stop_timeout {
            let hooked = whens.iter().any(|it| it.hook.is_some_and(|it| it.of == at && it.before));
            let message = match hooked {
                true => {
                    "stopTimeout holds for the jobs that run when this one stops; 3.8.0 waited \
                         for them without end"
                }
                false => "stopTimeout means nothing: no job runs when this one stops",
            };
            table.note(r.line(span), message);
        }
        draft.push(table);
    }
    Some(draft)
}

fn stop_timeout(r: &mut Reader<'_>, node: Option<&Json5Node>) -> Duration {
    let seconds = node.and_then(|node| {
        let seconds = r.integer(node, "stopTimeout")?;
        if seconds > 1_000_000_000 {
            return r.wrong(&node.span, "stopTimeout is too long", "write a number of seconds");
        }
        Some(seconds)
    });
    match seconds.unwrap_or(STOP) {
        0 => Duration::from_secs(STOP.unsigned_abs()),
        seconds => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
    }
}

/// A name is how a job is known: the second of one name has got another.
fn twins(r: &Reader<'_>, jobs: &mut [Job]) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for job in jobs {
        let line = r.line(&job.at);
        let at = format!("{}:{line}", r.file(&job.at));
        if let Some(first) = seen.get(&job.name) {
            job.is_twin = true;
            let message = format!(
                "there is a job '{}' already, at {first}: this one is '{}' here, and what waits for \
                 '{0}' waits for the first",
                job.name, job.own
            );
            job.notes.push((line, message));
            continue;
        }
        seen.insert(job.name.clone(), at);
    }
}

fn needs_consul(r: &mut Reader<'_>, jobs: &[Job], watches: &[watch::Watch]) {
    let help = "add consul: \"localhost:8500\"";
    for job in jobs {
        if let Some(advertise) = &job.advertise {
            let message = format!("job '{}' has a port, and there is no consul", job.name);
            r.wrong::<()>(&advertise.at, message, help);
        }
    }
    for watch in watches {
        let message = format!("watch '{}' needs consul, and there is none", watch.name);
        r.wrong::<()>(watch.place(), message, help);
    }
}

/// What every `when` means; `None` once something is wrong anywhere.
fn resolve(r: &mut Reader<'_>, jobs: &[Job], watches: &[watch::Watch]) -> Option<Vec<When>> {
    let mut whens = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let when = match &job.when {
            Some(written) => written.resolve(r, at, jobs, watches),
            None => Some(When::default()),
        };
        whens.extend(when);
    }
    if whens.len() == jobs.len() {
        let edges: Vec<Vec<usize>> =
            whens.iter().map(|when| when.waits_for.into_iter().collect()).collect();
        for circle in cycle::find(&edges) {
            let members: Vec<&Job> = circle.iter().filter_map(|at| jobs.get(*at)).collect();
            let names: Vec<&str> = members.iter().map(|job| job.name.as_str()).collect();
            let Some(first) = members.first() else { continue };
            let message = format!("these jobs wait for each other: {}", cycle::drawn(&names));
            r.wrong::<()>(&first.at, message, "let one of them start by itself");
        }
    }
    r.is_clean().then_some(whens)
}

/// How long jobs that run when another one stops may take, where somebody said.
fn bounds(jobs: &[Job], whens: &[When]) -> Vec<Option<Duration>> {
    let of = |(job, when): (&Job, &When)| {
        let hook = when.hook.filter(|hook| hook.before)?;
        let source = jobs.get(hook.of)?.stop_timeout.as_ref().map(|it| it.0);
        let own = job.timeout.as_ref().map(|it| it.0);
        [source, own].into_iter().flatten().min()
    };
    jobs.iter().zip(whens).map(of).collect()
}

/// What a shutdown needs on top of stopTimeout.
fn hooks_need(jobs: &[Job], whens: &[When], bounds: &[Option<Duration>]) -> Duration {
    let most = |before: bool| {
        let all = jobs.iter().zip(whens).zip(bounds);
        let of = all.filter_map(|((job, when), bound)| {
            when.hook.filter(|hook| hook.before == before)?;
            job.exec.as_ref()?;
            Some(bound.or(job.timeout.as_ref().map(|it| it.0)).unwrap_or(HOOK))
        });
        of.max().unwrap_or_default()
    };
    most(true) + most(false)
}

/// Notes about the file as a whole.
fn about(draft: &mut Draft, r: &Reader<'_>, jobs: &[Job], whens: &[When], consul: bool) {
    draft.note(None, "a reload touches only what has changed, and an invalid file changes nothing");
    if !consul {
        draft.note(None, "there is no consul: nothing is advertised");
    }
    for name in r.cut() {
        let message = format!("{{{{ .{name} }}}} is the whole value; 3.8.0 cut it at its '='");
        draft.note(None, message);
    }
    if jobs.iter().any(|job| job.advertise.is_some()) {
        draft.note(
            None,
            "jobs leave Consul before they are stopped, come back to it after maintenance or when it \
             has lost them, and a failing check is told at once: 3.8.0 did none of it",
        );
    }
    let again = |job: &&Job| {
        job.restarts.as_ref().is_some_and(|(it, _)| !matches!(it, Restarts::Never))
            && job.when.as_ref().is_none_or(|when| when.interval.is_none())
    };
    if let Some(job) = jobs.iter().find(again) {
        let line = job.restarts.as_ref().map(|(_, span)| r.line(span));
        draft.note_of(
            r.file(&job.at).to_owned(),
            line,
            "restarts: pauses grow from 200 ms to 30 s while a job keeps failing early; 3.8.0 had \
             none",
        );
    }
    if whens.iter().any(|when| when.each && when.hook.is_none()) {
        draft.note(
            None,
            "what would start a job while it runs starts it once more afterwards; 3.8.0 ran it once \
             for each, and froze when they were too many",
        );
    }
    for (at, job) in jobs.iter().enumerate() {
        let hooks =
            whens.iter().filter(|when| when.hook.is_some_and(|it| it.of == at && it.before));
        if hooks.count() > 1 {
            let message = format!(
                "'{}' waits for all jobs that run at its stopping; 3.8.0 waited for the last one",
                job.name
            );
            draft.note_of(r.file(&job.at).to_owned(), r.line(&job.at), message);
        }
    }
    for (job, when) in jobs.iter().zip(whens) {
        let free = job.timeout.is_none()
            && when.hook.is_some_and(|hook| {
                !hook.before || jobs.get(hook.of).is_none_or(|it| it.stop_timeout.is_none())
            });
        if free {
            let message = format!(
                "'{}' has a minute when the node stops; 3.8.0 waited for it without end. Give it a \
                 timeout to change that",
                job.name
            );
            draft.note_of(r.file(&job.at).to_owned(), r.line(&job.at), message);
        }
    }
}
