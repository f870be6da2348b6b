//! Several real nodes as one fleet: on loopback, or each on a host of its own.

mod apps;
mod cables;
mod elsewhere;
mod ends;
mod keys;
mod masters;
mod rollout;
mod twenty;
mod upgrade;
mod waves;
mod xmlrpc;

use mainstay_tests::{Network, Node, Scratch, Setup, Switch, proc, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// Real nodes that share a key, each on a machine of its own.
struct TestFleet {
    nodes: Vec<Node>,
    key: PathBuf,
    _scratch: Scratch,
}

impl TestFleet {
    /// `n1`, `n2`, … on loopback, all with these apps and jobs.
    fn launch(count: u32, jobs: &str) -> TestFleet {
        let addresses = own_addresses(count);
        let fleet = TestFleet::prepare(&addresses, "", jobs, |_, setup| setup.launch());
        fleet.nodes.iter().for_each(Node::wait_until_ready);
        fleet
    }

    /// As [`TestFleet::launch`]: each in a directory that is filled first, with these keys in
    /// `[fleet]` beside the usual ones.
    fn launch_with(count: u32, keys: &str, jobs: &str, fill: impl Fn(u8, &Path)) -> TestFleet {
        let addresses = own_addresses(count);
        let fleet = TestFleet::prepare(&addresses, keys, jobs, |n, setup| {
            let scratch = Scratch::new();
            fill(n, scratch.path());
            setup.launch_in(scratch)
        });
        fleet.nodes.iter().for_each(Node::wait_until_ready);
        fleet
    }

    /// `n1`, `n2`, … on the hosts of a network, with these keys in `[fleet]` beside the usual ones.
    fn launch_on(network: &Network, keys: &str, jobs: &str) -> TestFleet {
        let addresses: Vec<String> = network.hosts().map(Network::address).collect();
        let place = |n, setup| network.on(n, setup).launch();
        let fleet = TestFleet::prepare(&addresses, keys, jobs, place);
        fleet.nodes.iter().for_each(Node::wait_until_ready);
        fleet
    }

    fn prepare(
        addresses: &[String],
        keys: &str,
        jobs: &str,
        launch: impl Fn(u8, Setup) -> Node,
    ) -> TestFleet {
        let scratch = Scratch::new();
        let key = scratch.path().join("fleet.key");
        write_key(&key, &"5e".repeat(32));
        let roster: Vec<String> =
            addresses.iter().zip(1..).map(|(it, n)| format!("\"n{n}={it}:7071\"")).collect();
        let config = |n: u8| {
            format!(
                "[node]\nname = \"n{n}\"\nmachine = \"m{n}\"\n[fleet]\nnodes = [{}]\nkey_file = \
                 \"{}\"\n{keys}\n{jobs}",
                roster.join(", "),
                key.display()
            )
        };
        let numbers = (1..).take(addresses.len());
        let nodes = numbers.map(|n| launch(n, Setup::config(config(n)))).collect();
        TestFleet { nodes, key, _scratch: scratch }
    }

    /// Every node has met all others, and the fleet is in OPERATION.
    fn until_in_operation(&self) {
        for node in &self.nodes {
            until("the fleet is in OPERATION", || is_whole(node).then_some(()));
        }
    }
}

/// Tests run side by side, in one process or several: each has addresses of its own.
fn own_addresses(count: u32) -> Vec<String> {
    static FLEETS: AtomicU32 = AtomicU32::new(0);
    let (pid, fleet) = (std::process::id(), FLEETS.fetch_add(10, Ordering::Relaxed));
    let address = |n: u32| format!("127.{}.{}.{}", 1 + (pid >> 8 & 0x7f), pid & 0xff, fleet + n);
    (1..=count).map(address).collect()
}

fn write_key(path: &Path, text: &str) {
    fs::write(path, text).expect("a scratch directory can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our own file");
}

/// A network whose packets all arrive.
fn bridge(hosts: u8) -> Network {
    Network::new(hosts, Switch::Bridge)
}

fn status(node: &Node) -> Value {
    let text = node.must(&["fleet", "status", "--json"]);
    serde_json::from_str(&text).expect("--json prints JSON")
}

fn is_whole(node: &Node) -> bool {
    let fleet = status(node);
    let nodes = fleet["nodes"].as_array().expect("a list of nodes");
    fleet["state"] == "OPERATION" && nodes.iter().all(|it| it["state"] == "RUNNING")
}

/// Two jobs of an app that do not fit on one machine, and one of each node.
const SHOP: &str = r#"
    [apps.shop]
    on_failure = "restart-process"
    [jobs.db]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60 }
    [jobs.web]
    exec = "sleep 1000"
    app = "shop"
    place = { load = 60, start_sequence = 2 }
    [jobs.lone]
    exec = "sleep 1000"
    "#;

fn shop() -> TestFleet {
    TestFleet::launch(3, SHOP)
}

/// Three nodes with these apps and jobs.
fn fleet_of(jobs: &str) -> TestFleet {
    TestFleet::launch(3, jobs)
}

