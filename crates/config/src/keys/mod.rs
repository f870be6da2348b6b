//! The registry: every key there is, said once.
//!
//! A [`Table`] lists the keys of one table of the file. Each entry is what a person must know about
//! a key (type, default, meaning, what a reload does) together with the code that reads it, so that
//! reference, schema, diagnostics and parser cannot tell different stories.

pub(crate) mod api;
pub(crate) mod app;
pub(crate) mod containerpilot;
pub(crate) mod discovery;
pub(crate) mod fleet;
pub(crate) mod foreign;
pub(crate) mod health;
pub(crate) mod http;
pub(crate) mod job;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod node;
pub(crate) mod reload;
pub(crate) mod restart;
pub(crate) mod rollout;
pub(crate) mod stdio;
pub(crate) mod stop;
pub(crate) mod telemetry;
pub(crate) mod when;

use crate::reader::{Reader, Value};
use std::sync::LazyLock;

/// What there is to know about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The table it is in: `node`, `jobs.NAME.stop`, …
    pub table: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written; empty where there is none.
    pub default: &'static str,
    pub reload: Reload,
    pub doc: &'static str,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Integer,
    Number,
    Text,
    /// A list of integers.
    Integers,
    /// A list of numbers.
    Numbers,
    Duration,
    Size,
    /// A size, a count, or `"unlimited"`.
    Limit,
    /// A signal by name or number.
    Signal,
    /// A file mode mask in octal.
    Mode,
    /// A name or a number.
    Account,
    Accounts,
    /// A list of words, or a string that is split into words.
    Command,
    OneOf(&'static [&'static str]),
    /// One of the words, or a table with the keys of its own name.
    OneOfOrTable(&'static [&'static str]),
    /// A table whose keys are listed under its own name.
    Table,
    /// Such a table, or a list of them.
    Tables,
    /// One of the words or such a table, or a list of these.
    WordsOrTables(&'static [&'static str]),
    /// A string, or a table with the keys of its own name.
    TextOrTable,
    /// A string or a list of strings.
    Texts,
    /// An event by name, or a signal.
    Event,
    /// A number of things, or so many of a hundred: `"10%"`.
    Share,
    /// HTTP status codes: a number, `"2xx"`, `"200-299"`, or a list of these.
    Statuses,
    /// A table of names that the user chooses, to strings.
    Map,
}

impl Kind {
    pub(crate) fn expects(self) -> &'static str {
        match self {
            Kind::Bool => "true or false",
            Kind::Integer => "an integer",
            Kind::Number => "a number",
            Kind::Text | Kind::OneOf(_) => "a string",
            Kind::Integers => "a list of integers",
            Kind::Numbers => "a list of numbers",
            Kind::Duration => "a duration",
            Kind::Size => "a size",
            Kind::Limit => "a limit",
            Kind::Signal => "a signal",
            Kind::Mode => "an octal mode",
            Kind::Account => "a name or a number",
            Kind::Accounts => "a list of names or numbers",
            Kind::Command => "a command: a string or a list of strings",
            Kind::OneOfOrTable(_) => "a string or a table",
            Kind::WordsOrTables(_) => "a string, a table, or a list of these",
            Kind::Table => "a table",
            Kind::Tables => "a table or a list of tables",
            Kind::TextOrTable => "a string or a table",
            Kind::Texts => "a string or a list of strings",
            Kind::Event => "an event",
            Kind::Share => "a number or a percentage",
            Kind::Statuses => "a status code, a range of them, or a list",
            Kind::Map => "a table of strings",
        }
    }

    /// What the values inside such a value are.
    pub(crate) fn element(self) -> Kind {
        match self {
            Kind::Command | Kind::Map | Kind::Texts => Kind::Text,
            Kind::Tables => Kind::Table,
            Kind::WordsOrTables(words) => Kind::OneOfOrTable(words),
            Kind::Integers => Kind::Integer,
            Kind::Numbers => Kind::Number,
            Kind::Accounts => Kind::Account,
            other => other,
        }
    }
}

/// What a reload does when the value has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// Applies it to what runs.
    Live,
    /// Restarts the job.
    Restart,
    /// Nothing: only a new run of the node has it.
    NewRun,
}

