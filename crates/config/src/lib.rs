//! Files to a validated [`Plan`], and what is wrong with them when there is none.
//!
//! ```text
//! path ─► Sources (texts) ─► trees with spans ─► walked by the registry of keys ─► Plan
//!                                                       └─► Errors: every mistake, in one pass
//! keys ─► schema (for editors), reference (for people)
//! ```
//!
//! One registry ([`keys`]) says of each key its type, default, meaning, and what a reload does with
//! it; the same entry carries the code that reads it. Nothing here asks the operating system for
//! anything but the files: host name and environment come in as a [`Context`].
#![forbid(unsafe_code)]

mod assemble;
mod diag;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod keys;
mod notation;
mod output;
mod reader;
mod source;

pub use assemble::{cycle, single};
pub use diag::{Diagnostic, Errors, Related, Severity, Spot, nearest};
pub use keys::{Key, Kind, Reload, job::MOST_INSTANCES, keys};
pub use notation::{address::is_host, cron, duration, env_file, shell_words};
pub use output::{reference, schema};
pub use source::{Source, Sources, find};

use mainstay_core::{
    name::Name,
    plan::{LongestStop, Plan},
};
use std::{collections::BTreeMap, path::Path};

/// What a configuration may refer to without having written it.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The node's name unless `[node] name` gives one.
    pub host_name: String,
    /// What `${VAR}` looks into, and `MAINSTAY_CONFIG`.
    pub env: BTreeMap<String, String>,
    /// This machine cannot enforce the limits of cgroups.
    pub unlimited: bool,
    /// Tells whether this machine has a user, by name or number, for formats in which one that is
    /// missing is a mistake. Where it is not asked, all are taken.
    pub knows_user: Option<fn(&str) -> bool>,
}

/// A configuration that can be applied.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub plan: Plan,
    /// Where each job of the plan is written, in its order.
    pub places: Vec<JobPlace>,
    /// Things that are allowed and probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// The jobs whose written stop times make a shutdown longer than usual.
    pub longest_stop: Option<LongestStop>,
}

/// Where a job is written, for messages about it later on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlace {
    pub job: Name,
    /// `file:line` of its name.
    pub at: String,
    /// `file:line` of its `when`, if it has one.
    pub when: Option<String>,
}

/// Reads a file, or the `*.toml` files of a directory in lexical order as one configuration.
pub fn load(path: &Path, ctx: &Context) -> Result<Loaded, Errors> {
    assemble::assemble(&Sources::read(path)?, ctx)
}

/// Reads one text; `name` stands for the file in diagnostics.
pub fn parse(name: &str, text: &str, ctx: &Context) -> Result<Loaded, Errors> {
    assemble::assemble(&Sources::text(name, text)?, ctx)
}

/// A duration as it is written everywhere: `90s`, `1h30m`, `200ms`, or a number of seconds.
pub fn duration(text: &str) -> Result<std::time::Duration, DurationError> {
    let seconds = || text.parse().ok().and_then(duration::seconds);
    duration::parse(text).or_else(seconds).ok_or_else(|| DurationError(text.to_owned()))
}

/// Not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a duration: write 10s, 500ms, 1h30m or seconds")]
pub struct DurationError(String);

/// The time that an age (`10m`) or a time means: wall clock, ns.
pub fn since(text: &str) -> Result<i64, SinceError> {
    let unknown = || SinceError(text.to_owned());
    let time = match duration(text) {
        Ok(age) => jiff::Timestamp::now().checked_sub(age).map_err(|_| unknown())?,
        Err(_) => text.parse().map_err(|_| unknown())?,
    };
    let (most, nanoseconds) = (i128::from(i64::MAX), time.as_nanosecond());
    Ok(i64::try_from(nanoseconds.clamp(-most, most)).unwrap_or(i64::MAX))
}

/// Neither an age nor a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither an age (10m) nor a time (2026-01-31T10:00:00Z)")]
pub struct SinceError(String);
