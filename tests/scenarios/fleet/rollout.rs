//! A profile that goes through real nodes in waves.

use super::TestFleet;
use mainstay_tests::{Node, until};
use serde_json::{Value, json};
use std::{fs, path::Path};

const SECRET: &str = "hush-hush-4711";

/// A job that a version with `broken` in it kills, where there is a file `fragile`.
fn config(pause: &str) -> String {
    format!(
        r#"
        [rollout]
        wave = 1
        pause = "{pause}"
        [profiles.app]
        source = "file"
        path = "app.json"
        [templates.conf]
        src = "web.conf.j2"
        dst = "out/web.conf"
        profiles = ["app"]
        [services.web]
        job = "web"
        templates = ["conf"]
        reload_timeout = "10s"
        bake_time = "200ms"
        [jobs.web]
        exec = ["sh", "-c", "test -e fragile && grep -q broken out/web.conf && exit 3; echo >&3; exec sleep 1000"]
        health = {{ fd = 3 }}
        when = {{ source = "template.conf", once = "healthy" }}
        "#
    )
}

/// Another version, in one piece.
fn put(dir: &Path, version: &str) {
    let (new, place) = (dir.join("app.json.new"), dir.join("app.json"));
    let profile = json!({ "name": version, "secrets": { "key": { "file": dir.join("key") } } });
    fs::write(&new, profile.to_string()).expect("written");
    fs::rename(new, place).expect("renamed");
}

/// Three nodes with the first version. Only the source of the master is right: those of the others
/// are never to be asked. Nor does anybody else have the secret.
fn rolled_out(pause: &str) -> TestFleet {
    rolled_out_in("", pause)
}

/// As [`rolled_out`], with these keys in `[fleet]`.
fn rolled_out_in(keys: &str, pause: &str) -> TestFleet {
    let fleet = TestFleet::launch_with(3, keys, &config(pause), |n, dir| {
        fs::create_dir(dir.join("out")).expect("made");
        let template = "name = {{ app.name }}\nkey = {{ secrets.key }}\n";
        fs::write(dir.join("web.conf.j2"), template).expect("written");
        put(dir, if n == 1 { "one" } else { "poison" });
        if n == 1 {
            super::write_key(&dir.join("key"), SECRET);
        }
    });
    fleet.until_in_operation();
    until_everywhere(&fleet, "one");
    until_stage(&fleet, "applied");
    fleet
}

fn rendered(node: &Node) -> String {
    fs::read_to_string(node.path().join("out/web.conf")).unwrap_or_default()
}

fn has(node: &Node, version: &str) -> bool {
    rendered(node) == format!("name = {version}\nkey = {SECRET}\n")
}

