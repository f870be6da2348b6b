//! What can be asked about what is rolled out; each answer is held against the description.

use crate::driven::Node;
use serde_json::Value;
use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

const CONFIG: &str = r#"
[profiles.app]
source = "file"
path = "app.json"
[templates.conf]
src = "conf.j2"
dst = "out.conf"
profiles = ["app"]
[jobs.web]
exec = "web"
"#;

fn put(dir: &Path, port: u16) {
    let (new, place) = (dir.join("app.json.new"), dir.join("app.json"));
    fs::write(&new, format!(r#"{{"port": {port}}}"#)).expect("written");
    fs::rename(new, place).expect("renamed");
}

fn rolled_out() -> Node {
    let node = Node::with(|dir| {
        fs::write(dir.join("conf.j2"), "port = {{ app.port }}\n").expect("written");
        put(dir, 80);
        CONFIG.to_owned()
    });
    until(&node, |rollout| rollout["state"] == "running" && rollout["doing"].is_null());
    node
}

fn until(node: &Node, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (_, rollout) = node.get("/v1/rollout");
        if wanted(&rollout) {
            return rollout;
        }
        assert!(Instant::now() < deadline, "{rollout}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_route_of_a_rollout_answers_as_it_is_described() {
    let node = rolled_out();
    let (status, done) = node.post("/v1/rollout/pause", "");
    assert_eq!((status, &done["paused"]), (200, &Value::Bool(true)));
    put(&node.0, 81);
    let (status, plan) = node.get("/v1/rollout/plan?profile=app");
    assert_eq!((status, plan["changed"][0].as_str()), (200, Some("app")), "{plan}");
    assert!(plan["files"][0]["difference"].as_str().is_some_and(|it| it.contains("+port = 81")));
    assert_eq!(node.post("/v1/rollout/resume", "").0, 200);
    until(&node, |rollout| rollout["profiles"][0]["history"][0].is_object());
    until(&node, |rollout| rollout["state"] == "running" && rollout["doing"].is_null());
    let (status, done) = node.post("/v1/rollout/refresh", r#"{"profile": "app"}"#);
    assert_eq!((status, done["applied"].as_array().map(Vec::len)), (200, Some(0)), "{done}");
    let (status, diff) = node.get("/v1/rollout/diff?profile=app");
    assert_eq!(status, 200, "{diff}");
    let (status, done) = node.post("/v1/rollout/rollback", r#"{"profile": "app"}"#);
    assert_eq!((status, done["applied"][0]["profile"].as_str()), (200, Some("app")), "{done}");
    assert_eq!(fs::read_to_string(node.0.join("out.conf")).expect("a file"), "port = 80\n");
    let (status, history) = node.get("/v1/rollout/history");
    assert_eq!(status, 200);
    assert!(history["profiles"][0]["refused"].is_object(), "{history}");
    let (status, why) = node.get("/v1/rollout/why/profile.app");
    assert_eq!((status, why["subject"].as_str()), (200, Some("profile.app")));
    let (status, whole) = node.get("/v1/status");
    assert_eq!((status, whole["rollout"]["state"].as_str()), (200, Some("running")));
}

#[test]
fn what_cannot_be_asked_of_a_rollout_is_a_problem() {
    let node = rolled_out();
    for (method, path, body, wanted) in [
        ("GET", "/v1/rollout/plan?profile=none", "", 404),
        ("GET", "/v1/rollout/diff?version=x", "", 400),
        ("GET", "/v1/rollout/diff?profile=app&version=x", "", 404),
        ("GET", "/v1/rollout/why/job.web", "", 404),
        ("GET", "/v1/rollout/why/profile.none", "", 404),
        ("GET", "/v1/rollout?x=1", "", 400),
        ("POST", "/v1/rollout/refresh", r#"{"profile": "none"}"#, 404),
        ("POST", "/v1/rollout/refresh", r#"{"everything": true}"#, 400),
        ("POST", "/v1/rollout/refresh?wait=soon", "", 400),
        ("POST", "/v1/rollout/rollback", "", 400),
        ("POST", "/v1/rollout/rollback", r#"{"profile": "app"}"#, 409),
        ("GET", "/v1/rollout/pause", "", 405),
    ] {
        let (status, problem) = match method {
            "GET" => node.get(path),
            _ => node.post(path, body),
        };
        assert_eq!(status, wanted, "{method} {path}: {problem}");
        assert!(problem["detail"].is_string(), "{problem}");
    }
    let without = Node::start();
    assert_eq!(without.get("/v1/rollout").0, 404);
    assert_eq!(without.post("/v1/rollout/refresh", "").0, 404);
}
