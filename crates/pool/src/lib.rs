//! Threads for slow work: a small pool for each kind, with a queue and a time limit.
//!
//! What may take long (a disk, a directory of users, a plan of many jobs) is done outside the loop
//! of the agent, by threads that are there from its start: when the jobs have used up all processes,
//! no other could be had. Each kind of work has threads of its own, so that one that hangs holds up
//! its own kind only. Whoever asks gets an answer in time, if only that there will be none.
//!
//! ```text
//!  run, begin ─► queue ─► thread ─► answer
//!     │            └─ full                └─ not in time
//!     └─ no thread: done at once where that is never long, refused elsewhere; tried again with the
//!        next question
//! ```
#![forbid(unsafe_code)]

mod dir_events;
mod pool;

pub use dir_events::{DirChange, DirEvents};
pub use pool::{Pool, Unserved, own_thread};

use pool::{Settings, WithoutThread};
use std::time::Duration;

/// Deep enough for what reads files and asks libraries; only what is used costs memory.
const STACK: usize = 256 << 10;
/// For readers that go as deep as what they read, and for compression.
const DEEP_STACK: usize = 2 << 20;

const USUAL: Settings = Settings {
    name: "",
    what: "",
    threads: 1,
    queue: 64,
    limit: Duration::from_secs(10),
    stack: STACK,
    without_thread: WithoutThread::Refuse,
};

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident { $($setting:tt)* })*) => {
        $($(#[$doc])* pub static $name: Pool = Pool::new(Settings { $($setting)*, ..USUAL });)*

        const ALL: &[&Pool] = &[$(&$name),*];
    };
}

/// Rendering templates and switching files, one thing after another: that what is stored is not
/// removed by what was asked before it rests on one thread. It is there from the first time it is
/// wanted, as most nodes roll out nothing.
pub static ROLLOUT: Pool = Pool::new(Settings {
    name: "rollout",
    what: "roll out files",
    limit: Duration::from_secs(600),
    stack: DEEP_STACK,
    ..USUAL
});

pools! {
    /// What the next agent reads, and the files of watches: in memory, as a rule.
    RUN_FILES {
        name: "run-files",
        what: "write in the run directory",
        without_thread: WithoutThread::Inline
    }
    /// What outlives the run.
    STATE_FILES { name: "state-files", what: "write in the state directory" }
    /// Reading logs, and compressing those that are closed.
    LOGS { name: "logs", what: "read logs", threads: 2, stack: DEEP_STACK }
    /// Previews of plans, long lists, long texts: never waits for anybody.
    COMPUTE {
        name: "compute",
        what: "work out an answer",
        queue: 1024,
        limit: Duration::from_secs(30),
        stack: DEEP_STACK,
        without_thread: WithoutThread::Inline
    }
    /// The configuration, and the certificates and tokens that it names.
    CONFIGURATION {
        name: "configuration",
        what: "read the configuration",
        limit: Duration::from_secs(20),
        stack: DEEP_STACK
    }
    /// Users and groups by their names: one for every job that starts.
    USERS {
        name: "users",
        what: "look up users",
        queue: 16 << 10,
        limit: Duration::from_secs(20)
    }
    /// Files that are watched, and directories of services.
    WATCHED { name: "watched", what: "read watched files", queue: 1024 }
}

/// Gets all threads. Names the kinds of work that have too few: they are tried again when they are
/// needed.
#[must_use]
pub fn start() -> Vec<&'static str> {
    ALL.iter().filter(|pool| !pool.start()).map(|pool| pool.name()).collect()
}
