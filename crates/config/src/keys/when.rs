//! `when` and `while` of a job, as they are written: who says what, and what it starts.
//!
//! A table is one clause: a latch (`once`), or the trigger (`each`, `interval`, `cron`). Whether
//! the sources exist can only be said when all jobs are known: that is [`crate::assemble`].

use crate::{
    diag::nearest,
    keys::{Kind, Reload::Live, Table, key},
    notation::cron::{self, CronError},
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    event::{During, EventName, Speaker},
    plan::{Awaited, Cron, OnLoss},
    signal::Signal,
};
use std::time::Duration;

/// The names of events that a job can wait for; signals come on top.
pub(crate) fn events() -> impl Iterator<Item = &'static str> {
    EventName::ALL.iter().filter(|it| it.can_be_awaited()).map(|it| it.as_str())
}

/// `a, b or c`: what a job says while it runs and ends.
pub(crate) fn events_of_jobs() -> String {
    choice(EventName::ALL.iter().filter(|it| {
        it.can_be_awaited() && it.is_said_by(Speaker::Job) && it.during() != Some(During::Wait)
    }))
}

/// `a, b or c`: what a watch says.
pub(crate) fn events_of_watches() -> String {
    choice(EventName::ALL.iter().filter(|it| it.is_said_by(Speaker::Watch)))
}

/// `a, b or c`: what a profile or a template says.
pub(crate) fn events_of_rollout() -> String {
    choice(
        EventName::ALL.iter().filter(|it| it.is_said_by(Speaker::Rollout) && it.can_be_awaited()),
    )
}

/// `a, b, c`: what the node says.
pub(crate) fn events_of_node() -> String {
    let said = EventName::ALL.iter().filter(|it| it.is_said_by(Speaker::Node));
    let said = said.filter(|it| it.can_be_awaited()).map(|it| it.as_str());
    said.chain(SIGNALS).collect::<Vec<_>>().join(", ")
}

