//! `checks` of a service: what has to hold before it counts as confirmed.

use crate::{
    keys::{Kind, Reload::Live, Table, http, key},
    reader::{Reader, Span, Value, as_i64},
};
use mainstay_core::plan::{HealthComparison, HealthSource, ServiceCheck};
use toml::de::DeValue;

const MOST: usize = 100;

/// One of `checks` as it is written.
#[derive(Default)]
pub(crate) struct ServiceCheckKeys {
    found: Vec<(ServiceCheck, Span)>,
    spoilt: bool,
}

pub(crate) static CHECK: Table<ServiceCheckKeys> = Table {
    keys: &[
        key(
            "http",
            Kind::TextOrTable,
            "",
            Live,
            "A URL that has to answer, or a table as in jobs.NAME.health.http.",
            |it, v, r| {
                let check = http::read(v, r).map(ServiceCheck::Http);
                it.take(check, v.span)
            },
        ),
        key("exec", Kind::Command, "", Live, "A command that has to end with 0.", |it, v, r| {
            let check = r.command(v).map(ServiceCheck::Exec);
            it.take(check, v.span)
        }),
        key(
            "change_child_pid",
            Kind::OneOf(&["any", "all"]),
            "",
            Live,
            "The children of its main process have to be others than before: any of them, or all.",
            |it, v, r| {
                let check =
                    r.word(v).map(|word| ServiceCheck::ChangeChildPid { strict: word == "all" });
                it.take(check, v.span)
            },
        ),
        key(
            "unicorn_health_comparison",
            Kind::Table,
            "",
            Live,
            "The new instance must not fail notably more requests than the old one.",
            |it, v, r| {
                let check = comparison(v, r).map(ServiceCheck::HealthComparison);
                it.take(check, v.span)
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// `unicorn_health_comparison` as it is written.
#[derive(Default)]
pub(crate) struct ComparisonKeys {
    exec: Option<(Vec<String>, Span)>,
    http: Option<(mainstay_core::plan::Http, Span)>,
    requests: Option<u64>,
    points: Option<u32>,
    spoilt: bool,
}

pub(crate) static COMPARISON: Table<ComparisonKeys> = Table {
    keys: &[
        key(
            "exec",
            Kind::Command,
            "",
            Live,
            "A command that prints `{\"requests\": n, \"failures\": m}` of an instance.",
            |it, v, r| {
                it.exec = r.command(v).map(|exec| (exec, v.span));
                it.spoilt |= it.exec.is_none();
                Some(())
            },
        ),
        key(
            "http",
            Kind::TextOrTable,
            "",
            Live,
            "A URL that answers so, or with lines of text: `requests: n` and `failures: m`.",
            |it, v, r| {
                it.http = http::read(v, r).map(|http| (http, v.span));
                it.spoilt |= it.http.is_none();
                Some(())
            },
        ),
        key(
            "requests",
            Kind::Integer,
            "20",
            Live,
            "Fewer requests of the new instance say nothing.",
            |it, v, r| at_least_one(v, r).map(|requests| it.requests = Some(requests)),
        ),
        key(
            "points",
            Kind::Integer,
            "5",
            Live,
            "How many percentage points more of its requests have to fail.",
            |it, v, r| {
                let points = at_least_one(v, r)?;
                match u32::try_from(points).ok().filter(|points| *points <= 100) {
                    Some(points) => it.points = Some(points),
                    None => return r.wrong(v.span, "more than 100 points", "write 1 to 100"),
                }
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// One check, or a list of them: a word or a table each.
pub(super) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<Vec<ServiceCheck>> {
    match v.de {
        DeValue::Array(array) if array.len() > MOST => {
            r.wrong(v.span, format!("more than {MOST} checks"), "join some of them")
        }
        DeValue::Array(_) => r.list(v, |r, v| one(v, r)),
        _ => one(v, r).map(|check| vec![check]),
    }
}

fn one(v: Value<'_>, r: &mut Reader<'_>) -> Option<ServiceCheck> {
    match v.de {
        DeValue::Table(_) => {
            let mut it = ServiceCheckKeys::default();
            r.nested(v, &CHECK, &mut it)?;
            it.judge(v.span, r)
        }
        DeValue::String(text) if text.as_ref() == "unicorn-health-comparison" => {
            let help = "write { unicorn_health_comparison = { exec = \"./counts {instance}\" } }";
            r.wrong(v.span, "it is not said where requests and failures are read", help)
        }
        _ => r.word(v).map(|_| ServiceCheck::ChangeChildPid { strict: false }),
    }
}

fn at_least_one(v: Value<'_>, r: &mut Reader<'_>) -> Option<u64> {
    let DeValue::Integer(number) = v.de else { return r.unfit(v) };
    match as_i64(number).and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0) {
        Some(number) => Some(number),
        None => r.wrong(v.span, "it has to be at least 1", "write a positive number"),
    }
}

fn comparison(v: Value<'_>, r: &mut Reader<'_>) -> Option<HealthComparison> {
    let mut it = ComparisonKeys::default();
    r.nested(v, &COMPARISON, &mut it)?;
    let source = match (it.exec, it.http) {
        _ if it.spoilt => return None,
        (Some((exec, _)), None) => HealthSource::Exec(exec),
        (None, Some((http, _))) => HealthSource::Http(http),
        (Some((_, first)), Some((_, second))) => {
            let first = (r.here(first), "'exec' is here");
            return r.wrong_beside(second, first, "'exec' and 'http' together", "keep one of them");
        }
        (None, None) => {
            let help = "add exec = \"./counts {instance}\" or http = \"http://…\"";
            return r.wrong(v.span, "it is not said where requests and failures are read", help);
        }
    };
    Some(HealthComparison {
        source,
        requests: it.requests.unwrap_or(20),
        points: it.points.unwrap_or(5),
    })
}

impl ServiceCheckKeys {
    #[allow(clippy::unnecessary_wraps, reason = "as what reads a key returns it")]
    fn take(&mut self, check: Option<ServiceCheck>, at: Span) -> Option<()> {
        self.spoilt |= check.is_none();
        self.found.extend(check.map(|check| (check, at)));
        Some(())
    }

    fn judge(self, at: Span, r: &mut Reader<'_>) -> Option<ServiceCheck> {
        let mut found = self.found.into_iter();
        match (found.next(), found.next()) {
            _ if self.spoilt => None,
            (Some((check, _)), None) => Some(check),
            (Some((_, first)), Some((_, second))) => {
                let first = (r.here(first), "the first is here");
                r.wrong_beside(second, first, "two checks in one table", "write a list of tables")
            }
            (None, _) => r.wrong(at, "it says nothing", "add http, exec or change_child_pid"),
        }
    }
}
