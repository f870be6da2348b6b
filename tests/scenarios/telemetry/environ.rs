//! Variables for whatever is started from now on.

use super::http;
use mainstay_tests::{Node, Setup, until};
use serde_json::json;

const CONFIG: &str = r#"
[node]
exit = "never"
[jobs.show]
exec = ["sh", "-c", "echo A=$A INHERITED=$INHERITED OWN=$OWN; exec sleep 1000"]
env = { OWN = "mine" }
[jobs.other]
exec = "sleep 1000"
"#;

fn start() -> Node {
    Setup::config(CONFIG).env("INHERITED", "kept").start()
}

fn shows(node: &Node, line: &str) {
    node.must(&["restart", "show"]);
    node.until_logged("show", line);
}

#[test]
fn later_starts_have_it_and_nothing_is_restarted() {
    let node = start();
    node.until_logged("show", "A= INHERITED=kept OWN=mine");
    let (show, other) = (node.running("show"), node.running("other"));
    node.must(&["environ", "A=1 2=3", "OWN=theirs", "--unset", "INHERITED"]);
    assert_eq!((node.running("show"), node.running("other")), (show, other));
    shows(&node, "A=1 2=3 INHERITED= OWN=mine");
    assert_eq!(node.must(&["environ"]), "A=1 2=3\nINHERITED is unset\nOWN=theirs\n");
    node.must(&["environ", "INHERITED=back", "--unset", "A"]);
    shows(&node, "A= INHERITED=back OWN=mine");
}

#[test]
fn it_outlives_the_agent_and_an_upgrade() {
    let node = start();
    node.must(&["environ", "A=first"]);
    node.kill_agent();
    shows(&node, "A=first INHERITED=kept OWN=mine");
    node.must(&["upgrade"]);
    node.wait_until_ready();
    node.must(&["restart", "other"]);
    node.kill_agent();
    let answer = node.must(&["environ", "--json"]);
    assert_eq!(answer.trim(), "{\"A\":\"first\"}");
}

#[test]
fn a_reload_sees_it_and_tasks_have_it() {
    let node = start();
    let config = CONFIG.replace("OWN = \"mine\"", "OWN = \"${GIVEN:-none}\"")
        + "health = { exec = [\"sh\", \"-c\", \"test \\\"$A\\\" = yes\"], interval = \"50ms\" }\n";
    node.configure(&config);
    node.must(&["environ", "GIVEN=by-a-user"]);
    node.must(&["reload"]);
    node.until_logged("show", "A= INHERITED=kept OWN=by-a-user");
    node.until_health("other", "unhealthy");
    node.must(&["environ", "A=yes"]);
    node.until_health("other", "healthy");
}

#[test]
fn what_cannot_be_a_variable_is_refused_as_a_whole() {
    let node = start();
    let socket = node.run_dir().join("mainstay.sock");
    let put = |body: &str| http::unix(&socket, "PUT", "/v1/environ", body).expect("an answer");
    let long = json!({ "A": "x".repeat(70_000) }).to_string();
    for body in [
        "{\"GOOD\":\"1\",\"1A\":\"x\"}",
        "{\"GOOD\":\"1\",\"A=B\":\"x\"}",
        "{\"GOOD\":\"1\",\"\":\"x\"}",
        "{\"GOOD\":\"1\",\"A\":\"x\\u0000y\"}",
        "{\"GOOD\":\"1\",\"A\":5}",
        "[]",
        long.as_str(),
    ] {
        let answer = put(body);
        assert_eq!(answer.code, 400, "{}: {}", &body[..body.len().min(80)], answer.body);
    }
    let answer = http::unix(&socket, "GET", "/v1/environ", "").expect("an answer");
    assert_eq!(answer.json(), json!({}));
    let output = node.ask(&["environ", "NAME"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("write NAME=VALUE, or --unset NAME"), "{said}");
    until("it still answers", || (put("{\"GOOD\":null}").code == 200).then_some(()));
}

#[test]
fn over_the_network_it_can_be_changed_and_not_read() {
    let port = super::free_port();
    let api = format!("[api]\nlisten = \"127.0.0.1:{port}\"\ninsecure = true\n");
    let node = Setup::config(format!("{CONFIG}{api}")).start();
    let host = format!("Host: 127.0.0.1:{port}\r\nConnection: close\r\n");
    let body = "{\"A\":\"hush\"}";
    let head = format!("PUT /v1/environ HTTP/1.1\r\n{host}Content-Length: {}\r\n\r\n", body.len());
    let put = until("the API answers", || http::tcp(port, &format!("{head}{body}")).ok());
    assert_eq!((put.code, put.json()), (200, json!({ "changed": ["A"] })));
    let shown = http::tcp(port, &format!("GET /v1/environ HTTP/1.1\r\n{host}\r\n"));
    let shown = shown.expect("an answer");
    assert_eq!(shown.code, 403, "{}", shown.body);
    assert!(!shown.body.contains("hush"), "{}", shown.body);
    assert_eq!(node.must(&["environ"]), "A=hush\n");
}