/// Reads a value into `T`; `None` when it was wrong and has been reported.
pub(crate) type Set<T> = fn(&mut T, Value<'_>, &mut Reader<'_>) -> Option<()>;

pub(crate) struct Entry<T> {
    pub(crate) key: Key,
    pub(crate) set: Set<T>,
}

pub(crate) struct Table<T: 'static> {
    pub(crate) keys: &'static [Entry<T>],
    /// Keys that are designed and not built.
    pub(crate) later: &'static [&'static str],
    /// Keys that other supervisors have and this one does not want.
    pub(crate) refused: &'static [Refused],
}

pub(crate) struct Refused {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    pub(crate) help: &'static str,
}

pub(crate) const fn key<T>(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    reload: Reload,
    doc: &'static str,
    set: Set<T>,
) -> Entry<T> {
    Entry { key: Key { table: "", name, kind, default, reload, doc }, set }
}

impl<T> Table<T> {
    fn listed(&self, table: &'static str) -> impl Iterator<Item = Key> {
        self.keys.iter().map(move |entry| Key { table, ..entry.key })
    }
}

const COMPARISON: &str = "services.NAME.checks.unicorn_health_comparison";

static ALL: LazyLock<Vec<Key>> = LazyLock::new(|| {
    node::NODE
        .listed("node")
        .chain(log::LOG.listed("log"))
        .chain(log::KEEP.listed("log.keep"))
        .chain(job::JOB.listed("jobs.NAME"))
        .chain(when::WHEN.listed("jobs.NAME.when"))
        .chain(when::WHILE.listed("jobs.NAME.while"))
        .chain(health::HEALTH.listed("jobs.NAME.health"))
        .chain(http::HTTP.listed("jobs.NAME.health.http"))
        .chain(http::TLS.listed("jobs.NAME.health.http.tls"))
        .chain(limits::LIMITS.listed("jobs.NAME.limits"))
        .chain(stop::STOP.listed("jobs.NAME.stop"))
        .chain(reload::RELOAD.listed("jobs.NAME.reload"))
        .chain(restart::RESTART.listed("jobs.NAME.restart"))
        .chain(app::PLACE.listed("jobs.NAME.place"))
        .chain(discovery::ADVERTISE.listed("jobs.NAME.advertise"))
        .chain(log::LOG.listed("jobs.NAME.log").filter(|key| !log::OF_NODE.contains(&key.name)))
        .chain(log::KEEP.listed("jobs.NAME.log.keep"))
        .chain(app::APP.listed("apps.NAME"))
        .chain(telemetry::TELEMETRY.listed("telemetry"))
        .chain(telemetry::METRIC.listed("telemetry.metrics"))
        .chain(containerpilot::CONTAINERPILOT.listed("containerpilot"))
        .chain(discovery::WATCH.listed("watches.NAME"))
        .chain(discovery::DISCOVERY.listed("discovery"))
        .chain(discovery::TLS.listed("discovery.tls"))
        .chain(api::API.listed("api"))
        .chain(api::TLS.listed("api.tls"))
        .chain(api::xmlrpc::XML_RPC.listed("api.xmlrpc"))
        .chain(fleet::FLEET.listed("fleet"))
        .chain(rollout::ROLLOUT.listed("rollout"))
        .chain(rollout::cloudwatch::CLOUDWATCH.listed("rollout.cloudwatch"))
        .chain(rollout::profile::PROFILE.listed("profiles.NAME"))
        .chain(rollout::template::TEMPLATE.listed("templates.NAME"))
        .chain(rollout::service::SERVICE.listed("services.NAME"))
        .chain(reload::RELOAD.listed("services.NAME.reload"))
        .chain(rollout::check::CHECK.listed("services.NAME.checks"))
        .chain(http::HTTP.listed("services.NAME.checks.http"))
        .chain(http::TLS.listed("services.NAME.checks.http.tls"))
        .chain(rollout::check::COMPARISON.listed(COMPARISON))
        .chain(http::HTTP.listed("services.NAME.checks.unicorn_health_comparison.http"))
        .chain(http::TLS.listed("services.NAME.checks.unicorn_health_comparison.http.tls"))
        .collect()
});

/// Every key, table by table.
#[must_use]
pub fn keys() -> &'static [Key] {
    &ALL
}
