//! `[services.NAME]`: who is told that files have changed, how, and what has to hold afterwards.

use super::{WrittenName, check, names};
use crate::{
    keys::{Kind, Reload::Live, Table, key, reload},
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    name::Name,
    plan::{Reload, ReloadMethod, ServiceCheck, ServicePlan, ServiceTarget},
};
use std::time::Duration;
use toml::de::DeValue;

/// `[services.NAME]` as it is written.
#[derive(Default)]
pub(crate) struct ServiceKeys {
    job: Option<(WrittenName, Span)>,
    unit: Option<(String, Span)>,
    templates: Vec<WrittenName>,
    reload: Option<ReloadMethod>,
    checks: Vec<ServiceCheck>,
    reload_timeout: Option<Duration>,
    bake_time: Option<Duration>,
    spoilt: bool,
}

/// A service whose job and templates are still to be looked up.
pub(crate) struct PlacedService {
    pub(crate) plan: ServicePlan,
    pub(crate) job: Option<WrittenName>,
    pub(crate) templates: Vec<WrittenName>,
}

pub(crate) static SERVICE: Table<ServiceKeys> = Table {
    keys: &[
        key("job", Kind::Text, "", Live, "The job of this node that is told.", |it, v, r| {
            let name = r.filled(v);
            it.spoilt |= name.is_none();
            it.job = name.map(|name| (WrittenName { name, at: r.here(v.span) }, v.span));
            Some(())
        }),
        key(
            "unit",
            Kind::Text,
            "",
            Live,
            "The unit of systemd that is told, in place of a job.",
            |it, v, r| {
                it.unit = unit(v, r).map(|unit| (unit, v.span));
                it.spoilt |= it.unit.is_none();
                Some(())
            },
        ),
        key(
            "templates",
            Kind::Texts,
            "",
            Live,
            "The templates whose files it uses. It is told when one of them changes. Required.",
            |it, v, r| {
                let found = names(v, r);
                it.spoilt |= found.is_none();
                it.templates = found.unwrap_or_default();
                Some(())
            },
        ),
        key(
            "reload",
            Kind::OneOfOrTable(&["try-reload-or-restart", "flip-flop"]),
            "\"try-reload-or-restart\"",
            Live,
            "How it is told. try-reload-or-restart: a job by its own `reload`, else by a restart, a \
             unit as systemctl does it; what does not run is left alone. flip-flop: of the unit \
             web@.service the instance @1 or @2 that does not run is started, and the other one \
             stopped once the checks have passed.",
            |it, v, r| {
                it.reload = method(v, r);
                it.spoilt |= it.reload.is_none();
                Some(())
            },
        ),
        key(
            "checks",
            Kind::WordsOrTables(&["change-child-pid"]),
            "",
            Live,
            "What has to hold before it counts as confirmed. change-child-pid: the children of its \
             main process are others than before.",
            |it, v, r| {
                let checks = check::read(v, r);
                it.spoilt |= checks.is_none();
                it.checks = checks.unwrap_or_default();
                Some(())
            },
        ),
        key(
            "reload_timeout",
            Kind::Duration,
            "\"60s\"",
            Live,
            "How long it has until it is confirmed.",
            |it, v, r| r.period(v).map(|time| it.reload_timeout = Some(time)),
        ),
        key(
            "bake_time",
            Kind::Duration,
            "\"0s\"",
            Live,
            "How long it is watched afterwards: if it ends, becomes unhealthy, or a check fails, the \
             update has failed.",
            |it, v, r| r.duration(v).map(|time| it.bake_time = Some(time)),
        ),
    ],
    later: &[],
    refused: &[],
};

fn method(v: Value<'_>, r: &mut Reader<'_>) -> Option<ReloadMethod> {
    if !matches!(v.de, DeValue::Table(_)) {
        return r.word(v).map(|word| match word.as_str() {
            "flip-flop" => ReloadMethod::FlipFlop,
            _ => ReloadMethod::TryReloadOrRestart,
        });
    }
    reload::read(v, r).map(|it| match it {
        Reload::Signal(signal) => ReloadMethod::Signal(signal),
        Reload::Exec(command) => ReloadMethod::Exec(command),
    })
}

/// A name of a unit, as systemd has them.
fn unit(v: Value<'_>, r: &mut Reader<'_>) -> Option<String> {
    let text = r.filled(v)?;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b);
    if text.len() > 255 || !text.bytes().all(fits) || !text.contains('.') {
        let help = "write its full name, for example nginx.service";
        return r.wrong(v.span, format!("'{text}' is not the name of a unit"), help);
    }
    Some(text)
}

impl ServiceKeys {
    pub(crate) fn judge(self, name: Name, at: Span, r: &mut Reader<'_>) -> Option<PlacedService> {
        if self.spoilt {
            return None;
        }
        let reload = self.reload.unwrap_or(ReloadMethod::TryReloadOrRestart);
        let (target, job) = match (self.job, self.unit, &reload) {
            (Some((job, _)), None, _) => {
                // Its name is looked up later.
                (ServiceTarget::Job(name.clone()), Some(job))
            }
            (None, Some((unit, _)), _) => (ServiceTarget::Unit(unit), None),
            (Some((_, first)), Some((_, span)), _) => {
                let first = (r.here(first), "'job' is here");
                let help = "keep one of them";
                return r.wrong_beside(span, first, "'job' and 'unit' together", help);
            }
            (None, None, ReloadMethod::Exec(_)) => (ServiceTarget::Command, None),
            (
                None,
                None,
                ReloadMethod::TryReloadOrRestart | ReloadMethod::FlipFlop | ReloadMethod::Signal(_),
            ) => {
                let help = "add job = \"…\" or unit = \"….service\", or reload = { exec = \"…\" }";
                return r.wrong(at, "nobody is told", help);
            }
        };
        let flips = reload == ReloadMethod::FlipFlop;
        if flips && !matches!(target, ServiceTarget::Unit(_)) {
            let help =
                "name the unit whose instances @1 and @2 take turns: unit = \"web@.service\"";
            return r.wrong(at, "'flip-flop' of something that is no unit", help);
        }
        for check in &self.checks {
            let wrong = match check {
                ServiceCheck::ChangeChildPid { .. } if target == ServiceTarget::Command => {
                    ("'change-child-pid' of nobody", "name a job or a unit, or remove the check")
                }
                ServiceCheck::ChangeChildPid { .. } if flips => (
                    "'change-child-pid' of 'flip-flop', which starts another instance",
                    "remove the check",
                ),
                ServiceCheck::HealthComparison(_) if !flips => (
                    "'unicorn_health_comparison' without two instances",
                    "set reload = \"flip-flop\", or remove the check",
                ),
                ServiceCheck::ChangeChildPid { .. }
                | ServiceCheck::HealthComparison(_)
                | ServiceCheck::Http(_)
                | ServiceCheck::Exec(_) => continue,
            };
            return r.wrong(at, wrong.0, wrong.1);
        }
        if self.templates.is_empty() {
            if r.is_whole() {
                let help = "add templates = [\"…\"]";
                return r.wrong(at, "'templates' is missing: it would never be told", help);
            }
            return None;
        }
        let plan = ServicePlan {
            name,
            target,
            templates: Vec::new(),
            reload,
            checks: self.checks,
            reload_timeout: self.reload_timeout.unwrap_or(Duration::from_secs(60)),
            bake_time: self.bake_time.unwrap_or(Duration::ZERO),
        };
        Some(PlacedService { plan, job, templates: self.templates })
    }
}
