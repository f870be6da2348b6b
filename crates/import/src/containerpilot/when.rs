//! `when` of a job: which event of whom starts it. What ContainerPilot took and then waited for
//! without end is a mistake here; what the seed of it promised is kept.

use super::{
    job::Job,
    json5::Json5Node,
    reader::{Case, Fields, Reader, Span},
    watch::Watch,
};
use crate::draft::{inline, pair, quoted};
use mainstay_config::nearest;
use mainstay_core::event::{During, EventName, Speaker};
use std::time::Duration;

const KEYS: &[&str] = &["interval", "source", "once", "each", "event", "timeout"];
const GLOBAL: &str = "global";
const WATCH: &str = "watch.";

/// The events that ContainerPilot has as well; its signals are sources.
fn events() -> impl Iterator<Item = EventName> {
    let known = |it: &EventName| it.containerpilot().is_some() && it.can_be_awaited();
    EventName::ALL.iter().copied().filter(known)
}

/// The signals that are events.
const SIGNALS: [&str; 2] = ["SIGHUP", "SIGUSR2"];

/// `when` as it is written.
pub(super) struct WhenKeys {
    span: Span,
    source: Option<(String, Span)>,
    /// The key, the event, and where it is.
    event: Option<(&'static str, String, Span)>,
    pub(super) interval: Option<(Duration, Span)>,
    timeout: Option<(Duration, Span)>,
}

/// What `when` of a job means.
#[derive(Default)]
pub(super) struct When {
    /// For our `when`; `None`: at startup.
    pub(super) clause: Option<String>,
    pub(super) each: bool,
    /// It waits for this job once.
    pub(super) waits_for: Option<usize>,
    pub(super) hook: Option<Hook>,
    pub(super) notes: Vec<(usize, String)>,
}

/// A job that runs because another one stops.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Hook {
    pub(super) of: usize,
    /// Before its end, not after.
    pub(super) before: bool,
}

/// Who says an event.
enum EventSource {
    Node,
    Job(usize),
    Watch(String),
}

