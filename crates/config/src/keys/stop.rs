//! `stop` of a job: how it is asked to end.

use crate::keys::{Kind, Reload::Live, Table, key};
use mainstay_core::plan::Stop;

pub(crate) static STOP: Table<Stop> = Table {
    keys: &[
        key(
            "signal",
            Kind::Signal,
            "\"SIGTERM\"",
            Live,
            "The signal that asks it to end; SIGKILL follows after the timeout.",
            |stop, v, r| r.signal(v).map(|signal| stop.signal = signal),
        ),
        key(
            "to",
            Kind::OneOf(&["leader", "group", "tree"]),
            "\"group\"",
            Live,
            "Whom the signal reaches: the first process, its group, or all descendants.",
            |stop, v, r| r.one_of(v).map(|to| stop.to = to),
        ),
        key(
            "timeout",
            Kind::Duration,
            "\"5s\"",
            Live,
            "How long it may take to end before the whole tree is killed.",
            |stop, v, r| r.duration(v).map(|timeout| stop.timeout = timeout),
        ),
        key(
            "exec",
            Kind::Command,
            "",
            Live,
            "A command to run before the signal, within the same time.",
            |stop, v, r| r.command(v).map(|exec| stop.exec = Some(exec)),
        ),
    ],
    later: &[],
    refused: &[],
};
