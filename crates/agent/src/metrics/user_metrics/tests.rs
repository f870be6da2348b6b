use super::*;
use mainstay_core::plan::{Listen, TelemetryPlan};
use std::{fs, path::PathBuf};

struct MetricsDir(PathBuf);

impl MetricsDir {
    fn new(name: &str) -> MetricsDir {
        let path = std::env::temp_dir().join(format!("mainstay-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        MetricsDir(path)
    }
}

impl Drop for MetricsDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plan(metrics: &[(&str, MetricKind)]) -> Plan {
    let mut plan =
        mainstay_config::single(&["true".to_owned()], None, &Default::default()).expect("a plan");
    let metric = |(name, kind): &(&str, MetricKind)| MetricPlan {
        name: (*name).to_owned(),
        help: String::new(),
        kind: kind.clone(),
    };
    let metrics = metrics.iter().map(metric).collect();
    plan.telemetry = Some(TelemetryPlan { listen: Listen::At("127.0.0.1:1".into()), metrics });
    plan
}

fn one(name: &str, value: f64) -> BTreeMap<String, f64> {
    [(name.to_owned(), value)].into()
}

fn readings(custom: &UserMetrics) -> Vec<(String, Reading)> {
    custom.read().into_iter().map(|(plan, reading)| (plan.name, reading)).collect()
}

#[test]
fn counters_add_gauges_keep_and_histograms_count() {
    let dir = MetricsDir::new("custom-kinds");
    let kinds = [
        ("c", MetricKind::Counter),
        ("g", MetricKind::Gauge),
        ("h", MetricKind::Histogram { buckets: vec![1.0, 2.0] }),
    ];
    let custom = UserMetrics::open(&dir.0, "r", &plan(&kinds));
    for value in [1.0, 2.5] {
        let all = ["c", "g", "h"].map(|name| (name.to_owned(), value)).into();
        custom.feed(&all).expect("all are known");
    }
    let bounds = vec![1.0, 2.0];
    assert_eq!(
        readings(&custom),
        [
            ("c".into(), Reading::Counter(3.5)),
            ("g".into(), Reading::Gauge(2.5)),
            ("h".into(), Reading::Histogram { bounds, counts: vec![1, 0, 1], sum: 3.5 }),
        ]
    );
}

#[test]
fn one_value_that_does_not_fit_keeps_all_of_them_out() {
    let dir = MetricsDir::new("custom-unfit");
    let custom = UserMetrics::open(&dir.0, "r", &plan(&[("orders_total", MetricKind::Counter)]));
    let mut values = one("orders_total", 1.0);
    values.insert("order_total".into(), 1.0);
    let error = custom.feed(&values).expect_err("it is not known").to_string();
    assert_eq!(error, "there is no metric 'order_total': did you mean 'orders_total'?");
    assert!(matches!(custom.feed(&one("orders_total", -1.0)), Err(FeedError::Negative(..))));
    assert!(matches!(custom.feed(&one("orders_total", f64::NAN)), Err(FeedError::NotFinite(_))));
    assert_eq!(readings(&custom), [("orders_total".into(), Reading::Counter(0.0))]);
}

#[test]
fn values_outlive_the_agent_but_not_the_run() {
    let dir = MetricsDir::new("custom-file");
    let kinds = [("c", MetricKind::Counter)];
    let custom = UserMetrics::open(&dir.0, "r", &plan(&kinds));
    custom.feed(&one("c", 7.0)).expect("known");
    custom.flush();
    assert_eq!(
        readings(&UserMetrics::open(&dir.0, "r", &plan(&kinds)))[0].1,
        Reading::Counter(7.0)
    );
    assert_eq!(
        readings(&UserMetrics::open(&dir.0, "s", &plan(&kinds)))[0].1,
        Reading::Counter(0.0)
    );
    fs::write(dir.0.join("metrics.json"), b"{").expect("our own directory");
    assert_eq!(
        readings(&UserMetrics::open(&dir.0, "r", &plan(&kinds)))[0].1,
        Reading::Counter(0.0)
    );
}

#[test]
fn a_reload_keeps_the_values_of_what_is_measured_as_before() {
    let dir = MetricsDir::new("custom-reload");
    let histogram = |bound| MetricKind::Histogram { buckets: vec![bound] };
    let kinds = [("c", MetricKind::Counter), ("x", MetricKind::Counter), ("h", histogram(1.0))];
    let custom = UserMetrics::open(&dir.0, "r", &plan(&kinds));
    for name in ["c", "x", "h"] {
        custom.feed(&one(name, 5.0)).expect("known");
    }
    custom.define(&plan(&[
        ("c", MetricKind::Counter),
        ("x", MetricKind::Gauge),
        ("h", histogram(2.0)),
    ]));
    assert_eq!(
        readings(&custom),
        [
            ("c".into(), Reading::Counter(5.0)),
            ("x".into(), Reading::Gauge(0.0)),
            ("h".into(), Reading::Histogram { bounds: vec![2.0], counts: vec![0, 0], sum: 0.0 }),
        ]
    );
    custom.define(&plan(&[]));
    assert!(matches!(custom.feed(&one("c", 1.0)), Err(FeedError::Unknown(_, Hint::NoneAtAll))));
}

#[test]
fn values_beyond_all_numbers_do_not_cost_the_others_theirs() {
    let dir = MetricsDir::new("custom-beyond");
    let kinds = [
        ("c", MetricKind::Counter),
        ("g", MetricKind::Gauge),
        ("h", MetricKind::Histogram { buckets: vec![1.0] }),
    ];
    let custom = UserMetrics::open(&dir.0, "r", &plan(&kinds));
    for name in ["c", "c", "g", "h", "h"] {
        custom.feed(&one(name, f64::MAX)).expect("finite");
    }
    custom.feed(&one("g", 7.0)).expect("finite");
    custom.flush();
    let before = readings(&custom);
    assert_eq!(before[0].1, Reading::Counter(f64::MAX));
    assert_eq!(readings(&UserMetrics::open(&dir.0, "r", &plan(&kinds))), before);
}
