//! Nodes whose cables are cut, work one way, come and go; packets that get lost; nodes that stand
//! still; a disk that was copied.

use super::{SHOP, TestFleet, bridge, home, is_whole, kill, status, until_home};
use mainstay_tests::{Network, Node, Scratch, Setup, Switch, signal, until};
use rustix::process::Signal;
use std::{path::Path, process::Command, time::Duration};

/// Nobody has to say which of two copies stays.
const ONE_STAYS: &str = "conciliation = \"infanticide\"";

/// How a node sees another one.
fn seen(node: &Node, name: &str) -> String {
    let fleet = status(node);
    let nodes = fleet["nodes"].as_array().expect("a list of nodes");
    let of_name = nodes.iter().find(|it| it["name"] == name).expect("it is in the roster");
    of_name["state"].as_str().unwrap_or_default().to_owned()
}

fn until_seen(node: &Node, name: &str, state: &str) {
    until(&format!("{name} is {state}"), || (seen(node, name) == state).then_some(()));
}

/// All nodes take part, have one master, and one copy of each job of the shop.
fn until_as_one(fleet: &TestFleet) {
    fleet.until_in_operation();
    until("all agree on a master", || {
        let masters: Vec<_> = fleet.nodes.iter().map(|it| status(it)["master"].clone()).collect();
        masters.iter().all(|it| *it == masters[0] && it.is_string()).then_some(())
    });
    for node in &fleet.nodes {
        until("every job has one home", || {
            let fleet = status(node);
            let jobs = fleet["jobs"].as_array()?.clone();
            let once = |it: &serde_json::Value| super::homes(it) == 1;
            jobs.iter().all(once).then_some(())
        });
        assert!(node.ask(&["conflicts"]).status.success(), "{}", node.must(&["fleet", "status"]));
    }
    // What the fleet says is what runs: each job in one place.
    for job in ["db", "web"] {
        let homes = fleet.nodes.iter().filter(|it| it.job(job)["state"] == "RUNNING");
        assert_eq!(homes.count(), 1, "{job}");
    }
}

/// The shop on three hosts: db on n1, web on n2.
fn shop_on(network: &Network) -> TestFleet {
    let fleet = TestFleet::launch_on(network, ONE_STAYS, SHOP);
    fleet.until_in_operation();
    until_home(&fleet.nodes[2], "db", "n1");
    until_home(&fleet.nodes[2], "web", "n2");
    fleet
}

#[test]
fn a_cut_cable_is_a_loss_and_one_copy_stays_when_it_heals() {
    let network = bridge(3);
    let fleet = shop_on(&network);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    let pid = second.running("web");
    network.cut(2);
    until_home(first, "web", "n3");
    until_seen(second, "n1", "SILENT");
    assert_eq!(second.running("web"), pid, "whoever is cut off goes on");
    until("it leads what it sees", || (status(second)["master"] == "n2").then_some(()));
    assert!(third.must(&["why", "web"]).contains("web is RUNNING"));
    network.heal(2);
    until_as_one(&fleet);
    assert_eq!(status(first)["master"], "n1");
}

