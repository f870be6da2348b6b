//! The reference page, written from the registry.

use crate::keys::{Key, Kind, Reload, keys, when::SIGNALS};
use mainstay_core::event::{EventName, Speaker};
use std::fmt::Write as _;

const HEAD: &str = "# Configuration reference

Every key there is, table by table. This page is written from the registry that also reads the
files; `mainstay schema` prints the same as a JSON schema for editors.

A configuration is one TOML file, or a directory whose `*.toml` files are read in lexical order as
one. Durations are written `\"90s\"`, `\"1h30m\"`, `\"200ms\"` or as a number of seconds; sizes `4096`,
`\"64K\"`, `\"10M\"`, `\"1G\"` in powers of 1024. In strings `${VAR}`, `${VAR:-default}` and
`${VAR:?message}` stand for variables of the environment, `$${` for a literal `${`; in `env`, in
the headers of a check and in the token of discovery `${file:/path}` stands for a secret: the content of a file without its last
line end. Relative paths of such files start at the configuration file.

**On reload** says what `mainstay reload` does when a value has changed: *live* applies it to what
runs, *restart* restarts the job, *new run* leaves it to the next `mainstay run`.
";

/// Every key with its type, default, reload and meaning, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    let mut table = "";
    for key in keys() {
        if key.table != table {
            table = key.table;
            // Writing to a String cannot fail.
            let _ = write!(out, "\n## `[{table}]`\n\n{}", about(table));
            out.push_str("| key | type | default | on reload | meaning |\n|---|---|---|---|---|\n");
        }
        out.push_str(&row(key));
    }
    out.push_str(&events());
    out
}

fn events() -> String {
    let signals: Vec<String> = SIGNALS.iter().map(|it| format!("`{it}`")).collect();
    let mut out = format!(
        "\n## Events\n\nWhat `mainstay events` shows. A job can wait for those that say so, and for the \
         signals {} of the node.\n\n| event | of | in `when` | happens |\n|---|---|---|---|\n",
        signals.join(" ")
    );
    for event in EventName::ALL {
        let said = |speaker, word| event.is_said_by(speaker).then_some(word);
        let speakers = [
            said(Speaker::Job, "a job"),
            said(Speaker::Watch, "a watch"),
            said(Speaker::Rollout, "a profile or a template"),
            said(Speaker::Node, "the node"),
        ];
        let speakers: Vec<&str> = speakers.into_iter().flatten().collect();
        let awaited = if event.can_be_awaited() { "yes" } else { "" };
        let doc = event.doc().replace('|', "\\|");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{event}` | {} | {awaited} | {doc} |", speakers.join(", "));
    }
    out
}

fn row(key: &Key) -> String {
    let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
    let reload = match key.reload {
        Reload::Live => "live",
        Reload::Restart => "restart",
        Reload::NewRun => "new run",
    };
    let meaning = key.doc.replace('|', "\\|");
    format!("| `{}` | {} | {default} | {reload} | {meaning} |\n", key.name, shape(key.kind))
}

fn shape(kind: Kind) -> String {
    let words = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        quoted.join(", ")
    };
    match kind {
        Kind::OneOf(choice) => words(choice),
        Kind::OneOfOrTable(choice) => format!("{}, or a table", words(choice)),
        Kind::WordsOrTables(choice) => format!("{}, a table, or a list of these", words(choice)),
        other => other.expects().to_owned(),
    }
}

/// What a table is, where its name does not say it.
fn about(table: &str) -> &'static str {
    match table {
        "node" => "The node as a whole.\n\n",
        "log" => {
            "What becomes of the output of jobs. A job may override it with its own `log`.\n\n"
        }
        "jobs.NAME" => {
            "A job: one command, and all that is declared about it. Names have 1 to 63 letters, \
             digits, `_` or `-`. With `instances`, a `source` that names the job means all of them \
             for `once` and any of them for `each`.\n\n"
        }
        "jobs.NAME.when" => {
            "A table, or a list of tables: `once` conditions must all have been met, and at most one \
             `each`, `interval` or `cron` starts the job again and again. The events are listed \
             [below](#events).\n\n"
        }
        "jobs.NAME.while" => {
            "The standing form of `when`: it follows its source down and back.\n\n"
        }
        "jobs.NAME.health" => {
            "A table, or a list of tables: each is one check and has exactly one of `exec`, `http`, \
             `tcp`, `notify` and `fd`.\n\n"
        }
        "jobs.NAME.limits" => {
            "What its cgroup may use, and rlimits by name (soft and hard alike; default: \
             inherited).\n\n"
        }
        "jobs.NAME.reload" => "Exactly one of them.\n\n",
        "jobs.NAME.advertise" => {
            "The job is registered while it is healthy, told to be failing when it is not, and \
             removed before it is stopped and in maintenance.\n\n"
        }
        "watches.NAME" => {
            "A question to service discovery that is put again and again. As `watch.NAME` it is the \
             source of `changed`, `healthy` (no instance, then some) and `unhealthy` (some, then \
             none).\n\n"
        }
        "discovery" => "Where jobs are announced and services are found.\n\n",
        "apps.NAME" => "An app: jobs that start and stop together, in order.\n\n",
        "api" => {
            "Where the API can be reached beside its unix socket, and by whom: see \
             [The API](../api.md). Relative paths start at the configuration file.\n\n"
        }
        "fleet" => {
            "The nodes that act as one: the jobs of apps run on one of them, wherever there is room. \
             Relative paths start at the configuration file. `nodes` or `join` has to be there.\n\n"
        }
        "rollout" => {
            "Configuration as a transaction: see [Rollout](../rollout.md). Profiles, templates and \
             services go in the order of the file.\n\n"
        }
        "profiles.NAME" => {
            "Configuration data. As `profile.NAME` it is a source of `healthy`, `changed` and \
             `unhealthy`.\n\n"
        }
        "templates.NAME" => {
            "A file that is made of profiles. As `template.NAME` it is a source of `healthy`, \
             `changed` and `unhealthy`.\n\n"
        }
        "services.NAME" => {
            "Who is told of changed files: a job, a unit of systemd, or a command.\n\n"
        }
        "services.NAME.reload" => "Exactly one of them.\n\n",
        "services.NAME.checks" => "Each table is one check and has exactly one of these.\n\n",
        "services.NAME.checks.unicorn_health_comparison" => {
            "Of `flip-flop`: once the bake time is over, the new instance must not fail notably more \
             of its requests than the old one. Exactly one of `exec` and `http` says where both are \
             read; `{instance}` in it stands for 1 and 2.\n\n"
        }
        "telemetry" => {
            "What is shown to those who watch the node: see [telemetry](../telemetry.md).\n\n"
        }
        "telemetry.metrics" => {
            "A table, or a list of tables: each is one metric. Its name is what `namespace`, \
             `subsystem` and `name` say, joined by `_`; parts that are not given are left out.\n\n"
        }
        "containerpilot" => {
            "The table itself, even an empty one, gives jobs the variables and telemetry the series \
             that ContainerPilot has: see [telemetry](../telemetry.md#containerpilot).\n\n"
        }
        _ => "",
    }
}
