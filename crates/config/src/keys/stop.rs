//! `stop` of a job: how it is asked to end.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    reader::Span,
};
use mainstay_core::plan::Stop;

/// `stop` as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct StopKeys {
    pub(crate) stop: Stop,
    /// Where its time is written.
    pub(crate) timeout: Option<Span>,
}

pub(crate) static STOP: Table<StopKeys> = Table {
    keys: &[
        key(
            "signal",
            Kind::Signal,
            "\"SIGTERM\"",
            Live,
            "The signal that asks it to end; SIGKILL follows after the timeout.",
            |keys, v, r| r.signal(v).map(|signal| keys.stop.signal = signal),
        ),
        key(
            "to",
            Kind::OneOf(&["leader", "group", "tree"]),
            "\"group\"",
            Live,
            "Whom the signal reaches: the first process, its group, or all descendants.",
            |keys, v, r| r.one_of(v).map(|to| keys.stop.to = to),
        ),
        key(
            "timeout",
            Kind::Duration,
            "\"5s\"",
            Live,
            "How long it may take to end before the whole tree is killed.",
            |keys, v, r| {
                keys.timeout = Some(v.span);
                r.duration(v).map(|timeout| keys.stop.timeout = timeout)
            },
        ),
        key(
            "exec",
            Kind::Command,
            "",
            Live,
            "A command to run before the signal, within the same time.",
            |keys, v, r| r.command(v).map(|exec| keys.stop.exec = Some(exec)),
        ),
    ],
    later: &[],
    refused: &[],
};
