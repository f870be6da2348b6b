//! The key of a fleet: made by a command, replaced while the fleet runs.

use super::{TestFleet, is_whole, until_home, write_key};
use mainstay_tests::{Node, Scratch, Setup, until};
use std::{fs, os::unix::fs::PermissionsExt};

const JOBS: &str = "[apps.shop]\n[jobs.web]\nexec = \"sleep 1000\"\napp = \"shop\"\n";

#[test]
fn a_key_is_made_for_its_owner_alone_and_never_overwritten() {
    let scratch = Scratch::new();
    let path = scratch.path().join("fleet.key");
    let shown = path.to_str().expect("a text");
    // It needs no node: this one is none of a fleet.
    let node = Setup::config("[jobs.one]\nexec = \"sleep 1000\"").start();
    node.must(&["fleet", "key", "--out", shown]);
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let made = fs::read_to_string(&path).expect("it is text");
    let key = made.lines().last().unwrap_or_default();
    assert!(key.len() >= 32 && key.chars().all(|it| it.is_ascii_hexdigit()), "{made}");

    let again = node.ask(&["fleet", "key", "--out", shown]);
    assert_eq!(again.status.code(), Some(1));
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(told.contains("is there already") && told.contains("--force"), "{told}");
    assert_eq!(fs::read_to_string(&path).expect("still there"), made);

    node.must(&["fleet", "key", "--out", shown, "--force"]);
    assert_ne!(fs::read_to_string(&path).expect("another one"), made);
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_ne!(node.must(&["fleet", "key"]), node.must(&["fleet", "key"]));
}

#[test]
fn a_missing_key_is_told_with_the_command_that_makes_one() {
    let node = Setup::config("[jobs.one]\nexec = \"sleep 1000\"").start();
    let file = node.path().join("fleet.toml");
    let missing = "[node]\nname = \"n1\"\n[fleet]\nnodes = [\"n1=127.0.0.1:7071\"]\n";
    let absent = format!("{missing}key_file = \"/nowhere/fleet.key\"\n");
    for (text, command) in [
        (missing.to_owned(), "mainstay fleet key --out FILE"),
        (absent, "mainstay fleet key --out /nowhere/fleet.key"),
    ] {
        fs::write(&file, format!("{text}[jobs.one]\nexec = \"true\"\n")).expect("a scratch file");
        let told = node.ask(&["check", "-c", file.to_str().expect("a text")]);
        assert_eq!(told.status.code(), Some(78));
        let told = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(told.contains(command), "{told}");
    }
}

#[test]
fn a_key_is_replaced_while_the_fleet_runs() {
    let fleet = TestFleet::launch(2, JOBS);
    fleet.until_in_operation();
    let [first, second] = fleet.nodes.as_slice() else { panic!("two nodes") };
    until_home(second, "web", "n1");
    let pid = first.pid("web");
    let (old, new) = ("5e".repeat(32), "a7".repeat(32));
    for text in [format!("{old}\n{new}\n"), format!("{new}\n{old}\n"), format!("{new}\n")] {
        write_key(&fleet.key, &text);
        for node in [first, second] {
            read_again(node);
            until("both are in the fleet", || (is_whole(first) && is_whole(second)).then_some(()));
        }
    }
    assert_eq!(first.pid("web"), pid, "no job was touched");
    let losses = first.must(&["events", "--json"]);
    assert!(!losses.contains("\"nodeLost\""), "{losses}");
}

/// A new agent reads the key file.
fn read_again(node: &Node) {
    let before = node.agent();
    node.must(&["upgrade"]);
    until("a new agent is there", || node.try_agent().filter(|agent| *agent != before).map(drop));
}
