//! `health` of a job: its checks.

use crate::{
    keys::{
        Kind,
        Reload::{Live, Restart},
        Table, http, key,
    },
    notation::address::is_host,
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    name::{Name, NameError},
    plan::{Check, CheckOutput, Probe},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A check as far as it has been read.
#[derive(Default)]
pub(crate) struct CheckKeys {
    name: Option<(String, Span)>,
    probes: Vec<(&'static str, Span, Option<Probe>)>,
    interval: Option<Duration>,
    timeout: Option<Duration>,
    delay: Duration,
    start_period: Duration,
    rise: Option<u32>,
    fall: Option<u32>,
    output: CheckOutput,
}

impl CheckKeys {
    fn probe(&mut self, v: Value<'_>, probe: Option<Probe>) -> Option<()> {
        self.probes.push((v.key.name, v.span, probe));
        Some(())
    }
}

pub(crate) static HEALTH: Table<CheckKeys> = Table {
    keys: &[
        key(
            "exec",
            Kind::Command,
            "",
            Live,
            "A command that passes with exit code 0; past the timeout its group is killed.",
            |it, v, r| {
                let exec = r.command(v).map(Probe::Exec);
                it.probe(v, exec)
            },
        ),
        key(
            "http",
            Kind::TextOrTable,
            "",
            Live,
            "A URL that passes with a status from 200 to 399, or a table that says more.",
            |it, v, r| {
                let http = http::read(v, r).map(Probe::Http);
                it.probe(v, http)
            },
        ),
        key(
            "tcp",
            Kind::Text,
            "",
            Live,
            "host:port; passes when a connection is made.",
            |it, v, r| {
                let tcp = tcp(v, r).map(Probe::Tcp);
                it.probe(v, tcp)
            },
        ),
        key(
            "notify",
            Kind::Bool,
            "",
            Restart,
            "true: passes when the job says READY=1 (sd_notify), fails when that or WATCHDOG=1 stays \
             away.",
            |it, v, r| {
                if r.boolean(v)? {
                    return it.probe(v, Some(Probe::Notify));
                }
                it.probe(v, None);
                r.wrong(v.span, "a check that checks nothing", "write notify = true, or remove it")
            },
        ),
        key(
            "fd",
            Kind::Integer,
            "",
            Restart,
            "Passes when the job writes a newline to this file descriptor, as s6 does it.",
            |it, v, r| {
                let fd = r.integer(v, 3..=255).and_then(|fd| u32::try_from(fd).ok());
                it.probe(v, fd.map(Probe::Fd))
            },
        ),
        key(
            "name",
            Kind::Text,
            "",
            Live,
            "What the check is called in status; default: its kind.",
            |it, v, r| {
                let name = r.filled(v)?;
                if matches!(Name::new(&name), Err(NameError::Shape(_))) {
                    let help = "use 1 to 63 letters, digits, '_' or '-'";
                    return r.wrong(v.span, format!("'{name}' is not a name for a check"), help);
                }
                it.name = Some((name, v.span));
                Some(())
            },
        ),
        key(
            "interval",
            Kind::Duration,
            "\"10s\"",
            Live,
            "How often; before the first pass every 100 ms, doubling up to this. Of notify: how often \
             WATCHDOG=1 has to come, told to the job as WATCHDOG_USEC (then a change restarts it).",
            |it, v, r| r.period(v).map(|every| it.interval = Some(every)),
        ),
        key(
            "timeout",
            Kind::Duration,
            "",
            Live,
            "How long one try may take; of notify and fd: how long it may take to be ready; default: \
             the interval.",
            |it, v, r| r.period(v).map(|limit| it.timeout = Some(limit)),
        ),
        key(
            "delay",
            Kind::Duration,
            "0",
            Live,
            "The first try comes so long after the start; not of notify and fd.",
            |it, v, r| r.duration(v).map(|delay| it.delay = delay),
        ),
        key(
            "start_period",
            Kind::Duration,
            "0",
            Live,
            "For so long after the start failures before the first pass do not count.",
            |it, v, r| r.duration(v).map(|period| it.start_period = period),
        ),
        key(
            "rise",
            Kind::Integer,
            "1",
            Live,
            "So many passes in a row make it passing.",
            |it, v, r| r.count(v, 1).map(|rise| it.rise = Some(rise)),
        ),
        key(
            "fall",
            Kind::Integer,
            "1",
            Live,
            "So many failures in a row make it failing.",
            |it, v, r| r.count(v, 1).map(|fall| it.fall = Some(fall)),
        ),
        key(
            "output",
            Kind::OneOf(&["event", "forward", "raw"]),
            "\"event\"",
            Live,
            "What becomes of what an exec check writes, beside its last lines in the event: nothing, \
             or it is forwarded, as the job's lines are or as it is.",
            |it, v, r| r.one_of(v).map(|output| it.output = output),
        ),
    ],
    later: &[],
    refused: &[],
};

/// A check, and where what it does is written.
pub(crate) struct PlacedCheck {
    pub(crate) check: Check,
    pub(crate) span: Span,
}

/// Reads `health`: a table or a list of tables.
pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<Vec<PlacedCheck>> {
    let mut all: Vec<CheckKeys> = Vec::new();
    let mut spans = Vec::new();
    for (written, at) in r.tables(v, &HEALTH, CheckKeys::default)? {
        all.push(written);
        spans.push(at);
    }
    let mut named: BTreeMap<&str, Span> = BTreeMap::new();
    for (name, span) in all.iter().filter_map(|it| it.name.as_ref()) {
        if let Some(first) = named.get(name.as_str()) {
            let message = format!("two checks are called '{name}'");
            let first = (r.here(*first), "the other one");
            r.wrong_beside::<()>(*span, first, message, "rename one of them");
        }
        named.entry(name).or_insert(*span);
    }
    let mut taken: BTreeSet<String> = named.into_keys().map(str::to_owned).collect();
    let mut checks: Vec<PlacedCheck> = Vec::new();
    for (written, at) in all.into_iter().zip(spans) {
        let Some((kind, span, probe)) = one_probe(&written, at, r) else { continue };
        if let Probe::Notify | Probe::Fd(_) = probe
            && checks.iter().any(|it| it.check.probe == probe)
        {
            r.wrong::<()>(span, "this is checked already", "remove one of them");
        }
        let name = match written.name {
            Some((name, _)) => name,
            None => unused(kind, &mut taken),
        };
        let mut check = Check::new(name, probe);
        check.interval = written.interval.unwrap_or(check.interval);
        check.timeout = written.timeout.unwrap_or(check.interval);
        if check.probe == Probe::Notify {
            check.watchdog = written.interval;
        }
        check.delay = written.delay;
        check.start_period = written.start_period;
        check.rise = written.rise.unwrap_or(check.rise);
        check.fall = written.fall.unwrap_or(check.fall);
        check.output = written.output;
        checks.push(PlacedCheck { check, span });
    }
    Some(checks)
}

fn one_probe(it: &CheckKeys, at: Span, r: &mut Reader<'_>) -> Option<(&'static str, Span, Probe)> {
    match it.probes.as_slice() {
        [] => r.wrong(at, "it does not say what to check", "add one of: exec http tcp notify fd"),
        [(kind, span, probe)] => probe.clone().map(|probe| (*kind, *span, probe)),
        [(first, _, _), (second, span, _), ..] => {
            let message = format!("'{first}' and '{second}' in one check");
            r.wrong(*span, message, "write a list with a table for each: health = [{ … }, { … }]")
        }
    }
}

/// The kind, or the kind with a number.
fn unused(kind: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|n: u32| format!("{kind}-{n}"));
    let name = std::iter::once(kind.to_owned()).chain(numbered).find(|it| !taken.contains(it));
    let name = name.unwrap_or_else(|| kind.to_owned());
    taken.insert(name.clone());
    name
}

fn tcp(v: Value<'_>, r: &mut Reader<'_>) -> Option<String> {
    let text = r.filled(v)?;
    let valid = text.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok_and(|port| port > 0) && is_host(host)
    });
    if valid {
        return Some(text);
    }
    let help = match text.rsplit_once(':') {
        Some(("", port)) => format!("say where: 127.0.0.1:{port}"),
        None if text.parse::<u16>().is_ok() => format!("say where: 127.0.0.1:{text}"),
        _ => "write host:port, for example 127.0.0.1:5432 or [::1]:5432".to_owned(),
    };
    r.wrong(v.span, format!("'{text}' is not an address to connect to"), help)
}

/// Whether some check needs the job's sd_notify socket.
pub(crate) fn wants_notify(checks: &[PlacedCheck]) -> bool {
    checks.iter().any(|it| it.check.probe == Probe::Notify)
}
