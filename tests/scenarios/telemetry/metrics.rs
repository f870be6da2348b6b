//! `/metrics`: what is counted, in which format, and for whom.

use super::{free_port, get, http, metrics, start, until_open, until_value, with_port};
use mainstay_tests::{Setup, until};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

const TELEMETRY: &str = "[telemetry]\nlisten = \"127.0.0.1:PORT\"\n";

#[test]
fn jobs_events_exits_and_output_are_counted() {
    let (node, port) = start(&format!(
        "{TELEMETRY}
        [jobs.web]
        exec = [\"sh\", \"-c\", \"echo one; echo two; exec sleep 1000\"]
        [jobs.failing]
        exec = [\"sh\", \"-c\", \"exit 3\"]
        restart = {{ on = \"failure\", delay = \"0s\", limit = 2 }}
        [jobs.fine]
        exec = \"true\"
        [jobs.missing]
        exec = \"/does/not/exist\"
        restart = \"never\""
    ));
    node.running("web");
    node.until_state("failing", "FATAL");
    node.until_state("fine", "EXITED");
    until_value(port, "mainstay_job_output_lines_total{job_name=\"web\"}", 2.0);
    let all = metrics(port);
    for (series, value) in [
        ("mainstay_job_state{job_name=\"web\"}", 20.0),
        ("mainstay_job_state{job_name=\"failing\"}", 200.0),
        ("mainstay_job_state{job_name=\"fine\"}", 100.0),
        ("mainstay_jobs{state=\"RUNNING\"}", 1.0),
        ("mainstay_jobs{state=\"STARTING\"}", 0.0),
        ("mainstay_job_as_desired{job_name=\"web\"}", 1.0),
        ("mainstay_job_as_desired{job_name=\"failing\"}", 0.0),
        ("mainstay_job_health{job_name=\"web\"}", 1.0),
        ("mainstay_job_restarts_total{job_name=\"failing\"}", 2.0),
        ("mainstay_job_exits_total{job_name=\"failing\",outcome=\"failure\"}", 3.0),
        ("mainstay_job_exits_total{job_name=\"fine\",outcome=\"success\"}", 1.0),
        ("mainstay_job_exits_total{job_name=\"missing\",outcome=\"error\"}", 1.0),
        ("mainstay_job_output_bytes_total{job_name=\"web\"}", 8.0),
        ("mainstay_events_total{event=\"startup\",source=\"global\"}", 1.0),
        ("mainstay_events_total{event=\"exitFailed\",source=\"failing\"}", 3.0),
        ("mainstay_node_state{state=\"running\"}", 1.0),
        ("mainstay_agent_restarts_total", 0.0),
        ("mainstay_keeper_pid", f64::from(node.keeper())),
        ("mainstay_keeper_up", 1.0),
        ("mainstay_journal_writable", 1.0),
    ] {
        assert_eq!(all.get(series), Some(value), "{series}");
    }
    for series in ["mainstay_agent_step_seconds_count", "mainstay_keeper_forks_total"] {
        assert!(all.get(series) > Some(4.0), "{series}: {:?}", all.get(series));
    }
    for series in ["process_resident_memory_bytes", "mainstay_keeper_resident_memory_bytes"] {
        assert!(all.get(series) > Some(1e6), "{series}: {:?}", all.get(series));
    }
    node.must(&["kill", "web"]);
    until_value(port, "mainstay_job_exits_total{job_name=\"web\",outcome=\"stopped\"}", 1.0);
}

#[test]
fn checks_show_their_answers_and_how_long_they_took() {
    let (node, port) = start(&format!(
        "{TELEMETRY}
        [jobs.web]
        exec = \"sleep 1000\"
        health = [
            {{ name = \"good\", exec = \"true\", interval = \"50ms\" }},
            {{ name = \"bad\", tcp = \"127.0.0.1:1\", interval = \"50ms\" }},
        ]"
    ));
    node.until_health("web", "unhealthy");
    let count = "mainstay_check_results_total{job_name=\"web\",check=\"good\",result=\"pass\"}";
    until("the good one has passed twice", || metrics(port).get(count).filter(|it| *it >= 2.0));
    let all = metrics(port);
    let bad = "job_name=\"web\",check=\"bad\"";
    assert_eq!(all.get(&format!("mainstay_check_state{{{bad}}}")), Some(-1.0));
    assert_eq!(all.get("mainstay_check_state{job_name=\"web\",check=\"good\"}"), Some(1.0));
    assert_eq!(all.get("mainstay_job_health{job_name=\"web\"}"), Some(-1.0));
    let took = "mainstay_check_duration_seconds_count{job_name=\"web\",check=\"good\"}";
    assert!(all.get(took) >= Some(2.0), "{:?}", all.get(took));
    let failed = format!("mainstay_check_results_total{{{bad},result=\"fail\"}}");
    assert!(all.get(&failed) >= Some(1.0), "{:?}", all.get(&failed));
}

#[test]
fn the_older_format_is_there_for_those_who_ask() {
    let (_node, port) = start(&format!("{TELEMETRY}[jobs.web]\nexec = \"sleep 1000\""));
    let head = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n";
    let answer = http::tcp(port, head).expect("telemetry answers");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let body = &answer.body;
    assert!(!body.contains("# EOF"), "{body}");
    assert!(body.contains("# TYPE mainstay_events_total counter\n"), "{body}");
    assert!(body.contains("# TYPE mainstay_build_info gauge\n"), "{body}");
    assert_eq!(get(port, "/metrics").header("connection"), Some("close"));
}

#[test]
fn what_leaves_the_plan_leaves_the_metrics() {
    let two = format!(
        "{TELEMETRY}
        [jobs.stays]
        exec = \"sleep 1000\"
        health = {{ name = \"old\", exec = \"true\", interval = \"50ms\" }}
        [jobs.goes]
        exec = \"sleep 1000\""
    );
    let (node, port) = start(&two);
    let old = "mainstay_check_state{job_name=\"stays\",check=\"old\"}";
    until_value(port, old, 1.0);
    until_value(port, "mainstay_job_state{job_name=\"goes\"}", 20.0);
    let one = two.split("[jobs.goes]").next().expect("a part").replace("old", "new");
    node.configure(&with_port(&one, port));
    node.must(&["reload"]);
    until("goes is gone", || {
        let all = metrics(port);
        let left = all.series.keys().any(|series| series.contains("\"goes\""));
        (!left && all.get(old).is_none()).then_some(())
    });
    until_value(port, "mainstay_check_state{job_name=\"stays\",check=\"new\"}", 1.0);
}

#[test]
fn an_agent_that_dies_is_counted_and_followed() {
    let (node, port) = start(&format!("{TELEMETRY}[jobs.web]\nexec = \"sleep 1000\""));
    node.kill_agent();
    until_open(port);
    until_value(port, "mainstay_agent_restarts_total", 1.0);
    let all = metrics(port);
    assert_eq!(all.get("mainstay_job_state{job_name=\"web\"}"), Some(20.0));
    assert_eq!(
        all.get("mainstay_events_total{event=\"agentRestarted\",source=\"global\"}"),
        Some(1.0)
    );
}

#[test]
fn nothing_secret_is_shown() {
    let port = free_port();
    let config = format!(
        "{TELEMETRY}[jobs.web]\nexec = [\"sleep\", \"1000\"]\nenv = {{ TOKEN = \"hush-hush\" }}"
    );
    let node = Setup::config(with_port(&config, port)).start();
    until_open(port);
    node.must(&["environ", "OTHER=hush-hush"]);
    for path in ["/metrics", "/status", "/healthz"] {
        let answer = get(port, path);
        assert!(!answer.body.contains("hush-hush"), "{path}: {}", answer.body);
    }
}

#[test]
fn those_who_connect_and_say_nothing_keep_nobody_out() {
    let (_node, port) = start(&format!("{TELEMETRY}[jobs.web]\nexec = \"sleep 1000\""));
    let silent: Vec<TcpStream> =
        (0..200).filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok()).collect();
    assert_eq!(get(port, "/status").code, 200);
    drop(silent);
    let mut long = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    long.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let _ = long.write_all(b"GET /metrics HTTP/1.1\r\n");
    // It hangs up, or answers that this is too much.
    for _ in 0..64 {
        if long.write_all(format!("X-Long: {}\r\n", "x".repeat(1 << 10)).as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = long.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    assert_eq!(get(port, "/status").code, 200);
}