impl WhenKeys {
    pub(super) fn read(r: &mut Reader<'_>, node: &Json5Node, what: &str) -> Option<WhenKeys> {
        let fields = r.fields(node, &format!("{what}.when"), KEYS, Case::Any)?;
        // What is wrong in one key hides nothing in another.
        let one = one_of(r, &fields, what);
        let text = |r: &mut Reader<'_>, key: &str| match fields.filled(key) {
            Some(node) => {
                r.text(node, &format!("{what}.when.{key}")).map(|it| Some((it, node.span.clone())))
            }
            None => Some(None),
        };
        let source = text(r, "source");
        let mut event = Some(None);
        for key in ["once", "each", "event"] {
            match text(r, key) {
                Some(Some((name, span))) => event = event.map(|_| Some((key, name, span))),
                Some(None) => {}
                None => event = None,
            }
        }
        let time = |r: &mut Reader<'_>, key: &str| match fields.filled(key) {
            Some(node) => r
                .duration(node, &format!("{what}.when.{key}"))
                .map(|it| Some((it, node.span.clone()))),
            None => Some(None),
        };
        let (interval, timeout) = (time(r, "interval"), time(r, "timeout"));
        one?;
        Some(WhenKeys {
            span: node.span.clone(),
            source: source?,
            event: event?,
            interval: interval?,
            timeout: timeout?,
        })
    }

    pub(super) fn is_each(&self) -> bool {
        self.event.as_ref().is_some_and(|(key, _, _)| *key == "each")
    }

    /// What it means among these jobs and watches.
    pub(super) fn resolve(
        &self,
        r: &mut Reader<'_>,
        own: usize,
        jobs: &[Job],
        watches: &[Watch],
    ) -> Option<When> {
        if let Some((every, _)) = &self.interval {
            return Some(self.every(r, *every));
        }
        if let Some((source, span)) = &self.source
            && source.starts_with("SIG")
        {
            return self.signal(r, source, span);
        }
        let Some((key, event, span)) = &self.event else { return self.nothing(r) };
        let event = known(r, event, span)?;
        let (source, event_at) = (self.source(r, event, span, jobs, watches)?, span);
        if let EventSource::Job(at) = source
            && at == own
        {
            let at = self.source.as_ref().map_or(&self.span, |(_, span)| span);
            let message = "the job waits for itself and would never start";
            return r.wrong(at, message, "name another job as source, or remove 'when'");
        }
        let each = *key == "each";
        let mut when = When { each, ..When::default() };
        self.notes(r, &mut when, event, event_at, &source, jobs);
        let hook = event.ends();
        if let (EventSource::Job(of), true) = (&source, hook) {
            when.hook = Some(Hook { of: *of, before: event.during() == Some(During::Stop) });
        }
        if let (EventSource::Job(at), false) = (&source, each) {
            when.waits_for = Some(*at);
        }
        let mut pairs = Vec::new();
        match &source {
            EventSource::Node => {}
            EventSource::Job(at) => {
                pairs.push(pair("source", quoted(jobs.get(*at).map_or("", |it| &it.own))));
            }
            EventSource::Watch(name) => {
                pairs.push(pair("source", quoted(&format!("{WATCH}{name}"))))
            }
        }
        pairs.push(pair(if each { "each" } else { "once" }, quoted(event.as_str())));
        if let Some((timeout, span)) = &self.timeout {
            if hook {
                let message = "timeout: does not hold for a job that runs when another one stops";
                when.notes.push((r.line(span), message.to_owned()));
            } else {
                pairs.push(pair("timeout", super::duration::written(*timeout)));
            }
        }
        if event == EventName::Startup && !each && self.timeout.is_none() {
            return Some(when);
        }
        when.clause = Some(inline(&pairs));
        Some(when)
    }

    fn every(&self, r: &Reader<'_>, every: Duration) -> When {
        let mut when = When { each: true, ..When::default() };
        let beside = [self.source.as_ref().map(|it| &it.1), self.timeout.as_ref().map(|it| &it.1)];
        for span in beside.into_iter().flatten() {
            let message = "source and timeout mean nothing beside interval, as before";
            when.notes.push((r.line(span), message.to_owned()));
        }
        when.clause = Some(inline(&[pair("interval", super::duration::written(every))]));
        when
    }

    fn signal(&self, r: &mut Reader<'_>, source: &str, span: &Span) -> Option<When> {
        if !SIGNALS.contains(&source) {
            let message = format!("{source} is not a signal that starts jobs");
            return r.wrong(span, message, format!("use one of: {}", SIGNALS.join(", ")));
        }
        let mut when = When { each: true, ..When::default() };
        if let Some((key, _, span)) = &self.event {
            let message = format!(
                "'{key}' means nothing beside a signal: every {source} starts it, as before"
            );
            when.notes.push((r.line(span), message));
        }
        let mut pairs = vec![pair("each", quoted(source))];
        if let Some((timeout, _)) = &self.timeout {
            pairs.push(pair("timeout", super::duration::written(*timeout)));
        }
        when.clause = Some(inline(&pairs));
        Some(when)
    }

    /// ContainerPilot takes it and never starts the job.
    fn nothing<T>(&self, r: &mut Reader<'_>) -> Option<T> {
        match &self.source {
            Some((source, span)) => {
                let message = format!("what must '{source}' say? The job would never start");
                r.wrong(span, message, "add once: \"healthy\", each: \"changed\" or another event")
            }
            None => r.wrong(
                &self.span,
                "'when' names no event: the job would never start",
                "add source and once or each, or interval; or remove 'when' to start at once",
            ),
        }
    }

    fn source(
        &self,
        r: &mut Reader<'_>,
        event: EventName,
        event_at: &Span,
        jobs: &[Job],
        watches: &[Watch],
    ) -> Option<EventSource> {
        let Some((source, span)) = &self.source else {
            if event.is_said_by(Speaker::Node) {
                return Some(EventSource::Node);
            }
            let message = format!("whose '{event}'? The job would never start");
            return r.wrong(event_at, message, "add source: \"JOB\" or source: \"watch.NAME\"");
        };
        match (source.as_str(), event.is_said_by(Speaker::Node)) {
            (GLOBAL, true) => return Some(EventSource::Node),
            (GLOBAL, false) => {
                let message = format!("'{event}' is said by a job or a watch, not by 'global'");
                return r.wrong(span, message, "name a job, or a watch as watch.NAME");
            }
            (_, true) => {
                let message = format!("'{event}' is said by 'global', not by '{source}'");
                return r.wrong(span, message, "remove source, or write source: \"global\"");
            }
            (_, false) => {}
        }
        if let Some(name) = source.strip_prefix(WATCH) {
            return self.watch(r, name, event, event_at, span, watches);
        }
        if let Some(job) = source.strip_prefix("check.").filter(|job| is_job(jobs, job)) {
            let message = format!("'{source}' is a health check, which says nothing here");
            let help = format!("use source: \"{job}\" with healthy or unhealthy");
            return r.wrong(span, message, help);
        }
        if let Some(at) = jobs.iter().position(|job| job.name == *source) {
            if !event.is_said_by(Speaker::Job) {
                let message = format!("'{event}' is said by a watch, and '{source}' is a job");
                let help = format!("write source: \"watch.{source}\", and a watch of that name");
                return r.wrong(event_at, message, help);
            }
            return Some(EventSource::Job(at));
        }
        // The seed lets a source be a job here or a service elsewhere.
        if event.is_said_by(Speaker::Watch)
            && let Some(watch) = watches.iter().find(|watch| watch.name == *source)
        {
            return Some(EventSource::Watch(watch.own.clone()));
        }
        let names = jobs.iter().map(|job| job.name.as_str());
        let help = match nearest(source, names.chain(watches.iter().map(|it| it.name.as_str()))) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "name a job of this file, or a watch as watch.NAME".to_owned(),
        };
        let message = format!("there is no job '{source}': its '{event}' would never come");
        r.wrong(span, message, help)
    }

    fn watch(
        &self,
        r: &mut Reader<'_>,
        name: &str,
        event: EventName,
        event_at: &Span,
        span: &Span,
        watches: &[Watch],
    ) -> Option<EventSource> {
        if !event.is_said_by(Speaker::Watch) {
            let message = format!("'{event}' is said by a job, not by a watch");
            return r.wrong(event_at, message, "use changed, healthy or unhealthy");
        }
        if let Some(watch) = watches.iter().find(|watch| watch.name == name) {
            return Some(EventSource::Watch(watch.own.clone()));
        }
        let help = match nearest(name, watches.iter().map(|watch| watch.name.as_str())) {
            Some(near) => format!("did you mean 'watch.{near}'?"),
            None => format!("add {{ name: \"{name}\", interval: 10 }} to watches"),
        };
        r.wrong(span, format!("there is no watch '{name}': its '{event}' would never come"), help)
    }

    /// What is different from 3.8.0.
    fn notes(
        &self,
        r: &Reader<'_>,
        when: &mut When,
        event: EventName,
        at: &Span,
        source: &EventSource,
        jobs: &[Job],
    ) {
        let line = r.line(at);
        let mut note = |text: String| when.notes.push((line, text));
        match source {
            EventSource::Node if self.source.is_none() => note(format!(
                "{event} needs no source; 3.8.0 waited for ever unless source was \"global\""
            )),
            EventSource::Node => {}
            EventSource::Watch(_) => {
                if event.is_health() && when.each {
                    note(format!(
                        "{event} of a watch comes when the first instance comes or the last one \
                         goes; 3.8.0 repeated it at every change"
                    ));
                }
            }
            EventSource::Job(at) => {
                let Some(job) = jobs.get(*at) else { return };
                match event.during() {
                    Some(During::Gone) => note(format!(
                        "stopped of '{}' comes when its processes are gone; 3.8.0 did not wait for \
                         that",
                        job.name
                    )),
                    _ if event.is_health() && !job.is_checked() => note(format!(
                        "'{}' has no health check: it is healthy while it runs; 3.8.0 never said \
                         {event} of it",
                        job.name
                    )),
                    _ if event.is_health() && when.each => note(format!(
                        "{event} comes when the health changes; 3.8.0 repeated it at every check"
                    )),
                    _ => {}
                }
            }
        }
    }
}

