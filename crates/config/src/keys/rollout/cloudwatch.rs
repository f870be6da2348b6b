//! `cloudwatch` of `[rollout]`: where it is published whether something has failed.

use super::required;
use crate::{
    keys::{Kind, Reload::Live, Table, http, key},
    reader::{Reader, Value},
};
use mainstay_core::plan::CloudWatchPlan;

/// As many as CloudWatch takes.
const MOST_DIMENSIONS: usize = 30;

#[derive(Default)]
pub(crate) struct CloudWatchKeys {
    namespace: Option<String>,
    metric: Option<String>,
    plan: CloudWatchPlan,
}

pub(crate) static CLOUDWATCH: Table<CloudWatchKeys> = Table {
    keys: &[
        key(
            "namespace",
            Kind::Text,
            "",
            Live,
            "The namespace of the metric: your own, such as \"Shop\".",
            |it, v, r| {
                let text = r.filled(v)?;
                if text.starts_with("AWS/") {
                    let help = "choose a name of your own";
                    return r.wrong(v.span, "namespaces of AWS itself cannot be written", help);
                }
                it.namespace = Some(text);
                Some(())
            },
        ),
        key(
            "metric",
            Kind::Text,
            "",
            Live,
            "The name of the metric: 1 while a failure is pending or final, else 0.",
            |it, v, r| r.filled(v).map(|name| it.metric = Some(name)),
        ),
        key(
            "dimensions",
            Kind::Map,
            "{}",
            Live,
            "Dimensions of the metric, such as { Service = \"web\" }.",
            |it, v, r| {
                let one = |r: &mut Reader<'_>, name: &str, _, v: Value<'_>| {
                    r.filled(v).map(|value| (name.to_owned(), value))
                };
                let dimensions = r.map(v, one)?;
                if dimensions.len() > MOST_DIMENSIONS {
                    let help = "leave some out";
                    return r.wrong(v.span, "CloudWatch takes 30 dimensions at the most", help);
                }
                it.plan.dimensions = dimensions;
                Some(())
            },
        ),
        key(
            "region",
            Kind::Text,
            "",
            Live,
            "The AWS region. Default: as AWS's own tools find it.",
            |it, v, r| r.filled(v).map(|region| it.plan.region = Some(region)),
        ),
        key(
            "endpoint",
            Kind::Text,
            "",
            Live,
            "The URL that is told in place of AWS's own.",
            |it, v, r| http::url(v, r).map(|url| it.plan.endpoint = Some(url)),
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn read(v: Value<'_>, r: &mut Reader<'_>) -> Option<CloudWatchPlan> {
    let mut it = CloudWatchKeys::default();
    r.nested(v, &CLOUDWATCH, &mut it)?;
    let namespace = required(r, it.namespace, "namespace", v.span, "add namespace = \"…\"");
    let name = required(r, it.metric, "metric", v.span, "add metric = \"RolloutFailed\"");
    Some(CloudWatchPlan { namespace: namespace?, name: name?, ..it.plan })
}