fn profile(node: &Node) -> Value {
    let status = node.ask(&["rollout", "status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
    status["profiles"][0].clone()
}

/// Every node has applied it, by its own word.
fn until_everywhere(fleet: &TestFleet, version: &str) {
    for node in &fleet.nodes {
        until(&format!("{version} is applied"), || {
            let state = profile(node)["state"].clone();
            (has(node, version) && state == "applied").then_some(())
        });
    }
}

fn until_stage(fleet: &TestFleet, stage: &str) {
    for node in &fleet.nodes {
        until(&format!("the version is {stage}"), || {
            (profile(node)["waves"]["state"] == stage).then_some(())
        });
    }
}

#[test]
fn a_good_version_goes_node_by_node_and_one_node_asks_the_source() {
    let fleet = rolled_out("100ms");
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    put(first.path(), "two");
    until_everywhere(&fleet, "two");
    until_stage(&fleet, "applied");
    let applied = |node: &Node| profile(node)["applied_at"].as_str().map(str::to_owned);
    let times = [second, third, first].map(applied);
    assert!(times.is_sorted() && times[0].is_some(), "by name, the master last: {times:?}");
    for node in [second, third] {
        let profile = profile(node);
        assert_eq!(profile["answered_at"], Value::Null, "its source was never asked: {profile}");
        assert_eq!(profile["waves"]["conductor"], "n1", "{profile}");
        let answers = profile["waves"]["nodes"].as_array().cloned().unwrap_or_default();
        assert!(answers.len() == 3 && answers.iter().all(|it| it["state"] == "applied"));
        let refused = node.ask(&["rollout", "refresh", "app"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains("node 'n1' asks the source of profile 'app'"), "{told}");
    }
    for node in &fleet.nodes {
        let shown = [&["rollout", "status"][..], &["rollout", "status", "--json"], &["events"]];
        let shown: String = shown.iter().map(|args| node.must(args)).collect();
        assert!(!shown.contains(SECRET) && !node.stderr().contains(SECRET), "a secret is shown");
    }
}

#[test]
fn a_rotated_secret_has_one_name_in_the_fleet_to_go_back_to() {
    let fleet = rolled_out("100ms");
    let first = &fleet.nodes[0];
    let names = || fleet.nodes.iter().map(|it| profile(it)["applied"]["text"].clone());
    let before = profile(first)["applied"]["text"].as_str().expect("applied").to_owned();
    super::write_key(&first.path().join("key"), "another-one");
    first.must(&["rollout", "refresh", "app"]);
    until("every node has it", || {
        let all = fleet.nodes.iter().all(|it| rendered(it).contains("key = another-one\n"));
        all.then_some(())
    });
    until_stage(&fleet, "applied");
    assert!(names().all(|it| it == format!("{before}+1")), "{:?}", names().collect::<Vec<_>>());
    first.must(&["rollout", "rollback", "app", &before]);
    until_everywhere(&fleet, "one");
    assert!(names().all(|it| it == before), "{:?}", names().collect::<Vec<_>>());
}

#[test]
fn a_version_that_fails_on_one_node_comes_back_everywhere() {
    let fleet = rolled_out("100ms");
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    fs::write(third.path().join("fragile"), "").expect("written");
    let mut events = second.events();
    put(first.path(), "broken");
    // It gets there, and comes back from it though nothing was wrong there.
    events.wait_for("template.conf", "changed");
    events.wait_for("template.conf", "changed");
    until_stage(&fleet, "back");
    // Whoever asks the source knows that it serves what has failed.
    let is_back = |(node, state)| has(node, "one") && profile(node)["state"] == state;
    let states = ["pending", "applied", "applied"];
    until("all are back", || fleet.nodes.iter().zip(states).all(is_back).then_some(()));
    for node in &fleet.nodes {
        node.running("web");
        let status = node.ask(&["rollout", "status"]);
        let told = String::from_utf8_lossy(&status.stdout).into_owned();
        assert!(told.contains("which failed on n3: "), "{told}");
        assert_eq!(status.status.code(), Some(3), "not all is as it should be: {told}");
        let why = node.must(&["why", "profile.app"]);
        assert!(why.contains("failed on n3"), "{why}");
    }
    put(first.path(), "three");
    until_everywhere(&fleet, "three");
}

#[test]
fn waves_go_on_when_the_agent_or_the_node_that_conducts_them_is_killed() {
    // So long may the next agent take on a busy machine before its node counts as lost.
    let fleet = rolled_out_in("tick = \"5s\"", "1s");
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    put(first.path(), "two");
    until("the first wave has it", || has(second, "two").then_some(()));
    assert!(!has(third, "two"), "there is a pause");
    first.kill_agent();
    until_everywhere(&fleet, "two");
    until_stage(&fleet, "applied");
    // The whole node: the others have all they need.
    put(first.path(), "three");
    until("the first wave has it", || has(second, "three").then_some(()));
    super::kill(first);
    until("the second wave has it", || has(third, "three").then_some(()));
    until("it is applied", || (profile(third)["waves"]["state"] == "applied").then_some(()));
    assert_eq!(profile(third)["waves"]["conductor"], "n2");
}

/// What a command that somebody types says, and whether it ended well.
fn typed(node: &Node, args: &[&str]) -> (bool, String) {
    let told = node.ask(args);
    let text = [told.stdout, told.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    (told.status.success(), text.concat())
}

/// Whether a table has a row that begins so.
fn has_row(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| line.split_whitespace().take(words.len()).eq(words.iter().copied()))
}

#[test]
fn a_rollback_by_hand_goes_through_every_node_until_somebody_asks() {
    let fleet = rolled_out("100ms");
    let [first, second, _] = fleet.nodes.as_slice() else { panic!("three nodes") };
    put(first.path(), "two");
    until_everywhere(&fleet, "two");
    until_stage(&fleet, "applied");
    let (done, told) = typed(second, &["rollout", "rollback", "app"]);
    assert!(!done && told.contains("node 'n1' asks the source of profile 'app'"), "{told}");
    let (done, told) = typed(first, &["rollout", "rollback", "app"]);
    assert!(done && told.contains("rolled back by hand from"), "{told}");
    let answers = [["n1", "3", "applied"], ["n2", "1", "applied"], ["n3", "2", "applied"]];
    assert!(answers.iter().all(|it| has_row(&told, it)), "{told}");
    assert!(fleet.nodes.iter().all(|node| has(node, "one")), "it is answered when it is done");
    until("every node knows", || {
        second.must(&["why", "profile.app"]).contains("rolled back by hand").then_some(())
    });
    // It comes again when somebody asks.
    let (done, told) = typed(first, &["rollout", "refresh", "app"]);
    assert!(done && answers.iter().all(|it| has_row(&told, it)), "{told}");
    assert!(fleet.nodes.iter().all(|node| has(node, "two")));
}

#[test]
fn a_refresh_waits_for_the_waves_and_tells_what_each_node_has_answered() {
    let fleet = rolled_out("100ms");
    let [first, second, third] = fleet.nodes.as_slice() else { panic!("three nodes") };
    let (done, told) = typed(first, &["rollout", "refresh"]);
    assert!(done && told.contains("nothing has changed"), "{told}");
    fs::write(third.path().join("fragile"), "").expect("written");
    put(first.path(), "broken");
    let (done, told) = typed(first, &["rollout", "refresh", "app"]);
    assert!(!done && told.contains("of profile 'app' failed on n3: "), "{told}");
    assert!(has_row(&told, &["n3", "2", "failed"]), "{told}");
    assert!(fleet.nodes.iter().all(|node| has(node, "one")), "it is answered when all are back");
    // A source that is gone is told at once, and is nobody else's matter.
    fs::remove_file(first.path().join("app.json")).expect("removed");
    let (done, told) = typed(first, &["rollout", "refresh", "app"]);
    assert!(!done && told.contains("profile 'app' cannot be loaded"), "{told}");
    let state = |node: &Node| node.status()["rollout"]["state"].clone();
    assert_eq!([first, second, third].map(state), ["pending", "running", "running"]);
    put(first.path(), "three");
    until_everywhere(&fleet, "three");
    until("nothing is pending any more", || (state(first) == "running").then_some(()));
}
