//! `/status` in the shape of ContainerPilot, and `/healthz`.

use super::{get, http, start};
use mainstay_tests::until;
use serde_json::{Value, json};

const CONFIG: &str = "[telemetry]
listen = \"127.0.0.1:PORT\"
[jobs.web]
exec = \"sleep 1000\"
[jobs.shy]
exec = \"sleep 1000\"
health = { exec = [\"test\", \"-e\", \"ready\"], interval = \"50ms\" }
";

#[test]
fn status_has_the_shape_that_containerpilot_has() {
    let (node, port) = start(CONFIG);
    node.running("web");
    node.until_health("shy", "unhealthy");
    let answer = get(port, "/status");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({
            "Version": env!("CARGO_PKG_VERSION"),
            "Jobs": [
                { "Name": "web", "Status": "healthy" },
                { "Name": "shy", "Status": "unhealthy" },
            ],
            "Services": null,
            "Watches": null,
        })
    );
    node.must(&["maintenance", "on"]);
    assert_eq!(get(port, "/status").json()["Jobs"][0]["Status"], "maintenance");
    assert_eq!(get(port, "/status").json()["Jobs"][1]["Status"], "maintenance");
    let refused = http::tcp(port, "POST /status HTTP/1.1\r\nHost: x\r\n\r\n").expect("an answer");
    assert_eq!((refused.code, refused.body.as_str()), (405, "Method Not Allowed\n"));
    assert_eq!(get(port, "/elsewhere").code, 404);
}

#[test]
fn what_is_announced_is_a_service_with_its_address() {
    let (_node, port) = start(
        "[telemetry]
        listen = \"127.0.0.1:PORT\"
        [discovery]
        engine = \"file\"
        dir = \"DIR/catalogue\"
        [watches.cache]
        service = \"redis\"
        [jobs.my-web]
        exec = [\"sh\", \"-c\", \"exec sleep 1000\"]
        advertise = { port = 8080, interfaces = [\"static:10.1.2.3\"] }",
    );
    let status = get(port, "/status").json();
    let service = &status["Services"][0];
    assert_eq!(
        (&service["Name"], &service["Address"], &service["Port"]),
        (&json!("my-web"), &json!("10.1.2.3"), &json!(8080))
    );
    assert_eq!(status["Jobs"], Value::Null);
    assert_eq!(status["Watches"], json!(["cache"]));
    super::until_value(port, "mainstay_watch_instances{watch=\"cache\"}", 0.0);
}

#[test]
fn healthz_names_the_jobs_that_are_not_well() {
    let (node, port) = start(CONFIG);
    node.running("web");
    node.until_health("shy", "unhealthy");
    let answer = get(port, "/healthz");
    assert_eq!(answer.code, 503);
    let shy = json!({ "name": "shy", "state": "RUNNING", "health": "unhealthy" });
    assert_eq!(answer.json(), json!({ "ok": false, "state": "running", "jobs": [shy] }));
    assert_eq!(get(port, "/healthz?job=web").code, 200);
    assert_eq!(get(port, "/healthz?job=shy").code, 503);
    assert_eq!(get(port, "/healthz?job=none").code, 404);
    assert_eq!(get(port, "/healthz?jobs=web").code, 400);
    std::fs::write(node.path().join("ready"), "").expect("our own directory");
    until("everything is well", || (get(port, "/healthz").code == 200).then_some(()));
    // What a user has stopped is as desired.
    node.must(&["stop", "web"]);
    assert_eq!(get(port, "/healthz").code, 200);
}
