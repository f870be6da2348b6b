//! Consul is killed, frozen, forgets: jobs and checks go on, and everything comes back by itself.

use super::{start, until_absent, until_standing, watch};
use mainstay_tests::{Consul, until};
use std::fs;

const WEB: &str = r#"
    [jobs.web]
    exec = ["sleep", "1000"]
    health = { exec = ["sh", "-c", "echo tick >> ticks"], interval = "1s" }
    advertise = { port = 80, interfaces = "static:127.0.0.1", ttl = "10s", heartbeat = "500ms" }
    [watches.cache]
    interval = "2s"
"#;

fn trouble(node: &mainstay_tests::Node) -> Option<String> {
    node.status()["discovery"]["trouble"].as_str().map(str::to_owned)
}

#[test]
fn what_a_killed_consul_has_forgotten_comes_back_with_it() {
    let mut consul = Consul::new();
    let node = start(&consul, WEB);
    until_standing(&consul, "web", "web-here", "passing");
    until("an answer", || (watch(&node, "cache")["state"] == "unhealthy").then_some(()));
    let pid = node.running("web");
    consul.kill();
    let told = until("status says so", || trouble(&node));
    assert!(node.must(&["status"]).contains(&told), "people see it, too");
    let before = fs::read_to_string(node.path().join("ticks")).expect("ticks").lines().count();
    until("checks go on", || {
        let ticks = fs::read_to_string(node.path().join("ticks")).ok()?;
        (ticks.lines().count() >= before + 3).then_some(())
    });
    consul.again();
    until_standing(&consul, "web", "web-here", "passing");
    consul.register("cache-1", "cache", 6379, &[]);
    until("the watch is answered again", || {
        (watch(&node, "cache")["instances"] == 1).then_some(())
    });
    until("all is well", || trouble(&node).is_none().then_some(()));
    assert_eq!(node.running("web"), pid);
    assert_eq!(node.job("web")["health"], "healthy");
}

#[test]
fn an_entry_that_somebody_removes_comes_back() {
    let consul = Consul::new();
    let _node = start(&consul, WEB);
    until_standing(&consul, "web", "web-here", "passing");
    consul.deregister("web-here");
    until_standing(&consul, "web", "web-here", "passing");
}

#[test]
fn while_consul_is_frozen_no_tick_is_lost_and_a_stop_waits_a_second_at_most() {
    let consul = Consul::new();
    let node = start(&consul, WEB);
    until_standing(&consul, "web", "web-here", "passing");
    consul.freeze();
    let ticks = || {
        let text = fs::read_to_string(node.path().join("ticks")).expect("ticks");
        text.lines().count()
    };
    let mut events = node.events();
    let (before, begun) = (ticks(), std::time::Instant::now());
    until("five more ticks", || (ticks() >= before + 5).then_some(()));
    // One a second: neither piled up nor left out.
    let (ticked, seconds) = (ticks() - before, begun.elapsed().as_secs());
    let seconds = usize::try_from(seconds).expect("a few");
    assert!((seconds.saturating_sub(1)..=seconds + 2).contains(&ticked), "{ticked} in {seconds} s");
    node.must(&["stop", "web"]);
    let stopping = events.wait_for("web", "stopping");
    let stopped = events.wait_for("web", "stopped");
    assert!(stopping["seq"].as_u64() < stopped["seq"].as_u64());
    node.must(&["start", "web"]);
    consul.thaw();
    until_standing(&consul, "web", "web-here", "passing");
}

#[test]
fn without_any_consul_everything_starts_and_ends_as_if_nobody_had_asked_for_it() {
    let mut consul = Consul::new();
    consul.kill();
    let mut node = start(&consul, WEB);
    node.until_health("web", "healthy");
    until("status says so", || trouble(&node));
    node.must(&["shutdown"]);
    assert!(node.wait().success());
}

#[test]
fn what_is_told_without_an_answer_does_not_hold_up_a_removal() {
    let consul = Consul::new();
    // No heartbeat comes, and the entry does not lapse, in the time of this test.
    let mut node = start(
        &consul,
        r#"
        [jobs.web]
        exec = ["sleep", "1000"]
        health = { exec = ["test", "!", "-e", "ill"], interval = "200ms" }
        advertise = { port = 80, interfaces = "static:127.0.0.1", ttl = "2h", heartbeat = "1h" }
        "#,
    );
    until_standing(&consul, "web", "web-here", "passing");
    let mut events = node.events();
    consul.freeze();
    fs::write(node.path().join("ill"), "").expect("a scratch directory can be written");
    events.wait_for("web", "unhealthy");
    node.must(&["shutdown"]);
    assert!(node.wait().success());
    // The removal was asked for before the node ended, and is done now.
    consul.thaw();
    until_absent(&consul, "web-here");
}

#[test]
fn an_entry_that_an_agent_left_behind_the_next_one_removes() {
    let consul = Consul::new();
    let node = start(&consul, WEB);
    until_standing(&consul, "web", "web-here", "passing");
    node.must(&["stop", "web"]);
    until_absent(&consul, "web-here");
    // As if Consul had been away when the job stopped, and the agent had died before it was back.
    consul.register("web-here", "web", 80, &[]);
    node.kill_agent();
    until_absent(&consul, "web-here");
}
