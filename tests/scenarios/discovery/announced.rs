//! From healthy to registered, and out again before anything ends.

use super::{start, until_absent, until_standing, with_consul};
use mainstay_tests::{Consul, Node, Scratch, Setup, until};
use std::fs;

const WEB: &str = r#"
    [jobs.web]
    exec = ["sleep", "1000"]
    health = { name = "there", exec = "test -e well", interval = "100ms" }
    advertise = { port = 8080, tags = ["v2"], meta = { rack = "7" }, interfaces = "static:127.0.0.9", ttl = "10s", heartbeat = "1s" }
"#;

#[test]
fn a_job_is_announced_once_it_is_healthy_and_failing_at_once_when_it_is_not() {
    let consul = Consul::new();
    let node = start(&consul, WEB);
    node.until_health("web", "unhealthy");
    assert_eq!(consul.get("/v1/agent/services").as_object().map(serde_json::Map::len), Some(0));

    fs::write(node.path().join("well"), "").expect("written");
    until_standing(&consul, "web", "web-here", "passing");
    let service = consul.get("/v1/agent/service/web-here");
    assert_eq!(service["Service"], "web");
    assert_eq!(service["Address"], "127.0.0.9");
    assert_eq!((&service["Port"], &service["Tags"][0]), (&8080.into(), &"v2".into()));
    assert_eq!(service["Meta"]["rack"], "7");

    fs::remove_file(node.path().join("well")).expect("removed");
    let note = until_standing(&consul, "web", "web-here", "critical");
    assert!(note.starts_with("there: "), "{note}");
    fs::write(node.path().join("well"), "").expect("written");
    until_standing(&consul, "web", "web-here", "passing");
}

#[test]
fn a_stop_is_known_to_others_before_the_signal_comes() {
    let consul = Consul::new();
    // At its signal the job looks whether it is still announced.
    const LOOK: &str = r#"
        look() {
            exec 3<> "/dev/tcp/127.0.0.1/$1"
            printf 'GET /v1/agent/services HTTP/1.0\r\n\r\n' >&3
            cat <&3 > found
            exit 0
        }
        trap "look $1" TERM
        sleep 1000 &
        wait
    "#;
    let port = consul.address();
    let port = port.rsplit_once(':').map_or("", |(_, port)| port);
    let config = format!(
        r#"
        [jobs.web]
        exec = ["bash", "look", "{port}"]
        advertise = {{ port = 80, interfaces = "static:127.0.0.1" }}
        [jobs.drain]
        exec = "true"
        when = {{ source = "web", once = "stopping" }}
        "#
    );
    let scratch = Scratch::new();
    fs::write(scratch.path().join("look"), LOOK).expect("written");
    let node = Setup::config(with_consul(&consul, &config)).launch_in(scratch);
    node.wait_until_ready();
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["stop", "web"]);
    assert!(found(&node).ends_with("{}"), "{}", found(&node));
    until_absent(&consul, "web-here");
    node.must(&["start", "web"]);
    until_standing(&consul, "web", "web-here", "passing");
    // The end of the node is no different.
    fs::remove_file(node.path().join("found")).expect("removed");
    node.must(&["shutdown"]);
    assert!(found(&node).ends_with("{}"), "{}", found(&node));
}

fn found(node: &Node) -> String {
    let text = fs::read_to_string(node.path().join("found")).expect("it looked at its signal");
    text.trim().to_owned()
}

#[test]
fn maintenance_removes_and_its_end_brings_back() {
    let consul = Consul::new();
    let node = start(&consul, WEB);
    fs::write(node.path().join("well"), "").expect("written");
    until_standing(&consul, "web", "web-here", "passing");
    let pid = node.running("web");
    node.must(&["maintenance", "on"]);
    until_absent(&consul, "web-here");
    // Whoever decides meanwhile.
    node.kill_agent();
    assert_eq!(node.status()["state"], "maintenance");
    assert!(consul.get("/v1/agent/services").get("web-here").is_none());
    node.must(&["maintenance", "off"]);
    until_standing(&consul, "web", "web-here", "passing");
    assert_eq!(node.running("web"), pid);
}