#[test]
fn a_cut_cable_of_the_master_gives_the_others_a_master() {
    let network = bridge(3);
    let fleet = shop_on(&network);
    let [_, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    network.cut(1);
    until("the others have a master", || (status(third)["master"] == "n2").then_some(()));
    until_home(third, "db", "n3");
    assert_eq!(second.must(&["stop", "db"]).trim(), "db: STOPPED on n3");
    assert_eq!(third.must(&["start", "db"]).trim(), "db: RUNNING on n3");
    network.heal(1);
    until_as_one(&fleet);
}

#[test]
fn a_node_that_is_not_heard_but_hears_ends_as_one_of_the_fleet() {
    let network = bridge(3);
    let fleet = shop_on(&network);
    network.mute(2, 1);
    network.mute(2, 3);
    until_home(&fleet.nodes[0], "web", "n3");
    network.unmute(2, 1);
    network.unmute(2, 3);
    until_as_one(&fleet);
}

#[test]
fn a_cable_that_comes_and_goes_leaves_one_copy() {
    let network = bridge(3);
    let fleet = shop_on(&network);
    for round in 0..6 {
        network.cut(2);
        // Sometimes long enough to be lost, sometimes not.
        if round % 2 == 0 {
            until_seen(&fleet.nodes[0], "n2", "SILENT");
        }
        network.heal(2);
        if round % 3 == 0 {
            until_seen(&fleet.nodes[0], "n2", "RUNNING");
        }
    }
    until_as_one(&fleet);
}

#[test]
fn packets_that_are_lost_late_or_twice_change_nothing_in_the_end() {
    let trouble = Switch::Relay { lost: 10, twice: 5, delay: Duration::from_millis(20) };
    let network = Network::new(3, trouble);
    let fleet = TestFleet::launch_on(&network, ONE_STAYS, SHOP);
    until_as_one(&fleet);
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    for _ in 0..3 {
        let told = third.must(&["stop", "web"]);
        assert!(told.starts_with("web: STOPPED on n"), "{told}");
        let told = second.must(&["start", "web"]);
        assert!(told.starts_with("web: RUNNING on n"), "{told}");
    }
    until_as_one(&fleet);
    let home = home(first, "web").expect("it has one");
    let lost = fleet.nodes.iter().zip(1..).find(|(_, n)| home == format!("n{n}"));
    kill(lost.expect("one of the three").0);
    let others = fleet.nodes.iter().zip(1..).filter(|(_, n)| home != format!("n{n}"));
    for (node, _) in others {
        until("web runs elsewhere", || super::home(node, "web").filter(|it| *it != home));
    }
    until("the switch has lost some", || (network.lost() > 20).then_some(()));
}

#[test]
fn a_node_that_stands_still_is_lost_and_one_copy_stays_when_it_goes_on() {
    let network = bridge(3);
    let fleet = shop_on(&network);
    let frozen = fleet.nodes[1].processes();
    frozen.iter().for_each(|pid| signal(*pid, Signal::STOP));
    until_home(&fleet.nodes[0], "web", "n3");
    frozen.iter().for_each(|pid| signal(*pid, Signal::CONT));
    until_as_one(&fleet);
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.expect("cp can be started").success());
}

#[test]
fn a_copied_disk_is_no_second_node_of_its_name() {
    let network = bridge(4);
    let jobs = "[apps.shop]\n[jobs.web]\nexec = \"sleep 1000\"\napp = \"shop\"\n\
                place = { nodes = [\"n2\"] }\n";
    let mut fleet = TestFleet::launch_on(&network, "sync_timeout = \"2s\"", jobs);
    fleet.until_in_operation();
    let fourth = fleet.nodes.pop().expect("four nodes");
    let text = std::fs::read_to_string(fourth.path().join("mainstay.toml")).expect("its file");
    drop(fourth);
    until_home(&fleet.nodes[0], "web", "n2");
    let (pid, run) = (fleet.nodes[1].running("web"), fleet.nodes[1].status()["run"].clone());
    // The disk of n2, name and all, in the machine that n4 was.
    let scratch = Scratch::new();
    copy(&fleet.nodes[1].state_dir(), &scratch.path().join("state"));
    let text = text.replace("name = \"n4\"", "name = \"n2\"").replace("10.77.0.2:", "10.77.0.9:");
    let text = text
        .replace("n4=10.77.0.4:7071", "n2=10.77.0.4:7071")
        .replace("\"n2=10.77.0.9:7071\", ", "");
    let copied = network.on(4, Setup::config(text)).launch_in(scratch);
    copied.wait_until_ready();
    until("the others refuse it", || {
        fleet.nodes[0].must(&["events", "--json"]).contains("\"nodeRefused\"").then_some(())
    });
    assert_eq!(fleet.nodes[1].running("web"), pid);
    assert_eq!(fleet.nodes[1].status()["run"], run);
    assert_ne!(copied.job("web")["state"], "RUNNING", "it begins nothing by itself");
    // When the first one has gone, it is the node of that name.
    kill(&fleet.nodes[1]);
    until("the copy takes part", || is_whole(&copied).then_some(()));
    copied.running("web");
}
