//! `[telemetry]`: what is shown to those who watch the node, and what users measure themselves.

use crate::{
    keys::{Kind, Reload::Live, Table, discovery, key},
    reader::{Place, Reader, Span, Value},
};
use mainstay_core::{
    interface::{self, InterfaceSpec},
    plan::{Listen, MetricKind, MetricPlan, TelemetryPlan},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

/// Beginnings that are ours, or of what every process shows.
const OURS: [&str; 2] = ["mainstay_", "process_"];
/// What is shown beside them for those who watched ContainerPilot.
const SHOWN: [&str; 3] = [
    "containerpilot_events",
    "containerpilot_control_http_requests",
    "containerpilot_watch_instances",
];
const MOST_BUCKETS: usize = 100;
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
const LONGEST: usize = 200;
/// Where ContainerPilot shows it, and Prometheus itself.
const PORT: u16 = 9090;

/// `[telemetry]` as it is written.
#[derive(Default)]
pub(crate) struct Telemetry {
    listen: Option<(String, Span)>,
    port: Option<u16>,
    interfaces: Option<Vec<InterfaceSpec>>,
    metrics: Vec<(Metric, Span)>,
    /// Where the metrics are written.
    file: usize,
}

#[derive(Default)]
pub(crate) struct Metric {
    namespace: String,
    subsystem: String,
    name: String,
    help: String,
    kind: Option<String>,
    buckets: Option<(Vec<f64>, Span)>,
    quantiles: Option<(Vec<f64>, Span)>,
}

pub(crate) static TELEMETRY: Table<Telemetry> = Table {
    keys: &[
        key(
            "listen",
            Kind::Text,
            "",
            Live,
            "`ip:port` at which /metrics, /status and /healthz are shown to whoever asks.",
            |it, v, r| {
                let text = r.filled(v)?;
                let address = match text.parse::<SocketAddr>() {
                    Ok(address) => address,
                    Err(_) => {
                        let help = match crate::notation::address::parse(&text) {
                            Err(help) => help,
                            Ok(_) => "write ip:port or [ip6]:port".to_owned(),
                        };
                        return r.wrong(v.span, format!("'{text}' is not an address"), help);
                    }
                };
                if address.port() == 0 {
                    return r.wrong(v.span, "port 0 is not a port", "say which: 127.0.0.1:9090");
                }
                it.listen = Some((address.to_string(), v.span));
                Some(())
            },
        ),
        key(
            "port",
            Kind::Integer,
            "",
            Live,
            "Instead of `listen`: the port, at the address that `interfaces` choose; 9090 where only \
             those are given.",
            |it, v, r| {
                let port = r.integer(v, 1..=i64::from(u16::MAX))?;
                it.port = u16::try_from(port).ok();
                Some(())
            },
        ),
        key(
            "interfaces",
            Kind::Texts,
            "",
            Live,
            "Which address it is shown at, the first that the host has: eth0, eth0:inet6, eth0[1], \
             10.0.0.0/8, inet, inet6, static:IP; default: eth0:inet, then inet.",
            |it, v, r| discovery::interfaces(v, r).map(|all| it.interfaces = Some(all)),
        ),
        key(
            "metrics",
            Kind::Tables,
            "",
            Live,
            "What users measure themselves, with `mainstay metric NAME=VALUE`.",
            |it, v, r| {
                it.metrics = r.tables(v, &METRIC, Metric::default)?;
                it.file = r.file;
                Some(())
            },
        ),
    ],
    later: &["tags"],
    refused: &[],
};

pub(crate) static METRIC: Table<Metric> = Table {
    keys: &[
        key(
            "namespace",
            Kind::Text,
            "",
            Live,
            "Stands before the name, followed by `_`.",
            |it, v, r| part(r, v).map(|text| it.namespace = text),
        ),
        key("subsystem", Kind::Text, "", Live, "Stands between namespace and name.", |it, v, r| {
            part(r, v).map(|text| it.subsystem = text)
        }),
        key("name", Kind::Text, "", Live, "The name, or its last part.", |it, v, r| {
            part(r, v).map(|text| it.name = text)
        }),
        key("help", Kind::Text, "", Live, "What it says, for people.", |it, v, r| {
            r.text(v).map(|text| it.help = text)
        }),
        key(
            "type",
            Kind::OneOf(&["counter", "gauge", "histogram", "summary"]),
            "",
            Live,
            "What becomes of a value: it is added, kept, or counted by its size; of a summary the \
             quantiles of the last ten minutes are shown.",
            |it, v, r| r.word(v).map(|word| it.kind = Some(word)),
        ),
        key(
            "buckets",
            Kind::Numbers,
            "",
            Live,
            "Upper bounds of a histogram's buckets, ascending; default: 0.005 0.01 0.025 0.05 0.1 0.25 \
             0.5 1 2.5 5 10.",
            |it, v, r| {
                let bounds = ascending(r, v)?;
                if bounds[0] < 0.0 {
                    let help = "begin at 0 or above: what is negative cannot be summed up";
                    return r.wrong(v.span, "a bucket below 0", help);
                }
                it.buckets = Some((bounds, v.span));
                Some(())
            },
        ),
        key(
            "quantiles",
            Kind::Numbers,
            "[0.5, 0.9, 0.99]",
            Live,
            "Which quantiles a summary shows, ascending, between 0 and 1.",
            |it, v, r| {
                let quantiles = ascending(r, v)?;
                if quantiles.iter().any(|share| !(0.0..=1.0).contains(share)) {
                    return r.wrong(
                        v.span,
                        "a quantile lies between 0 and 1",
                        "write 0.99 for 99 %",
                    );
                }
                it.quantiles = Some((quantiles, v.span));
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

/// A part of a metric's name; an empty one is as good as none.
fn part(r: &mut Reader<'_>, v: Value<'_>) -> Option<String> {
    let text = r.text(v)?;
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        let help = "use letters, digits and '_'";
        return r.wrong(v.span, format!("'{text}' cannot be part of a metric's name"), help);
    }
    Some(text)
}

fn ascending(r: &mut Reader<'_>, v: Value<'_>) -> Option<Vec<f64>> {
    let numbers = r.list(v, Reader::number)?;
    if numbers.is_empty() || numbers.len() > MOST_BUCKETS {
        let help = format!("write 1 to {MOST_BUCKETS} numbers, or remove the key");
        return r.wrong(v.span, "too few or too many numbers", help);
    }
    if numbers.windows(2).any(|pair| pair[0] >= pair[1]) {
        return r.wrong(v.span, "the numbers do not ascend", "sort them, each once");
    }
    Some(numbers)
}

/// The table as a whole: `None` when it is not there or wrong.
pub(crate) fn judge(
    r: &mut Reader<'_>,
    telemetry: Telemetry,
    at: Option<Place>,
) -> Option<TelemetryPlan> {
    let at = at?;
    let mut metrics: Vec<MetricPlan> = Vec::new();
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    r.file = telemetry.file;
    for (metric, span) in telemetry.metrics {
        r.within("telemetry.metrics", |r| {
            let plan = metric.judge(r, span)?;
            let names = exposed(&plan);
            if let Some(shown) = SHOWN.iter().find(|shown| names.contains(**shown)) {
                let message = format!("'{shown}' is shown by mainstay itself");
                return r.wrong::<()>(span, message, "rename it, or give it another namespace");
            }
            if let Some(other) = names.iter().find_map(|name| taken.get(name)) {
                let message = format!("'{}' and '{other}' would show the same series", plan.name);
                return r.wrong::<()>(span, message, "rename or remove one of them");
            }
            taken.extend(names.into_iter().map(|name| (name, plan.name.clone())));
            metrics.push(plan);
            Some(())
        });
    }
    r.file = at.file;
    let elsewhere = telemetry.port.is_some() || telemetry.interfaces.is_some();
    let listen = match telemetry.listen {
        Some((_, span)) if elsewhere => r.within("telemetry.listen", |r| {
            let help = "remove it, or port and interfaces";
            r.wrong(span, "an address beside a port or interfaces", help)
        })?,
        Some((address, _)) => Listen::At(address),
        None if elsewhere => Listen::On {
            port: telemetry.port.unwrap_or(PORT),
            interfaces: telemetry.interfaces.unwrap_or_else(interface::defaults),
        },
        None if r.is_whole() => r.within("telemetry", |r| {
            let help = "add it: listen = \"127.0.0.1:9090\"";
            r.wrong(at.span, "'listen' is missing", help)
        })?,
        None => return None,
    };
    Some(TelemetryPlan { listen, metrics })
}

impl Metric {
    fn judge(self, r: &mut Reader<'_>, span: Span) -> Option<MetricPlan> {
        let Metric { namespace, subsystem, name, help, kind, buckets, quantiles } = self;
        if name.is_empty() {
            return r.wrong(span, "'name' is missing", "add name = \"orders_total\"");
        }
        let parts = [namespace, subsystem, name];
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let name = parts.join("_");
        if name.len() > LONGEST || name.starts_with(|first: char| first.is_ascii_digit()) {
            let message = format!("'{name}' is not a name for a metric");
            let help = format!("begin with a letter, and use at most {LONGEST} of them");
            return r.wrong(span, message, help);
        }
        if let Some(ours) = OURS.iter().find(|ours| name.starts_with(*ours)) {
            let message = format!("names that begin with '{ours}' are mainstay's own: '{name}'");
            return r.wrong(span, message, "rename it, or give it another namespace");
        }
        let Some(kind) = kind else {
            let help = "add type = \"counter\", \"gauge\", \"histogram\" or \"summary\"";
            return r.wrong(span, format!("'type' of '{name}' is missing"), help);
        };
        if let (Some((_, span)), true) = (&buckets, kind != "histogram") {
            return r.wrong(*span, "only a histogram has buckets", "remove them");
        }
        if let (Some((_, span)), true) = (&quantiles, kind != "summary") {
            return r.wrong(*span, "only a summary has quantiles", "remove them");
        }
        let of = |given: Option<(Vec<f64>, Span)>, default: &[f64]| {
            given.map_or_else(|| default.to_vec(), |(numbers, _)| numbers)
        };
        let kind = match kind.as_str() {
            "counter" => MetricKind::Counter,
            "gauge" => MetricKind::Gauge,
            "histogram" => MetricKind::Histogram { buckets: of(buckets, &BUCKETS) },
            _ => MetricKind::Summary { quantiles: of(quantiles, &QUANTILES) },
        };
        Some(MetricPlan { name, help, kind })
    }
}

/// Every name that a metric takes for itself, in either text format.
fn exposed(metric: &MetricPlan) -> BTreeSet<String> {
    let name = metric.name.as_str();
    let (family, suffixes): (&str, &[&str]) = match (&metric.kind, name.strip_suffix("_total")) {
        (MetricKind::Counter, Some(family)) => (family, &["_total", "_created"]),
        (MetricKind::Counter, None) | (MetricKind::Gauge, _) => (name, &[]),
        (MetricKind::Histogram { .. }, _) => (name, &["_bucket", "_sum", "_count", "_created"]),
        (MetricKind::Summary { .. }, _) => (name, &["_sum", "_count", "_created"]),
    };
    let suffixed = suffixes.iter().map(|suffix| format!("{family}{suffix}"));
    suffixed.chain([family.to_owned()]).collect()
}
