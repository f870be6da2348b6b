//! `[rollout]`, `[profiles.NAME]`, `[templates.NAME]` and `[services.NAME]`: configuration that is
//! rolled out.

pub(crate) mod check;
pub(crate) mod cloudwatch;
pub(crate) mod profile;
pub(crate) mod service;
pub(crate) mod template;

use crate::{
    keys::{Kind, Reload::Live, Table, api::file, key},
    reader::{Place, Reader, Span, Value},
};
use mainstay_core::{plan::CloudWatchPlan, rollout::WaveSize};
use std::{path::PathBuf, time::Duration};
use toml::de::DeValue;

/// `[rollout]` as it is written.
pub(crate) struct RolloutKeys {
    pub(crate) refresh_interval: Duration,
    pub(crate) failure_timeout: Duration,
    pub(crate) on_failure: Option<Vec<String>>,
    pub(crate) exit_on_failure: Option<bool>,
    pub(crate) cloudwatch: Option<CloudWatchPlan>,
    pub(crate) signal_files: Option<PathBuf>,
    pub(crate) wave: Option<WaveSize>,
    pub(crate) pause: Duration,
    /// Where it is written.
    pub(crate) pause_at: Option<Place>,
}

impl Default for RolloutKeys {
    fn default() -> RolloutKeys {
        RolloutKeys {
            refresh_interval: Duration::from_secs(30),
            failure_timeout: Duration::from_secs(15 * 60),
            on_failure: None,
            exit_on_failure: None,
            cloudwatch: None,
            signal_files: None,
            wave: None,
            pause: Duration::from_secs(30),
            pause_at: None,
        }
    }
}

pub(crate) static ROLLOUT: Table<RolloutKeys> = Table {
    keys: &[
        key(
            "refresh_interval",
            Kind::Duration,
            "\"30s\"",
            Live,
            "How often the sources of profiles are asked, unless they want to be asked less often.",
            |it, v, r| r.period(v).map(|every| it.refresh_interval = every),
        ),
        key(
            "failure_timeout",
            Kind::Duration,
            "\"15m\"",
            Live,
            "How long a failure may stay pending, without another version, before it is final.",
            |it, v, r| r.period(v).map(|time| it.failure_timeout = time),
        ),
        key(
            "on_failure",
            Kind::Command,
            "",
            Live,
            "Run when an update has failed and when a failure is final, with MAINSTAY_PROFILE, \
             MAINSTAY_VERSION, MAINSTAY_FAILURE and MAINSTAY_NUMBER.",
            |it, v, r| r.command(v).map(|command| it.on_failure = Some(command)),
        ),
        key(
            "exit_on_failure",
            Kind::Bool,
            "",
            Live,
            "Whether a final failure ends the node, with exit code 1. Default: only if it has no jobs.",
            |it, v, r| r.boolean(v).map(|exit| it.exit_on_failure = Some(exit)),
        ),
        key(
            "cloudwatch",
            Kind::Table,
            "",
            Live,
            "A metric of CloudWatch that says whether something has failed: every minute, and at \
             every change.",
            |it, v, r| cloudwatch::read(v, r).map(|metric| it.cloudwatch = Some(metric)),
        ),
        key(
            "signal_files",
            Kind::Text,
            "",
            Live,
            "A directory of signal files: units that we have no right to tell are told through \
             path units that watch it.",
            |it, v, r| file(v, r).map(|path| it.signal_files = Some(path)),
        ),
        key(
            "wave",
            Kind::Share,
            "",
            Live,
            "How many nodes of the fleet get a version at a time: a number, or a percentage of those \
             whose file has the profile, rounded up. Default: every node asks the sources by itself.",
            |it, v, r| {
                let size = wave_size(v, r)?;
                if !r.in_fleet {
                    r.lonely(v.span);
                }
                it.wave = Some(size);
                Some(())
            },
        ),
        key(
            "pause",
            Kind::Duration,
            "\"30s\"",
            Live,
            "Between two waves, after every node of the first has confirmed.",
            |it, v, r| {
                it.pause = r.duration(v)?;
                it.pause_at = Some(r.here(v.span));
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// A name that is looked up among others, and where it is written.
#[derive(Debug, Clone)]
pub(crate) struct WrittenName {
    pub(crate) name: String,
    pub(crate) at: Place,
}

/// So many, or so many of a hundred.
fn wave_size(v: Value<'_>, r: &mut Reader<'_>) -> Option<WaveSize> {
    let DeValue::String(_) = v.de else { return r.count(v, 1).map(WaveSize::Nodes) };
    let text = r.filled(v)?;
    let percent = text.strip_suffix('%').and_then(|it| it.parse().ok());
    match percent.filter(|it| (1..=100).contains(it)) {
        Some(percent) => Some(WaveSize::Percent(percent)),
        None => {
            let help = "write a number of nodes, or a percentage such as \"10%\"";
            r.wrong(v.span, format!("'{text}' is neither a number nor a percentage"), help)
        }
    }
}

/// One name, or a list of them.
fn names(v: Value<'_>, r: &mut Reader<'_>) -> Option<Vec<WrittenName>> {
    let one = |r: &mut Reader<'_>, v: Value<'_>| {
        let name = r.filled(v)?;
        Some(WrittenName { name, at: r.here(v.span) })
    };
    match v.de {
        DeValue::Array(_) => r.list(v, one),
        _ => one(r, v).map(|it| vec![it]),
    }
}

/// A key without which its table says nothing.
fn required<T>(r: &mut Reader<'_>, value: Option<T>, key: &str, at: Span, help: &str) -> Option<T> {
    match value {
        Some(value) => Some(value),
        // What is broken may be what is missing.
        None if !r.is_whole() => None,
        None => r.wrong(at, format!("'{key}' is missing"), help),
    }
}
