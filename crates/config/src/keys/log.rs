//! `[log]`, and `log` of a job, which overrides it key by key.

use crate::{
    keys::{Kind, Reload::Live, Table, key},
    reader::{Reader, Value},
};
use mainstay_core::plan::{ForwardTo, Keep, Log, NodeLog};
use std::path::{Path, PathBuf};

const LEVEL: &str = "level";
const TOGETHER: &str = "together";
/// What a job cannot say.
pub(crate) const OF_NODE: [&str; 2] = [LEVEL, TOGETHER];

pub(crate) struct Logging {
    pub(crate) log: Log,
    /// `None` inside a job, which cannot set it.
    pub(crate) node: Option<NodeKeys>,
}

/// What only `[log]` can say.
#[derive(Default)]
pub(crate) struct NodeKeys {
    /// Of our own log.
    pub(crate) level: String,
    file: Option<PathBuf>,
    together: bool,
}

impl NodeKeys {
    pub(crate) fn new(level: String) -> NodeKeys {
        NodeKeys { level, ..NodeKeys::default() }
    }

    /// `log`: what jobs have unless they say otherwise.
    pub(crate) fn node_log(&self, log: &Log) -> NodeLog {
        NodeLog { file: self.file.clone(), own: self.together.then(|| log.clone()) }
    }
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
            Kind::OneOf(&["prefix", "json", "raw", "stamped", "logfmt", "logrus"]),
            "\"prefix\"",
            Live,
            "How forwarded lines look: after the job's name, as JSON, or as they are; after time, \
             job and pid; with these, `level` and `msg` as `key=value` or as JSON.",
            |it, v, r| r.one_of(v).map(|format| it.log.format = format),
        ),
        key(
            "output",
            Kind::Text,
            "\"stdout\"",
            Live,
            "Where forwarded lines go: \"stdout\", \"stderr\", \"same\" (those of stderr there, with \
             stderr = \"separate\"), or the path of a file, which SIGUSR1 opens anew.",
            output,
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
                let level = r.word(v)?;
                it.of_node("this is the level of mainstay's own log, not of a job", v, r)?.level =
                    level;
                Some(())
            },
        ),
        key(
            TOGETHER,
            Kind::Bool,
            "false",
            Live,
            "Send Mainstay's own log where forwarded lines go, in their format, instead of to stderr.",
            |it, v, r| {
                let on = r.boolean(v)?;
                it.of_node("this is about mainstay's own log, not about a job", v, r)?.together =
                    on;
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

impl Logging {
    /// What only `[log]` can say; `message` is for a job that tries.
    fn of_node(
        &mut self,
        message: &str,
        v: Value<'_>,
        r: &mut Reader<'_>,
    ) -> Option<&mut NodeKeys> {
        if self.node.is_none() {
            return r.wrong(v.span, message, "remove it, or set it under [log]");
        }
        self.node.as_mut()
    }
}

fn output(it: &mut Logging, v: Value<'_>, r: &mut Reader<'_>) -> Option<()> {
    let text = r.filled(v)?;
    it.log.output = match text.as_str() {
        "stdout" => ForwardTo::Stdout,
        "stderr" => ForwardTo::Stderr,
        "same" => ForwardTo::Same,
        path => {
            if !Path::new(path).is_absolute() {
                let message = format!("'{path}' is no place for output");
                let help = "use stdout, stderr, same, or the whole path of a file";
                return r.wrong(v.span, message, help);
            }
            let message = "a node forwards into one file";
            it.of_node(message, v, r)?.file = Some(PathBuf::from(path));
            ForwardTo::File
        }
    };
    Some(())
}

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
