//! Whose lines `mainstay logs` shows.

use mainstay_tests::{Node, Setup, until};
use std::{fs, process::Stdio};

fn config(jobs: &[&str]) -> String {
    let job = |name: &&str| {
        format!("[jobs.{name}]\nexec = [\"sh\", \"-c\", \"echo i am {name}; exec sleep 1000\"]\n")
    };
    format!("[node]\nexit = \"never\"\n{}", jobs.iter().map(job).collect::<String>())
}

fn shown(node: &Node, args: &[&str]) -> Vec<String> {
    node.must(args).lines().map(str::to_owned).collect()
}

#[test]
fn logs_are_those_of_the_configuration_unless_all_are_asked_for() {
    let mut node = Setup::config(config(&["web", "old"])).start();
    node.until_logged("old", "i am old");
    node.until_logged("web", "i am web");
    node.configure(&config(&["web"]));
    node.must(&["reload"]);
    assert_eq!(shown(&node, &["logs"]), ["web | i am web"]);
    assert_eq!(shown(&node, &["logs", "--all"]).len(), 2);
    assert_eq!(shown(&node, &["logs", "old"]), ["i am old"]);

    // Whoever comes later is followed, whoever is gone is not.
    let path = node.path().join("followed");
    let mut follower = node
        .command(&["logs", "-f"])
        .stdout(fs::File::create(&path).expect("a scratch directory"))
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary can be started");
    node.configure(&config(&["web", "new"]));
    node.must(&["reload"]);
    let followed = until("new is followed", || {
        let text = fs::read_to_string(&path).expect("a scratch directory");
        text.contains("new | i am new").then_some(text)
    });
    let _ = follower.kill();
    let _ = follower.wait();
    assert!(!followed.contains("old"), "{followed}");

    // The same when nothing runs.
    node.must(&["shutdown"]);
    node.wait();
    let at_rest = shown(&node, &["logs"]);
    assert_eq!(at_rest, ["web | i am web", "new | i am new"]);
    assert_eq!(shown(&node, &["logs", "--all"]).len(), 3);
}

/// Whoever is answered reads the files of the node next: `logs` asks plan.json whose lines to show.
#[test]
fn the_plan_is_on_the_disk_when_a_reload_is_answered() {
    // So many that writing them takes longer than the answer, which waits for none of them.
    let resting = |last: usize| {
        let job = |number: usize| format!("[jobs.j{number}]\nexec = \"true\"\napp = \"rest\"\n");
        let jobs: String = (0..=last).map(job).collect();
        format!("[node]\nexit = \"never\"\n[apps.rest]\nstart_sequence = 0\n{jobs}")
    };
    let node = Setup::config(resting(400)).start();
    for last in 401..=404 {
        node.configure(&resting(last));
        node.must(&["reload"]);
        let plan = fs::read_to_string(node.run_dir().join("plan.json")).expect("a plan");
        assert!(plan.contains(&format!("\"j{last}\"")), "j{last} is not in plan.json");
    }
}
