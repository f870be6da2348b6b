//! `limits` of a job: rlimits by name, and what its cgroup may use.

use crate::{
    keys::{Entry, Kind, Refused, Reload::Restart, Table, key},
    reader::{Reader, Value},
};
use mainstay_core::plan::Limits;

pub(crate) static LIMITS: Table<Limits> = Table {
    keys: &[
        key(
            "memory",
            Kind::Size,
            "",
            Restart,
            "Memory of all its processes (cgroup).",
            |it, v, r| {
                let size = r.size(v)?;
                if size == 0 {
                    return r.wrong(
                        v.span,
                        "must be above zero",
                        "use for example \"512M\", or remove the key",
                    );
                }
                it.memory = Some(size);
                warn_unenforced(v, r);
                Some(())
            },
        ),
        key("cpus", Kind::Number, "", Restart, "How many CPUs it may use (cgroup).", |it, v, r| {
            it.cpus = Some(r.positive(v)?);
            warn_unenforced(v, r);
            Some(())
        }),
        key(
            "pids",
            Kind::Integer,
            "",
            Restart,
            "How many processes it may have (cgroup).",
            |it, v, r| {
                it.pids = Some(u64::from(r.count(v, 1)?));
                warn_unenforced(v, r);
                Some(())
            },
        ),
        rlimit("core", "Size of a core dump."),
        rlimit("cpu", "CPU time in seconds."),
        rlimit("data", "Size of the data segment."),
        rlimit("fsize", "Size of a file it writes."),
        rlimit("locks", "File locks."),
        rlimit("memlock", "Memory it may lock."),
        rlimit("msgqueue", "Bytes in POSIX message queues."),
        rlimit("nice", "Ceiling for nice: 20 - limit."),
        rlimit("nofile", "Open files."),
        rlimit("nproc", "Processes of its user."),
        rlimit("rss", "Resident memory; without effect on Linux."),
        rlimit("rtprio", "Ceiling for the real-time priority."),
        rlimit("rttime", "Microseconds of real-time CPU without a pause."),
        rlimit("sigpending", "Queued signals."),
        rlimit("stack", "Size of the stack."),
    ],
    later: &[],
    refused: &[Refused {
        name: "as",
        why: "the size of the address space says little about the use of memory",
        help: "use memory, which counts what is used",
    }],
};

fn warn_unenforced(v: Value<'_>, r: &mut Reader<'_>) {
    if r.ctx.unlimited {
        r.warn(
            v.span,
            "not enforced on this machine: no cgroup controllers are at hand",
            "start mainstay in a delegated cgroup (v2), or rely on it elsewhere only",
        );
    }
}

/// Soft and hard alike; default: inherited.
const fn rlimit(name: &'static str, doc: &'static str) -> Entry<Limits> {
    key(name, Kind::Limit, "", Restart, doc, set)
}

fn set(limits: &mut Limits, v: Value<'_>, r: &mut Reader<'_>) -> Option<()> {
    let limit = r.limit(v)?;
    limits.rlimits.push((v.key.name.to_owned(), limit));
    Some(())
}
