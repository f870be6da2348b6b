//! What users measure themselves.

use super::{free_port, get, http, metrics, start, until_open, until_value, with_port};
use mainstay_tests::Setup;

const CONFIG: &str = r#"
[telemetry]
listen = "127.0.0.1:PORT"
metrics = [
    { name = "orders_total", type = "counter", help = "Orders, \"all\" of them" },
    { namespace = "shop", subsystem = "queue", name = "length", type = "gauge" },
    { namespace = "shop", name = "clicks", type = "counter" },
    { subsystem = "db", name = "took_seconds", type = "histogram", buckets = [0.1, 1] },
    { name = "sizes", type = "summary", quantiles = [0.5, 1] },
]
[jobs.web]
exec = "sleep 1000"
"#;

fn told(output: std::process::Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn values_are_added_set_and_observed_by_whole_names() {
    let (node, port) = start(CONFIG);
    node.must(&["metric", "orders_total=2", "shop_queue_length=7.5", "shop_clicks=1"]);
    node.must(&["metric", "orders_total=1", "shop_queue_length=-3", "db_took_seconds=0.5"]);
    for value in ["sizes=1", "sizes=2", "sizes=3"] {
        node.must(&["metric", value]);
    }
    let all = metrics(port);
    for (series, value) in [
        ("orders_total", 3.0),
        ("shop_queue_length", -3.0),
        ("shop_clicks", 1.0),
        ("db_took_seconds_bucket{le=\"0.1\"}", 0.0),
        ("db_took_seconds_bucket{le=\"1.0\"}", 1.0),
        ("db_took_seconds_sum", 0.5),
        ("sizes{quantile=\"0.5\"}", 2.0),
        ("sizes{quantile=\"1.0\"}", 3.0),
        ("sizes_count", 3.0),
    ] {
        assert_eq!(all.get(series), Some(value), "{series}");
    }
    assert_eq!(all.families["orders"], "counter");
    // Its name must stay, so OpenMetrics cannot call it a counter.
    assert_eq!(all.families["shop_clicks"], "unknown");
}

#[test]
fn what_cannot_be_taken_is_refused_as_a_whole() {
    let (node, port) = start(CONFIG);
    for (args, code, text) in [
        (vec!["orders_total=1", "order_total=1"], 1, "did you mean 'orders_total'?"),
        (vec!["orders_total=-1"], 1, "is a counter"),
        (vec!["orders_total=many"], 2, "'many' is not a number"),
        (vec!["orders_total"], 2, "write orders_total=NUMBER"),
        (vec!["orders_total=1", "orders_total=2"], 2, "is given twice"),
    ] {
        let (got, said) = told(node.ask(&[&["metric"], args.as_slice()].concat()));
        assert!(got == Some(code) && said.contains(text), "{args:?}: {got:?} {said}");
    }
    let socket = node.run_dir().join("mainstay.sock");
    for body in ["{\"orders_total\":\"1\"}", "{\"orders_total\":null}", "[1]", "{"] {
        let answer = http::unix(&socket, "POST", "/v1/metrics", body).expect("an answer");
        assert_eq!(answer.code, 400, "{body}: {}", answer.body);
    }
    assert_eq!(metrics(port).get("orders_total"), Some(0.0));
}

#[test]
fn values_outlive_the_agent_an_upgrade_and_a_reload_that_does_not_concern_them() {
    let (node, port) = start(CONFIG);
    node.must(&["metric", "orders_total=4", "db_took_seconds=0.5"]);
    let file = node.run_dir().join("metrics.json");
    mainstay_tests::until("they are written down", || std::fs::read_to_string(&file).ok());
    node.kill_agent();
    until_open(port);
    until_value(port, "orders_total", 4.0);
    node.must(&["metric", "orders_total=1"]);
    node.must(&["upgrade"]);
    node.wait_until_ready();
    until_open(port);
    until_value(port, "orders_total", 5.0);
    let other = CONFIG
        .replace("buckets = [0.1, 1]", "buckets = [0.1, 2]")
        .replace("name = \"sizes\"", "name = \"lengths\"");
    node.configure(&with_port(&other, port));
    node.must(&["reload"]);
    let all = metrics(port);
    assert_eq!(all.get("orders_total"), Some(5.0));
    assert_eq!(all.get("db_took_seconds_count"), Some(0.0));
    assert_eq!((all.get("sizes_count"), all.get("lengths_count")), (None, Some(0.0)));
}

#[test]
fn names_that_clash_are_mistakes_in_the_configuration() {
    let scratch = mainstay_tests::Scratch::new();
    let file = scratch.path().join("m.toml");
    for (metrics, text) in [
        (
            "{ name = \"x\", type = \"gauge\" }, { name = \"x_total\", type = \"counter\" }",
            "same series",
        ),
        (
            "{ name = \"x\", type = \"summary\" }, { name = \"x_sum\", type = \"gauge\" }",
            "same series",
        ),
        ("{ name = \"mainstay_x\", type = \"gauge\" }", "are mainstay's own"),
        (
            "{ namespace = \"containerpilot\", name = \"events\", type = \"gauge\" }",
            "is shown by mainstay itself",
        ),
        ("{ name = \"a-b\", type = \"gauge\" }", "cannot be part of a metric's name"),
        ("{ name = \"1a\", type = \"gauge\" }", "not a name for a metric"),
        ("{ name = \"a\" }", "'type' of 'a' is missing"),
        ("{ type = \"gauge\" }", "'name' is missing"),
        ("{ name = \"a\", type = \"gauge\", buckets = [1] }", "only a histogram has buckets"),
        ("{ name = \"a\", type = \"histogram\", buckets = [2, 1] }", "do not ascend"),
        ("{ name = \"a\", type = \"summary\", quantiles = [2] }", "between 0 and 1"),
    ] {
        let listen = "listen = \"127.0.0.1:9090\"";
        let config =
            format!("[telemetry]\n{listen}\nmetrics = [{metrics}]\n[jobs.a]\nexec = \"a\"\n");
        std::fs::write(&file, config).expect("our own directory");
        let output = std::process::Command::new(mainstay_tests::binary())
            .args(["check", "-c"])
            .arg(&file)
            .output()
            .expect("it runs");
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(78) && said.contains(text), "{metrics}: {said}");
    }
}

#[test]
fn a_node_without_metrics_says_so() {
    let port = free_port();
    let config = "[telemetry]\nlisten = \"127.0.0.1:PORT\"\n[jobs.web]\nexec = \"sleep 1000\"\n";
    let node = Setup::config(with_port(config, port)).start();
    let (code, said) = told(node.ask(&["metric", "x=1"]));
    assert!(code == Some(1) && said.contains("has no [telemetry] metrics"), "{said}");
    until_open(port);
    assert_eq!(get(port, "/metrics").code, 200);
}
