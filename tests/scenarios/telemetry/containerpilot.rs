//! What was made for ContainerPilot goes on: its control socket, its variables, its series.

use super::{http, metrics, start, with_port};
use mainstay_tests::{Node, Setup, until};
use std::{os::unix::fs::PermissionsExt, path::PathBuf};

const CONFIG: &str = r#"
[telemetry]
listen = "127.0.0.1:PORT"
metrics = [ { name = "orders_total", type = "counter" } ]
[containerpilot]
[discovery]
engine = "file"
dir = "DIR/catalogue"
[jobs.first-one]
exec = ["sh", "-c", "echo pid $CONTAINERPILOT_PID; exec sleep 1000"]
advertise = { port = 80, interfaces = ["static:10.1.2.3"] }
[jobs.second]
exec = ["sh", "-c", "echo $CONTAINERPILOT_FIRST_ONE_PID $CONTAINERPILOT_FIRST_ONE_IP $MAINSTAY_FIRST_ONE_IP A=$A; exec sleep 1000"]
when = { source = "first-one", once = "healthy" }
"#;

fn own(node: &Node) -> PathBuf {
    node.run_dir().join("mainstay.sock")
}

fn ask(socket: &std::path::Path, method: &str, path: &str, body: &str) -> (u16, String) {
    let answer = http::unix(socket, method, path, body).expect("an answer");
    (answer.code, answer.body)
}

#[test]
fn every_request_is_answered_as_it_was() {
    let (node, port) = start(CONFIG);
    node.running("second");
    let socket = own(&node);
    for (method, path, body, code, text) in [
        ("GET", "/v3/ping", "", 200, "\n"),
        ("POST", "/v3/ping", "", 200, "\n"),
        ("POST", "/v3/environ", "{\"A\":\"1\",\"B\":null}", 200, "\n"),
        ("GET", "/v3/environ", "", 405, "Method Not Allowed\n"),
        ("POST", "/v3/environ", "{\"A\":1}", 422, ""),
        ("POST", "/v3/environ", "{", 422, ""),
        ("POST", "/v3/environ", "[]", 422, ""),
        ("POST", "/v3/environ", "{\"1\":\"x\"}", 400, ""),
        ("POST", "/v3/metric", "{\"orders_total\":1}", 200, "\n"),
        ("POST", "/v3/metric", "{\"orders_total\":\"2.5\"}", 200, "\n"),
        ("POST", "/v3/metric", "{\"orders\":1}", 400, ""),
        ("POST", "/v3/metric", "{\"orders_total\":\"many\"}", 400, ""),
        ("POST", "/v3/metric", "1", 422, ""),
        ("PUT", "/v3/metric", "{}", 405, "Method Not Allowed\n"),
        ("POST", "/v3/maintenance/enable", "", 200, "\n"),
        ("POST", "/v3/maintenance/disable", "", 200, "\n"),
        ("GET", "/v3/maintenance/enable", "", 405, "Method Not Allowed\n"),
        ("POST", "/v3/reload", "ignored", 200, "\n"),
        ("GET", "/v3/reload", "", 405, "Method Not Allowed\n"),
        ("POST", "/v3/elsewhere", "", 404, "404 page not found\n"),
    ] {
        let (got, said) = ask(&socket, method, path, body);
        assert_eq!(got, code, "{method} {path} {body}: {said}");
        assert!(text.is_empty() || said == text, "{method} {path} {body}: {said}");
    }
    let all = metrics(port);
    for (series, value) in [
        ("orders_total", 3.5),
        ("containerpilot_control_http_requests{code=\"200\",path=\"/v3/ping\"}", 2.0),
        ("containerpilot_control_http_requests{code=\"422\",path=\"/v3/environ\"}", 3.0),
        ("containerpilot_events{code=\"Startup\",source=\"global\"}", 1.0),
        ("containerpilot_events{code=\"EnterMaintenance\",source=\"global\"}", 1.0),
        ("containerpilot_events{code=\"StatusHealthy\",source=\"second\"}", 1.0),
    ] {
        assert_eq!(all.get(series), Some(value), "{series}");
    }
    assert_eq!(node.must(&["environ"]), "A=1\nB is unset\n");
}

