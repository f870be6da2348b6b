//! What a node shows to those who watch it, what they measure with it, and how what was made for
//! ContainerPilot goes on.

mod containerpilot;
mod dashboard;
mod environ;
mod http;
mod many;
mod metrics;
mod open_metrics;
mod port;
mod status;
mod user_metrics;

use http::Answer;
use mainstay_tests::{Node, Scratch, Setup, until};
use open_metrics::Exposition;
use std::net::TcpListener;

/// A port of the loopback that nobody uses at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    listener.local_addr().expect("it is bound").port()
}

/// A node with telemetry, and its port. `PORT` and `DIR` in the configuration stand for its own.
fn start(config: &str) -> (Node, u16) {
    let port = free_port();
    let scratch = Scratch::new();
    let config = config.replace("DIR", &scratch.path().display().to_string());
    let node = Setup::config(with_port(&config, port)).launch_in(scratch);
    node.wait_until_ready();
    until_open(port);
    (node, port)
}

fn with_port(config: &str, port: u16) -> String {
    format!("[node]\nexit = \"never\"\n{}", config.replace("PORT", &port.to_string()))
}

fn until_open(port: u16) {
    until("telemetry answers", || http::try_get(port, "/healthz"));
}

fn get(port: u16, path: &str) -> Answer {
    http::try_get(port, path).expect("telemetry answers")
}

/// The metrics, by a parser that forgives nothing.
fn metrics(port: u16) -> Exposition {
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\
                   Connection: close\r\n\r\n";
    let answer = http::tcp(port, request).expect("telemetry answers");
    assert_eq!(answer.code, 200);
    let kind = answer.header("content-type").expect("a type").to_owned();
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    Exposition::parse(&answer.body).unwrap_or_else(|error| panic!("{error}\n{}", answer.body))
}

/// Waits until a series has a value.
fn until_value(port: u16, series: &str, value: f64) {
    until(&format!("{series} is {value}"), || {
        (metrics(port).get(series) == Some(value)).then_some(())
    });
}
