//! One job, as it is written here.

use super::{
    duration::written,
    job::{Advertise, Job, Restarts},
    reader::Reader,
    when::When,
};
use crate::draft::{Table, inline, list, literal, pair, quoted};
use std::time::Duration;

/// How long a process has from SIGTERM to SIGKILL unless a job says otherwise.
const STOP: Duration = Duration::from_secs(5);

/// What holds for all jobs.
pub(super) struct JobDefaults {
    pub(super) stop: Duration,
    /// Whether output goes to stdout unless a job says otherwise.
    pub(super) forward: bool,
}

pub(super) fn table(
    r: &Reader<'_>,
    defaults: &JobDefaults,
    job: &Job,
    when: &When,
    bound: Option<Duration>,
) -> Table {
    let mut table = Table::new(format!("jobs.{}", job.own), r.file(&job.at)).at(job.at.clone());
    if job.own != job.name && !job.is_twin {
        let message = format!("'{}' is no name for a job here: it is '{}'", job.name, job.own);
        table.note(r.line(&job.at), message);
    }
    for (line, note) in job.notes.iter().chain(&when.notes) {
        table.note(*line, note);
    }
    if let Some((words, span)) = &job.exec {
        table.set_at("exec", list(words.iter().map(|word| literal(word))), span.clone());
        starting(r, &mut table, job, when);
        if let Some(timeout) = bound.or(job.timeout.as_ref().map(|it| it.0)).or(interval(job)) {
            table.set("timeout", written(timeout));
        }
        if defaults.stop != STOP {
            table.set("stop", inline(&[pair("timeout", written(defaults.stop))]));
        }
    } else if let (Some(clause), None) = (&when.clause, interval(job)) {
        table.set("when", clause.clone());
    }
    health(&mut table, job);
    if let Some(advertise) = &job.advertise {
        if is_late(job) {
            let message = "ttl is not longer than interval: signs of life come twice in it, so that \
                           it does not lapse between two as in 3.8.0";
            table.note(r.line(&advertise.at), message);
        }
        table.set_at("advertise", advertised(job, advertise), advertise.at.clone());
    }
    for (key, id) in [("user", job.user), ("group", job.group)] {
        if let Some(id) = id {
            table.set(key, id.to_string());
        }
    }
    if job.raw {
        let mut log = vec![pair("format", quoted("raw")), pair("output", quoted("same"))];
        if !defaults.forward {
            log.push(pair("forward", "true"));
        }
        table.set("stderr", quoted("separate"));
        table.set("log", inline(&log));
    }
    table
}

fn interval(job: &Job) -> Option<Duration> {
    job.when.as_ref().and_then(|it| it.interval.as_ref()).map(|it| it.0)
}

/// `when` and `restart`, which belong together when there is an interval.
fn starting(r: &Reader<'_>, table: &mut Table, job: &Job, when: &When) {
    let restarts = job.restarts.as_ref().map(|(restarts, span)| (*restarts, r.line(span)));
    let interval = interval(job);
    match (interval, restarts) {
        (Some(_), None | Some((Restarts::Unlimited, _))) => {}
        (Some(_), Some((Restarts::Never, line))) => {
            table.note(line, "without restarts an interval is one run, as before");
            table.set("restart", quoted("never"));
            return;
        }
        (Some(every), Some((Restarts::Times(times), _))) => {
            let delay = written(every);
            let pairs = [
                pair("on", quoted("any")),
                pair("delay", delay.clone()),
                pair("max_delay", delay),
                pair("limit", times.to_string()),
                pair("from", quoted("start")),
            ];
            table.set("restart", inline(&pairs));
            return;
        }
        (None, _) => {}
    }
    if let Some(clause) = &when.clause {
        table.set("when", clause.clone());
    }
    if interval.is_some() {
        return;
    }
    match restarts.map_or(Restarts::Never, |(it, _)| it) {
        // What happens by itself for a job that is triggered or a hook.
        Restarts::Never if when.each || when.hook.is_some() => {}
        Restarts::Never => table.set("restart", quoted("never")),
        Restarts::Unlimited => table.set("restart", quoted("always")),
        Restarts::Times(times) => {
            let pairs = [pair("on", quoted("any")), pair("limit", times.to_string())];
            table.set("restart", inline(&pairs));
        }
    }
}

fn health(table: &mut Table, job: &Job) {
    let mut checks = Vec::new();
    let mut at = None;
    for health in &job.health {
        let Some((words, span)) = &health.exec else { continue };
        at = at.or_else(|| Some(span.clone()));
        let mut pairs = vec![
            pair("exec", list(words.iter().map(|word| literal(word)))),
            pair("interval", written(health.interval)),
        ];
        if let Some(timeout) = health.timeout.filter(|timeout| *timeout != health.interval) {
            pairs.push(pair("timeout", written(timeout)));
        }
        let output = if health.raw { "raw" } else { "forward" };
        pairs.push(pair("output", quoted(output)));
        checks.push(inline(&pairs));
    }
    let value = match checks.len() {
        0 => return,
        1 => checks.swap_remove(0),
        _ => list(checks),
    };
    table.set_at("health", value, at.unwrap_or_else(|| job.at.clone()));
}

/// How long Consul waits for a sign of life, and how often it gets one: several checks make one
/// health, so the shortest counts.
fn beats(job: &Job) -> Option<(Duration, Duration)> {
    let ttl = job.health.iter().map(|health| health.ttl).min()?;
    let beat = job.health.iter().map(|it| it.heartbeat.unwrap_or(it.interval)).min()?;
    Some((ttl, if beat < ttl { beat } else { ttl / 2 }))
}

/// Whether there would have been too few signs of life.
fn is_late(job: &Job) -> bool {
    let beat = job.health.iter().map(|it| it.heartbeat.unwrap_or(it.interval)).min();
    let ttl = job.health.iter().map(|health| health.ttl).min();
    ttl.zip(beat).is_some_and(|(ttl, beat)| beat >= ttl)
}

fn advertised(job: &Job, it: &Advertise) -> String {
    let mut pairs = vec![pair("port", it.port.to_string())];
    if let Some((ttl, beat)) = beats(job) {
        pairs.push(pair("ttl", written(ttl)));
        pairs.push(pair("heartbeat", written(beat)));
    }
    if !it.tags.is_empty() {
        pairs.push(pair("tags", list(it.tags.iter().map(|tag| literal(tag)))));
    }
    pairs.push(pair("interfaces", list(it.interfaces.iter().map(|spec| literal(spec)))));
    if let Some(status) = &it.initial_status {
        pairs.push(pair("initial_status", quoted(status)));
    }
    if it.enable_tag_override {
        pairs.push(pair("enable_tag_override", "true"));
    }
    if let Some(after) = it.deregister_after {
        pairs.push(pair("deregister_critical_after", written(after)));
    }
    if !it.meta.is_empty() {
        let meta = it.meta.iter().map(|(key, value)| (key.clone(), literal(value)));
        pairs.push(pair("meta", inline(&meta.collect::<Vec<_>>())));
    }
    if job.own != job.name {
        pairs.push(pair("service", quoted(&job.name)));
    }
    inline(&pairs)
}