/// On how many nodes a job runs, of the list of `fleet status`; none, while one of them comes or goes.
fn homes(job: &Value) -> usize {
    let copies = job["copies"].as_array().cloned().unwrap_or_default();
    let at_rest = ["STOPPED", "EXITED", "FATAL"];
    let up =
        copies.iter().filter(|it| !at_rest.contains(&it["state"].as_str().unwrap_or_default()));
    let up: Vec<&Value> = up.collect();
    if up.iter().all(|it| it["state"] == "RUNNING") { up.len() } else { 0 }
}

/// Where a node sees a job run.
fn home(node: &Node, job: &str) -> Option<String> {
    let fleet = status(node);
    let job = fleet["jobs"].as_array()?.iter().find(|it| it["job"] == job)?.clone();
    let copy = job["copies"].as_array()?.first()?.clone();
    (copy["state"] == "RUNNING").then(|| copy["node"].as_str().unwrap_or_default().to_owned())
}

fn until_home(node: &Node, job: &str, expected: &str) {
    until(&format!("{job} runs on {expected}"), || {
        (home(node, job).as_deref() == Some(expected)).then_some(())
    });
}

/// As if its machine had lost its power.
fn kill(node: &Node) {
    let keeper = node.status()["keeper"]["pid"].as_u64().expect("a keeper answers");
    let keeper = u32::try_from(keeper).expect("a pid");
    let all = proc::children(keeper);
    signal(keeper, Signal::KILL);
    all.into_iter().for_each(|pid| signal(pid, Signal::KILL));
}

#[test]
fn an_app_runs_once_in_a_fleet_and_moves_when_its_node_is_killed() {
    let fleet = shop();
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "db", "n1");
    until_home(third, "web", "n2");
    for node in &fleet.nodes {
        assert_eq!(node.job("lone")["state"], "RUNNING", "a job without app is each node's own");
    }
    assert_eq!(third.job("web")["state"], "STOPPED", "it rests where it does not run");
    assert!(third.must(&["why", "web"]).contains("the fleet has it on n2"));
    kill(second);
    until_home(third, "web", "n3");
    // The master, too.
    kill(first);
    until("another master leads", || {
        let fleet: Value =
            serde_json::from_str(&third.must(&["fleet", "status", "--json"])).ok()?;
        (fleet["master"] == "n3").then_some(())
    });
    until("why says what is missing", || {
        let told = third.must(&["why", "db"]);
        told.contains("not placed: n3 is at 60 of 100").then_some(())
    });
}

#[test]
fn every_command_works_from_any_node() {
    let fleet = shop();
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "web", "n2");
    assert_eq!(third.must(&["stop", "web"]).trim(), "web: STOPPED on n2");
    assert_eq!(first.must(&["start", "web"]).trim(), "web: RUNNING on n2");
    assert_eq!(first.must(&["app", "move", "web", "--to", "n3"]).trim(), "web runs on n3");
    until_home(second, "web", "n3");
    second.must(&["fleet", "drain", "n3"]);
    until_home(second, "web", "n2");
    second.must(&["fleet", "undrain", "n3"]);
    // A second copy, by hand, and its end.
    third.must(&["start", "web", "--here"]);
    until("it is in conflict", || {
        let told = first.ask(&["conflicts"]);
        (told.status.code() == Some(3)).then_some(())
    });
    first.must(&["conciliate", "infanticide", "web"]);
    until("one copy is left", || first.ask(&["conflicts"]).status.success().then_some(()));
    until_home(first, "web", "n2");
    third.must(&["fleet", "shutdown"]);
    for mut node in fleet.nodes {
        assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    }
}

#[test]
fn a_new_agent_is_neither_a_loss_nor_a_new_node() {
    let fleet = shop();
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    until_home(third, "db", "n1");
    until_home(third, "web", "n2");
    let told = |node: &Node| {
        let all = node.must(&["events", "--json"]);
        let of_nodes =
            |line: &&str| line.contains("\"nodeLost\"") || line.contains("\"nodeJoined\"");
        all.lines().filter(of_nodes).count()
    };
    let (before, pids) = (told(third), [first.job("db"), second.job("web")]);
    // The master, and another one.
    for node in [first, first, second] {
        node.kill_agent();
        until("the new agent has its fleet", || {
            let fleet: Value =
                serde_json::from_str(&node.must(&["fleet", "status", "--json"])).ok()?;
            let all = fleet["nodes"].as_array()?.iter().all(|it| it["state"] == "RUNNING");
            (all && fleet["state"] == "OPERATION" && !fleet["master"].is_null()).then_some(())
        });
    }
    // What is asked for after that was answered after whatever the others had to say.
    assert_eq!(third.must(&["stop", "web"]).trim(), "web: STOPPED on n2");
    assert_eq!(told(third), before, "{}", third.must(&["events"]));
    assert_eq!(first.job("db")["pid"], pids[0]["pid"]);
}