fn choice<'a>(events: impl Iterator<Item = &'a EventName>) -> String {
    let names: Vec<&str> = events.map(|it| it.as_str()).collect();
    match names.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The signals that are events; the others have work of their own.
pub(crate) const SIGNALS: [&str; 3] = ["SIGHUP", "SIGUSR2", "SIGWINCH"];

/// One table of `when`.
#[derive(Default)]
pub(crate) struct Clause {
    pub(crate) source: Option<(String, Span)>,
    once: Option<(Awaited, Span)>,
    each: Option<(Awaited, Span)>,
    interval: Option<(Duration, Span)>,
    cron: Option<(String, Span)>,
    tz: Option<(String, Span)>,
    timeout: Option<(Duration, Span)>,
    /// A value in it was wrong: what it means as a whole is unknown.
    spoilt: bool,
}

/// `when` as a whole, with sources that are yet to be looked up.
#[derive(Default)]
pub(crate) struct UnresolvedWhen {
    pub(crate) once: Vec<UnresolvedCondition>,
    pub(crate) trigger: Option<UnresolvedTrigger>,
    pub(crate) timeout: Option<Duration>,
}

/// What starts a job again and again.
pub(crate) enum UnresolvedTrigger {
    Each(UnresolvedCondition),
    Interval(Duration),
    Cron(Cron),
}

/// An event of a source that is yet to be looked up.
pub(crate) struct UnresolvedCondition {
    /// `None`: not written, so the node.
    pub(crate) source: Option<(String, Span)>,
    pub(crate) event: Awaited,
    pub(crate) span: Span,
}

/// `while` as it is written.
#[derive(Default)]
pub(crate) struct Follow {
    pub(crate) source: Option<(String, Span)>,
    pub(crate) on_loss: Option<OnLoss>,
}

pub(crate) static WHEN: Table<Clause> = Table {
    keys: &[
        key(
            "source",
            Kind::Text,
            "",
            Live,
            "Who says it: a job, watch.NAME, or global for the node; may be left out for what only the \
             node says.",
            |it, v, r| {
                it.spoilt = true;
                it.source = Some((r.filled(v)?, v.span));
                it.spoilt = false;
                Some(())
            },
        ),
        key(
            "once",
            Kind::Event,
            "",
            Live,
            "Wait until its source has said this in its life; at rest, in its last one.",
            |it, v, r| it.event(v, r).map(|event| it.once = Some((event, v.span))),
        ),
        key("each", Kind::Event, "", Live, "Start every time this event happens.", |it, v, r| {
            it.event(v, r).map(|event| it.each = Some((event, v.span)))
        }),
        key(
            "interval",
            Kind::Duration,
            "",
            Live,
            "Start again and again, this long after the last start; first at once.",
            |it, v, r| it.period(v, r).map(|every| it.interval = Some((every, v.span))),
        ),
        key(
            "cron",
            Kind::Text,
            "",
            Live,
            "Start at these times: minute, hour, day of month, month, day of week.",
            |it, v, r| it.cron(v, r),
        ),
        key(
            "tz",
            Kind::Text,
            "",
            Live,
            "Time zone of cron, for example \"Europe/Berlin\"; default: local time.",
            |it, v, r| it.zone(v, r),
        ),
        key(
            "timeout",
            Kind::Duration,
            "",
            Live,
            "Give the job up if its conditions are not met by then; default: wait for ever.",
            |it, v, r| it.period(v, r).map(|limit| it.timeout = Some((limit, v.span))),
        ),
    ],
    later: &[],
    refused: &[crate::keys::Refused {
        name: "event",
        why: "an event is waited for once or each time",
        help: "use once = \"…\" to wait for it, or each = \"…\" to start every time",
    }],
};

pub(crate) static WHILE: Table<Follow> = Table {
    keys: &[
        key(
            "source",
            Kind::Text,
            "",
            Live,
            "The job that must be healthy while this one runs, or watch.NAME, which must have an \
             instance.",
            |it, v, r| r.filled(v).map(|source| it.source = Some((source, v.span))),
        ),
        key(
            "on_loss",
            Kind::OneOf(&["stop", "restart", "keep"]),
            "\"stop\"",
            Live,
            "When the source is lost: stop until it is back, restart when it is back, or only let \
             the start wait for it.",
            |it, v, r| r.one_of(v).map(|on_loss| it.on_loss = Some(on_loss)),
        ),
    ],
    later: &[],
    refused: &[],
};

impl Clause {
    fn event(&mut self, v: Value<'_>, r: &mut Reader<'_>) -> Option<Awaited> {
        let was = std::mem::replace(&mut self.spoilt, true);
        let event = event(v, r)?;
        self.spoilt = was;
        Some(event)
    }

    fn period(&mut self, v: Value<'_>, r: &mut Reader<'_>) -> Option<Duration> {
        let was = std::mem::replace(&mut self.spoilt, true);
        let period = r.period(v)?;
        self.spoilt = was;
        Some(period)
    }

    fn cron(&mut self, v: Value<'_>, r: &mut Reader<'_>) -> Option<()> {
        let was = std::mem::replace(&mut self.spoilt, true);
        let text = r.filled(v)?;
        if let Err(error) = cron::check(&text) {
            let help = match error {
                CronError::Fields(_) | CronError::Expression(_) => {
                    "write minute, hour, day of month, month, day of week: \"0 3 * * *\""
                }
                CronError::NeverDue => "change the day or the month: there is no such day",
            };
            return r.wrong(v.span, format!("'{text}' {error}"), help);
        }
        self.cron = Some((text, v.span));
        self.spoilt = was;
        Some(())
    }

    fn zone(&mut self, v: Value<'_>, r: &mut Reader<'_>) -> Option<()> {
        let was = std::mem::replace(&mut self.spoilt, true);
        let name = r.filled(v)?;
        if name != "UTC" && jiff::tz::db().get(&name).is_err() {
            let known: Vec<String> =
                jiff::tz::db().available().map(|it| it.as_str().to_owned()).collect();
            let help = match nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean '{near}'?"),
                None if known.is_empty() => {
                    "install the time zones of the system (tzdata), or use \"UTC\"".to_owned()
                }
                None => "write for example \"Europe/Berlin\" or \"UTC\"".to_owned(),
            };
            return r.wrong(v.span, format!("the time zone '{name}' is not known here"), help);
        }
        self.tz = Some((name, v.span));
        self.spoilt = was;
        Some(())
    }

    /// What the table says, if it says one thing.
    fn judge(self, at: Span, r: &mut Reader<'_>) -> Option<JudgedClause> {
        if self.spoilt {
            return None;
        }
        let said: Vec<(&str, Span)> = [
            self.once.as_ref().map(|(_, span)| ("once", *span)),
            self.each.as_ref().map(|(_, span)| ("each", *span)),
            self.interval.as_ref().map(|(_, span)| ("interval", *span)),
            self.cron.as_ref().map(|(_, span)| ("cron", *span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let (first, first_span, rest) = match said.split_first() {
            Some(((first, span), rest)) => (*first, *span, rest),
            None => return self.says_nothing(at, r),
        };
        if let Some((second, span)) = rest.first() {
            let why = match (first, *second) {
                ("once", "each") => {
                    "a table waits for an event once, or starts each time it happens"
                }
                ("once", _) => "a table is a condition or what starts the job, not both",
                _ => "a job has one thing that starts it again and again",
            };
            let help = match first {
                "once" => {
                    "write a list with a table for each: when = [{ … once = … }, { each = … }]"
                }
                _ => "remove one of them",
            };
            let message = format!("'{first}' and '{second}' together: {why}");
            let label = format!("'{first}' is here");
            return r.wrong_beside(*span, (r.here(first_span), &label), message, help);
        }
        if let (Some((_, span)), "interval" | "cron") = (&self.source, first) {
            return r.wrong(
                *span,
                format!("'{first}' has no source: time passes by itself"),
                "to wait for a source first, write a list: when = [{ source = …, once = … }, \
                 { interval = … }]",
            );
        }
        if let (Some((_, span)), None) = (&self.tz, &self.cron) {
            return r.wrong(*span, "'tz' needs 'cron'", "add cron, or remove tz");
        }
        let timeout = self.timeout;
        let condition =
            |event, span| UnresolvedCondition { source: self.source.clone(), event, span };
        let tz = self.tz.map(|(name, _)| name);
        let meaning = if let Some((event, span)) = self.once {
            Meaning::Once(condition(event, span))
        } else if let Some((event, span)) = self.each {
            Meaning::Trigger(UnresolvedTrigger::Each(condition(event, span)), span)
        } else if let Some((every, span)) = self.interval {
            Meaning::Trigger(UnresolvedTrigger::Interval(every), span)
        } else {
            let (expression, span) = self.cron?;
            Meaning::Trigger(UnresolvedTrigger::Cron(Cron { expression, tz }), span)
        };
        Some(JudgedClause { meaning, timeout })
    }

    fn says_nothing<T>(self, at: Span, r: &mut Reader<'_>) -> Option<T> {
        if let Some((source, span)) = self.source {
            let message = format!("what must '{source}' say?");
            return r.wrong(
                span,
                message,
                "add an event: once = \"healthy\" or each = \"exitFailed\"",
            );
        }
        if let Some((_, span)) = self.timeout {
            return r.wrong(
                span,
                "'timeout' without a condition: there is nothing to wait for",
                "add a condition, or use the job's own timeout for its longest run",
            );
        }
        if let Some((_, span)) = self.tz {
            return r.wrong(span, "'tz' needs 'cron'", "add cron, or remove tz");
        }
        r.wrong(
            at,
            "it says nothing",
            "add source and once, each, interval or cron, or remove it to start at once",
        )
    }
}

/// A table of `when` that says one thing.
struct JudgedClause {
    meaning: Meaning,
    timeout: Option<(Duration, Span)>,
}

enum Meaning {
    Once(UnresolvedCondition),
    Trigger(UnresolvedTrigger, Span),
}

/// Reads `when`: a table or a list of tables.
pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<UnresolvedWhen> {
    let mut written = UnresolvedWhen::default();
    let mut trigger: Option<(&'static str, Span)> = None;
    let mut timeout: Option<Span> = None;
    for (clause, at) in r.tables(v, &WHEN, Clause::default)? {
        let Some(judged) = clause.judge(at, r) else { continue };
        match judged.meaning {
            Meaning::Once(condition) => written.once.push(condition),
            Meaning::Trigger(start, span) => {
                if let Some((first, at)) = trigger {
                    let message = format!("'{first}' starts this job already");
                    let other = (r.here(at), "the other trigger");
                    let help = "keep one trigger, or write two jobs";
                    r.wrong_beside::<()>(span, other, message, help);
                }
                trigger = Some((start.word(), span));
                written.trigger = Some(start);
            }
        }
        match (judged.timeout, written.timeout) {
            (Some((limit, span)), Some(other)) if limit != other => {
                let other = (r.here(timeout.unwrap_or(span)), "the other timeout");
                let message = "two timeouts: they hold for all conditions together";
                r.wrong_beside::<()>(span, other, message, "keep one of them");
            }
            (Some((limit, span)), _) => {
                written.timeout = Some(limit);
                timeout.get_or_insert(span);
            }
            (None, _) => {}
        }
    }
    Some(written)
}

impl UnresolvedWhen {
    /// Whether it runs because another job stops.
    pub(crate) fn is_hook(&self) -> bool {
        let each = self.trigger.iter().filter_map(|start| match start {
            UnresolvedTrigger::Each(condition) => Some(condition),
            UnresolvedTrigger::Interval(_) | UnresolvedTrigger::Cron(_) => None,
        });
        self.once.iter().chain(each).any(|it| it.event.ends())
    }
}

impl UnresolvedTrigger {
    fn word(&self) -> &'static str {
        match self {
            UnresolvedTrigger::Each(_) => "each",
            UnresolvedTrigger::Interval(_) => "interval",
            UnresolvedTrigger::Cron(_) => "cron",
        }
    }
}

fn event(v: Value<'_>, r: &mut Reader<'_>) -> Option<Awaited> {
    let text = r.text(v)?;
    match EventName::find(&text) {
        Some(event) if event.can_be_awaited() => return Some(Awaited::Event(event)),
        // A signal is awaited by its own name.
        Some(EventName::Signal) | None => {}
        Some(event) => {
            let message = format!("'{event}' is for observers and starts nothing");
            return r.wrong(v.span, message, format!("use {}", events_of_jobs()));
        }
    }
    let near = nearest(&text, events());
    if let (None, Ok(signal)) = (near, text.parse::<Signal>()) {
        let name = signal.to_string();
        if SIGNALS.contains(&name.as_str()) {
            return Some(Awaited::Signal { signal });
        }
        let why = match name.as_str() {
            "SIGTERM" | "SIGINT" | "SIGQUIT" | "SIGRTMIN+3" => "shuts the node down",
            "SIGUSR1" => "rotates the logs",
            _ => "is not passed on as an event",
        };
        let help = format!("use one of: {}", SIGNALS.join(", "));
        return r.wrong(v.span, format!("{name} {why}"), help);
    }
    let help = match near {
        Some(near) => format!("did you mean '{near}'?"),
        None => {
            let names: Vec<&str> = events().chain(SIGNALS).collect();
            format!("use one of: {}", names.join(" "))
        }
    };
    r.wrong(v.span, format!("'{text}' is not an event"), help)
}
