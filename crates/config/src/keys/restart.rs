//! `restart` of a job: what follows an exit that nobody asked for.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    reader::{Reader, Span, Value},
};
use mainstay_core::plan::{DelayFrom, Restart, RestartOn};
use std::time::Duration;
use toml::de::DeValue;

pub(crate) const WORDS: &[&str] = &["never", "on-failure", "always"];

/// The short form.
pub(crate) fn word(word: &str) -> Option<RestartOn> {
    match word {
        "never" => Some(RestartOn::Never),
        "on-failure" => Some(RestartOn::Failure),
        "always" => Some(RestartOn::Any),
        _ => None,
    }
}

/// The table as it was written; it is judged as a whole.
pub(crate) struct RestartKeys {
    on: RestartOn,
    delay: Option<(Duration, Span)>,
    max_delay: Option<(Duration, Span)>,
    limit: Option<u32>,
    within: Option<(Duration, Span)>,
    from: DelayFrom,
}

pub(crate) static RESTART: Table<RestartKeys> = Table {
    keys: &[
        key(
            "on",
            Kind::OneOf(&["failure", "any", "never"]),
            "\"failure\"",
            Live,
            "After which exits: unexpected ones, all, or none.",
            |it, v, r| r.one_of(v).map(|on| it.on = on),
        ),
        key(
            "delay",
            Kind::Duration,
            "",
            Live,
            "Wait before every restart, doubling to max_delay; default: none after a run of 10 s, \
             else 200 ms doubling.",
            |it, v, r| r.duration(v).map(|delay| it.delay = Some((delay, v.span))),
        ),
        key("max_delay", Kind::Duration, "\"30s\"", Live, "The longest wait.", |it, v, r| {
            r.duration(v).map(|delay| it.max_delay = Some((delay, v.span)))
        }),
        key(
            "limit",
            Kind::Integer,
            "",
            Live,
            "How many restarts before the job is given up; default: no limit.",
            |it, v, r| r.count(v, 1).map(|limit| it.limit = Some(limit)),
        ),
        key(
            "within",
            Kind::Duration,
            "",
            Live,
            "The time in which limit counts; default: the life of the job.",
            |it, v, r| r.duration(v).map(|within| it.within = Some((within, v.span))),
        ),
        key(
            "from",
            Kind::OneOf(&["end", "start"]),
            "\"end\"",
            Live,
            "Where the delay begins: at the end of a run, or at its start, so that runs come at fixed \
             times.",
            |it, v, r| r.one_of(v).map(|from| it.from = from),
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<Restart> {
    if !matches!(v.de, DeValue::Table(_)) {
        return r.word(v).and_then(|text| word(&text)).map(Restart::on);
    }
    let mut it = RestartKeys {
        on: RestartOn::Failure,
        delay: None,
        max_delay: None,
        limit: None,
        within: None,
        from: DelayFrom::End,
    };
    r.nested(v, &RESTART, &mut it)?;
    if let (Some((_, span)), None) = (it.within, it.limit) {
        return r.wrong(span, "'within' needs 'limit'", "add limit, or remove within");
    }
    if let Some((within, span)) = it.within
        && within.is_zero()
    {
        return r.wrong(span, "'within' is zero", "use a time in which limit restarts may happen");
    }
    let delay = it.delay.map(|(delay, _)| delay);
    if let (Some((delay, span)), Some((most, most_span))) = (it.delay, it.max_delay)
        && delay > most
    {
        let most = (r.here(most_span), "the longest wait");
        return r.wrong_beside(span, most, "'delay' is longer than 'max_delay'", "raise max_delay");
    }
    // A long delay alone is not a mistake: it is then the longest as well.
    let max_delay = it
        .max_delay
        .map(|(most, _)| most)
        .unwrap_or(Restart::MAX_DELAY.max(delay.unwrap_or_default()));
    let within = it.within.map(|(within, _)| within);
    Some(Restart { on: it.on, delay, max_delay, limit: it.limit, within, from: it.from })
}