#[test]
fn an_agent_that_dies_is_followed_by_one_that_goes_on_announcing() {
    let consul = Consul::new();
    let node = start(&consul, WEB);
    fs::write(node.path().join("well"), "").expect("written");
    until_standing(&consul, "web", "web-here", "passing");
    node.kill_agent();
    consul.deregister("web-here");
    until_standing(&consul, "web", "web-here", "passing");
    fs::remove_file(node.path().join("well")).expect("removed");
    until_standing(&consul, "web", "web-here", "critical");
}

#[test]
fn a_crash_is_failing_until_the_job_is_back_and_giving_up_removes_it() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [jobs.web]
        exec = ["sleep", "1000"]
        restart = { on = "failure", delay = "1h", limit = 1 }
        advertise = { port = 80, interfaces = "static:127.0.0.1" }
        "#,
    );
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["signal", "KILL", "web"]);
    let note = until_standing(&consul, "web", "web-here", "critical");
    assert!(note.contains("SIGKILL"), "{note}");
    node.must(&["start", "web"]);
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["disable", "web"]);
    until_absent(&consul, "web-here");
}

#[test]
fn a_reload_changes_what_is_announced_and_nothing_else() {
    let consul = Consul::new();
    let config = |advertise: &str| {
        format!(
            "[jobs.web]\nexec = [\"sleep\", \"1000\"]\n{advertise}\n[jobs.still]\nexec = [\"sleep\", \"1000\"]"
        )
    };
    let node = start(&consul, &config(""));
    let pid = node.running("web");
    assert!(node.job("web").get("announced").is_none());
    let to = |advertise: &str| {
        node.configure(&with_consul(&consul, &config(advertise)));
        node.must(&["reload"]);
        assert_eq!(node.running("web"), pid);
    };
    to("advertise = { port = 80, interfaces = \"static:127.0.0.1\", id = \"one\" }");
    until_standing(&consul, "web", "one", "passing");
    to("advertise = { port = 81, interfaces = \"static:127.0.0.1\", id = \"two\" }");
    until_standing(&consul, "web", "two", "passing");
    until_absent(&consul, "one");
    assert_eq!(consul.get("/v1/agent/service/two")["Port"], 81);
    to("");
    until_absent(&consul, "two");
}

#[test]
fn a_job_without_a_command_is_announced_and_one_without_a_port_never() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [jobs.outside]
        advertise = { port = 5432, service = "db", interfaces = "static:127.0.0.1", initial_status = "warning" }
        health = { exec = "test -e well", interval = "100ms", start_period = "1h" }
        [jobs.inside]
        exec = ["sleep", "1000"]
        "#,
    );
    until_standing(&consul, "db", "outside-here", "warning");
    fs::write(node.path().join("well"), "").expect("written");
    until_standing(&consul, "db", "outside-here", "passing");
    node.until_health("inside", "healthy");
    assert_eq!(consul.get("/v1/agent/services").as_object().map(serde_json::Map::len), Some(1));
    node.must(&["stop", "outside"]);
    until_absent(&consul, "outside-here");
}

#[test]
fn a_job_that_ends_by_itself_is_removed_even_if_the_node_ends_with_it() {
    let consul = Consul::new();
    let config = with_consul(
        &consul,
        "[jobs.web]\nexec = [\"sh\", \"-c\", \"until test -e end; do sleep 0.1; done\"]\n\
         advertise = { port = 80, interfaces = \"static:127.0.0.1\" }",
    );
    let config = config.replace("exit = \"never\"", "exit = \"all\"");
    let mut node = Setup::config(config).start();
    until_standing(&consul, "web", "web-here", "passing");
    fs::write(node.path().join("end"), "").expect("written");
    assert!(node.wait().success());
    until_absent(&consul, "web-here");
}

#[test]
fn an_address_that_the_host_does_not_have_is_told() {
    let consul = Consul::new();
    let node = start(
        &consul,
        r#"
        [jobs.web]
        exec = ["sleep", "1000"]
        advertise = { port = 80, interfaces = ["nonesuch0", "203.0.113.0/24"] }
        "#,
    );
    let trouble = until("it is told", || {
        let job = node.job("web");
        job["announced"]["trouble"].as_str().map(str::to_owned)
    });
    assert!(trouble.contains("nonesuch0") && trouble.contains("127.0.0.1"), "{trouble}");
    assert!(node.must(&["status"]).contains("nonesuch0"));
}
