//! `[log]`, and `log` of a job, which overrides it key by key.

use crate::keys::{Kind, Reload::Live, Table, key};
use mainstay_core::plan::{Keep, Log};

pub(crate) const LEVEL: &str = "level";

pub(crate) struct Logging {
    pub(crate) log: Log,
    /// Of our own log; `None` inside a job, which cannot set it.
    pub(crate) level: Option<String>,
}

pub(crate) static LOG: Table<Logging> = Table {
    keys: &[
        key(
            "forward",
            Kind::Bool,
            "true",
            Live,
            "Send the output of jobs to stdout as well.",
            |it, v, r| r.boolean(v).map(|on| it.log.forward = on),
        ),
        key(
            "format",
            Kind::OneOf(&["prefix", "json", "raw"]),
            "\"prefix\"",
            Live,
            "How forwarded lines look: after the job's name, as JSON, or as they are.",
            |it, v, r| r.one_of(v).map(|format| it.log.format = format),
        ),
        key(
            "file",
            Kind::OneOf(&["cri", "raw", "none"]),
            "\"cri\"",
            Live,
            "How lines look in the job's log file: in CRI format, as they are, or no file.",
            |it, v, r| r.one_of(v).map(|file| it.log.file = file),
        ),
        key(
            "keep",
            Kind::Table,
            "{}",
            Live,
            "When a log file is closed, and how many closed ones stay.",
            |it, v, r| r.nested(v, &KEEP, &mut it.log.keep),
        ),
        key(
            LEVEL,
            Kind::OneOf(&["error", "warn", "info", "debug", "trace"]),
            "\"info\"",
            Live,
            "Level of Mainstay's own log.",
            |it, v, r| {
                if it.level.is_none() {
                    let help = "remove it, or set it under [log]";
                    return r.wrong(
                        v.span,
                        "this is the level of mainstay's own log, not of a job",
                        help,
                    );
                }
                r.word(v).map(|level| it.level = Some(level))
            },
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) static KEEP: Table<Keep> = Table {
    keys: &[
        key("size", Kind::Size, "\"10M\"", Live, "Close a file at this size.", |keep, v, r| {
            let size = r.size(v)?;
            if size < 1024 {
                return r.wrong(v.span, "too small", "use at least \"1K\"");
            }
            keep.size = size;
            Some(())
        }),
        key("age", Kind::Duration, "\"7d\"", Live, "Close a file at this age.", |keep, v, r| {
            let age = r.duration(v)?;
            if age.as_secs() < 1 {
                return r.wrong(v.span, "too short", "use at least \"1s\"");
            }
            keep.age = age;
            Some(())
        }),
        key("files", Kind::Integer, "5", Live, "How many closed files stay.", |keep, v, r| {
            r.count(v, 0).map(|files| keep.files = files)
        }),
        key(
            "compress",
            Kind::Bool,
            "false",
            Live,
            "Compress closed files with gzip.",
            |keep, v, r| r.boolean(v).map(|on| keep.compress = on),
        ),
    ],
    later: &[],
    refused: &[],
};
