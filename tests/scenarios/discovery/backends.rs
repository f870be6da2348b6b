//! Other ways to discovery: a directory, a token, TLS; and from one to another.

use super::{until_absent, until_standing, watch};
use mainstay_tests::{Consul, Scratch, Setup, until};
use serde_json::json;
use std::fs;

#[test]
fn two_nodes_find_each_other_in_a_directory() {
    let shared = Scratch::new();
    let config = |name: &str, rest: &str| {
        format!(
            "[node]\nname = \"{name}\"\nexit = \"never\"\n[discovery]\nengine = \"file\"\n\
             dir = \"{}\"\n{rest}",
            shared.path().display()
        )
    };
    let web = "[jobs.web]\nexec = [\"sleep\", \"1000\"]\n\
               advertise = { port = 80, interfaces = \"static:127.0.0.1\", ttl = \"2s\", heartbeat = \"500ms\" }";
    let one = Setup::config(config("one", web)).start();
    let two = Setup::config(config(
        "two",
        "[watches.web]\ninterval = \"1s\"\n[jobs.app]\nexec = [\"sleep\", \"1000\"]\nwhile = { source = \"watch.web\" }",
    ))
    .start();
    two.running("app");
    assert_eq!(watch(&two, "web")["instances"], 1);
    one.must(&["stop", "web"]);
    two.until_state("app", "STOPPED");
    one.must(&["start", "web"]);
    two.running("app");
    // A node that is killed is missed when its heartbeats are.
    let (keeper, agent) = (one.keeper(), one.agent());
    mainstay_tests::signal(agent, rustix::process::Signal::STOP);
    mainstay_tests::signal(keeper, rustix::process::Signal::KILL);
    two.until_state("app", "STOPPED");
    mainstay_tests::signal(agent, rustix::process::Signal::CONT);
}

#[test]
fn a_token_is_used_and_shown_nowhere() {
    const TOKEN: &str = "c2a5cbf5-9f0b-4b39-a5d2-6a31a8d9d3e1";
    let acl = json!({ "acl": { "enabled": true, "default_policy": "deny", "tokens": { "master": TOKEN, "agent": TOKEN } } });
    let consul = Consul::with(&acl, Some(TOKEN));
    let config = |token: &str| {
        format!(
            "[node]\nname = \"here\"\nexit = \"never\"\n[discovery]\nengine = \"consul\"\n\
             address = \"{}\"\n{token}\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n\
             advertise = {{ port = 80, interfaces = \"static:127.0.0.1\" }}",
            consul.address()
        )
    };
    let node = Setup::config(config("")).start();
    let trouble =
        until("it is told", || node.status()["discovery"]["trouble"].as_str().map(str::to_owned));
    assert!(trouble.contains("403"), "{trouble}");
    fs::write(node.path().join("token"), format!("{TOKEN}\n")).expect("written");
    node.configure(&config("token = \"${file:token}\""));
    node.must(&["reload"]);
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["reload"]);
    for shown in [node.status().to_string(), node.stderr(), node.must(&["plan"])] {
        assert!(!shown.contains(TOKEN), "{shown}");
    }
}

#[test]
fn another_catalogue_is_told_and_the_first_one_forgets() {
    let (first, second) = (Consul::new(), Consul::new());
    let web = "[jobs.web]\nexec = [\"sleep\", \"1000\"]\nadvertise = { port = 80, interfaces = \"static:127.0.0.1\" }";
    let node = super::start(&first, web);
    until_standing(&first, "web", "web-here", "passing");
    let pid = node.running("web");
    node.configure(&super::with_consul(&second, web));
    node.must(&["reload"]);
    until_standing(&second, "web", "web-here", "passing");
    until_absent(&first, "web-here");
    assert_eq!(node.running("web"), pid);
}

#[test]
fn another_token_removes_nothing() {
    let consul = Consul::new();
    // No heartbeat of the test's time would bring it back.
    let web = "[jobs.web]\nexec = [\"sleep\", \"1000\"]\n\
               advertise = { port = 80, interfaces = \"static:127.0.0.1\", heartbeat = \"1h\", ttl = \"2h\" }";
    let config = |token: &str| {
        let table = format!("engine = \"consul\"\n{token}");
        super::with_consul(&consul, web).replace("engine = \"consul\"", &table)
    };
    let node = Setup::config(config("")).start();
    until_standing(&consul, "web", "web-here", "passing");
    let here = || consul.get("/v1/agent/services").get("web-here").is_some();
    for n in 0..20 {
        node.configure(&config(&format!("token = \"t{n}\"")));
        node.must(&["reload"]);
        assert!(here(), "it is gone after reload {n}");
    }
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["stop", "web"]);
    until_absent(&consul, "web-here");
}