fn one_of(r: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> Option<()> {
    let keys = ["interval", "once", "each", "event"];
    let said: Vec<&str> = keys.into_iter().filter(|key| fields.filled(key).is_some()).collect();
    match said.as_slice() {
        [first, second, ..] => {
            let message = format!("{what}.when has '{first}' and '{second}'");
            r.wrong(&fields.at(second), message, "keep only one of interval, once and each")
        }
        _ => Some(()),
    }
}

fn known(r: &mut Reader<'_>, event: &str, span: &Span) -> Option<EventName> {
    if let Some(event) = events().find(|it| it.as_str() == event) {
        return Some(event);
    }
    let help = match (event, nearest(event, events().map(EventName::as_str))) {
        ("shutdown", _) => {
            "nothing starts after a shutdown has begun: use source: \"JOB\", once: \"stopping\""
                .to_owned()
        }
        ("error" | "quit", _) => "it is internal: use exitFailed or stopped".to_owned(),
        (signal, _) if SIGNALS.contains(&signal) => {
            format!("a signal is a source: when: {{ source: \"{signal}\" }}")
        }
        (_, Some(near)) => format!("did you mean '{near}'?"),
        (_, None) => {
            let names: Vec<&str> = events().map(EventName::as_str).collect();
            format!("use one of: {}", names.join(" "))
        }
    };
    r.wrong(span, format!("'{event}' is not an event that starts a job"), help)
}

fn is_job(jobs: &[Job], name: &str) -> bool {
    jobs.iter().any(|job| job.name == name)
}
