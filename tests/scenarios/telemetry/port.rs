//! The port itself: opened, moved and closed by a reload, and never a reason for a job to suffer.

use super::{free_port, get, http, start, until_open, with_port};
use mainstay_tests::{Setup, until};
use std::net::TcpListener;

const CONFIG: &str =
    "[telemetry]\nlisten = \"127.0.0.1:PORT\"\n[jobs.web]\nexec = \"sleep 1000\"\n";
const WITHOUT: &str = "[jobs.web]\nexec = \"sleep 1000\"\n";

#[test]
fn a_reload_opens_moves_and_closes_it() {
    let (first, second) = (free_port(), free_port());
    let node = Setup::config(with_port(WITHOUT, 0)).start();
    let pid = node.running("web");
    assert!(http::try_get(first, "/healthz").is_none());
    for (port, other) in [(first, second), (second, first)] {
        node.configure(&with_port(CONFIG, port));
        node.must(&["reload"]);
        until_open(port);
        until("the other one is closed", || {
            http::try_get(other, "/healthz").is_none().then_some(())
        });
    }
    let at = node.status()["telemetry"]["at"].clone();
    assert_eq!(at, format!("127.0.0.1:{second}"));
    node.configure(&with_port(WITHOUT, 0));
    node.must(&["reload"]);
    until("it is closed", || http::try_get(second, "/healthz").is_none().then_some(()));
    assert!(node.status().get("telemetry").is_none());
    assert_eq!(node.running("web"), pid);
}

#[test]
fn a_port_in_use_is_told_and_tried_again_and_keeps_no_job_from_running() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    let port = taken.local_addr().expect("it is bound").port();
    let node = Setup::config(with_port(CONFIG, port)).start();
    node.running("web");
    node.until_told(&format!("cannot open telemetry at 127.0.0.1:{port}"));
    until("status tells it", || node.status()["telemetry"]["error"].as_str().map(str::to_owned));
    let text = String::from_utf8(node.ask(&["status"]).stdout).expect("text");
    assert!(text.contains(&format!("telemetry is not open at 127.0.0.1:{port}")), "{text}");
    drop(taken);
    until_open(port);
    assert!(node.status()["telemetry"]["error"].is_null());
}

#[test]
fn it_can_be_found_by_interface() {
    let port = free_port();
    let config =
        format!("[telemetry]\nport = {port}\ninterfaces = [\"nosuch0\", \"lo\"]\n{WITHOUT}");
    let node = Setup::config(with_port(&config, 0)).start();
    until_open(port);
    assert_eq!(node.status()["telemetry"]["at"], format!("127.0.0.1:{port}"));
    let nowhere = config.replace(", \"lo\"", "");
    node.configure(&with_port(&nowhere, 0));
    node.must(&["reload"]);
    node.until_told(&format!("cannot open telemetry at port {port}: no address matches"));
}

#[test]
fn it_ends_with_the_run() {
    let (mut node, port) = start(CONFIG);
    assert_eq!(get(port, "/status").code, 200);
    node.must(&["shutdown"]);
    node.wait();
    assert!(http::try_get(port, "/healthz").is_none());
}