#[test]
fn maintenance_and_an_invalid_file() {
    let (node, port) = start(CONFIG);
    let (socket, pid) = (own(&node), node.running("second"));
    ask(&socket, "POST", "/v3/maintenance/enable", "");
    assert_eq!(node.status()["state"], "maintenance");
    node.configure(&with_port(&CONFIG.replace("exec", "exce"), port));
    let (code, said) = ask(&socket, "POST", "/v3/reload", "");
    assert!(code == 422 && said.contains("did you mean 'exec'?"), "{code} {said}");
    assert_eq!((node.running("second"), &node.status()["state"]), (pid, &"maintenance".into()));
}

#[test]
fn jobs_are_given_its_variables() {
    let (node, _) = start(CONFIG);
    node.until_logged("first-one", &format!("pid {}", node.keeper()));
    let first = node.running("first-one");
    node.until_logged("second", &format!("{first} 10.1.2.3 10.1.2.3 A="));
    // Whoever starts while the other one does not run is not told of it.
    node.must(&["stop", "first-one"]);
    node.must(&["environ", "A=later"]);
    node.must(&["restart", "second"]);
    node.until_logged("second", "10.1.2.3 10.1.2.3 A=later");
}

#[test]
fn without_its_table_there_are_neither_its_variables_nor_its_series() {
    let (node, port) = start(&CONFIG.replace("[containerpilot]", ""));
    node.until_logged("first-one", "pid");
    node.until_logged("second", "10.1.2.3 A=");
    let all = metrics(port);
    assert!(!all.names().iter().any(|name| name.starts_with("containerpilot_")));
}

#[test]
fn its_socket_is_private_and_there_only_while_it_is_configured() {
    let scratch = mainstay_tests::Scratch::new();
    let socket = scratch.path().join("cp.sock");
    // Left over by somebody who is gone.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let table = format!("[containerpilot]\nsocket = \"{}\"\n", socket.display());
    let jobs = "[jobs.web]\nexec = \"sleep 1000\"\n";
    let mut node = Setup::config(with_port(&format!("{table}{jobs}"), 0)).start();
    let open = || until("it answers", || http::unix(&socket, "GET", "/v3/ping", "").ok());
    open();
    let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(ask(&socket, "GET", "/v1/status", "").0, 404, "nothing else is to be had there");
    node.kill_agent();
    open();
    node.must(&["reload"]);
    open();
    node.configure(&with_port(jobs, 0));
    node.must(&["reload"]);
    until("it is gone", || (!socket.exists()).then_some(()));
    node.configure(&with_port(&format!("{table}{jobs}"), 0));
    node.must(&["reload"]);
    open();
    node.must(&["shutdown"]);
    node.wait();
    assert!(!socket.exists());
}

#[test]
fn a_path_that_belongs_to_another_is_left_alone() {
    let scratch = mainstay_tests::Scratch::new();
    let file = scratch.path().join("precious");
    std::fs::write(&file, "text").expect("our own directory");
    let live = scratch.path().join("live");
    let listener = std::os::unix::net::UnixListener::bind(&live).expect("a socket");
    for (path, text) in [(&file, "no socket"), (&live, "another process listens there")] {
        let table = format!("[containerpilot]\nsocket = \"{}\"\n", path.display());
        let config = with_port(&format!("{table}[jobs.web]\nexec = \"sleep 1000\"\n"), 0);
        let node = Setup::config(config).start();
        node.running("web");
        node.until_told(text);
        until("status tells it", || {
            let error = node.status()["containerpilot"]["error"].clone();
            error.as_str().is_some_and(|error| error.contains(text)).then_some(())
        });
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it is still there"), "text");
    drop(listener);
}
