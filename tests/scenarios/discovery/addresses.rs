//! Addresses that come, change and go while jobs are announced: in a network of the test's own.

use mainstay_tests::{Node, Setup, needs, needs_root, until};
use serde_json::Value;
use std::{fs, process::Command};

const CONFIG: &str = r#"
    [node]
    name = "here"
    exit = "never"
    [discovery]
    engine = "file"
    dir = "shelf"
    [jobs.web]
    exec = ["sleep", "1000"]
    advertise = { port = 80, interfaces = ["nonesuch0", "203.0.113.0/24"], heartbeat = "1s" }
"#;

fn start() -> Node {
    needs_root();
    needs("ip");
    needs("nsenter");
    Setup::config(CONFIG).after("ip link set lo up").under(&["unshare", "--net"]).start()
}

/// In the network of the node.
fn ip(node: &Node, words: &[&str]) {
    let keeper = node.keeper().to_string();
    let done = Command::new("nsenter").args(["-t", &keeper, "-n", "ip"]).args(words).output();
    let done = done.expect("nsenter is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn announced(node: &Node) -> Option<String> {
    let text = fs::read(node.path().join("shelf/web.json")).ok()?;
    let entries: Value = serde_json::from_slice(&text).ok()?;
    Some(entries[0]["address"].as_str()?.to_owned())
}

fn until_announced(node: &Node, address: &str) {
    until(&format!("{address} is announced"), || {
        (announced(node).as_deref() == Some(address)).then_some(())
    });
}

fn trouble(node: &Node) -> Option<String> {
    node.job("web")["announced"]["trouble"].as_str().map(str::to_owned)
}

#[test]
fn an_address_that_comes_late_is_found() {
    let node = start();
    let trouble = until("it is told", || trouble(&node));
    assert!(trouble.contains("nonesuch0") && trouble.contains("127.0.0.1"), "{trouble}");
    ip(&node, &["address", "add", "203.0.113.7/24", "dev", "lo"]);
    until_announced(&node, "203.0.113.7");
}

#[test]
fn a_reload_announces_the_address_that_there_is_by_then() {
    let node = start();
    ip(&node, &["address", "add", "203.0.113.7/24", "dev", "lo"]);
    until_announced(&node, "203.0.113.7");
    let pid = node.running("web");
    ip(&node, &["address", "del", "203.0.113.7/24", "dev", "lo"]);
    ip(&node, &["address", "add", "203.0.113.8/24", "dev", "lo"]);
    node.must(&["reload"]);
    until_announced(&node, "203.0.113.8");
    ip(&node, &["address", "del", "203.0.113.8/24", "dev", "lo"]);
    node.must(&["reload"]);
    until("it is not announced at all", || announced(&node).is_none().then_some(()));
    until("that is told", || trouble(&node));
    assert_eq!(node.running("web"), pid);
}

#[test]
fn what_an_earlier_agent_announced_goes_with_its_address() {
    let node = start();
    ip(&node, &["address", "add", "203.0.113.7/24", "dev", "lo"]);
    until_announced(&node, "203.0.113.7");
    ip(&node, &["address", "del", "203.0.113.7/24", "dev", "lo"]);
    node.kill_agent();
    until("it is not announced any more", || announced(&node).is_none().then_some(()));
}
