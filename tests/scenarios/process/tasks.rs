//! Tasks: checks and commands that leave something behind.

use mainstay_tests::{Node, Setup, is_alive, until};
use std::{fs, path::Path};

/// Three checks whose children hide in sessions of their own: one that ends at once, one that never
/// does, one that waits for a word. The job has such a child too, and keeps it.
const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.job]
    exec = ["sh", "-c", "setsid sleep 1000 & echo $! >own; exec sleep 1000"]
    health = [
        { name = "leaves", exec = ["sh", "-c", "setsid sleep 1000 & echo $! >left"], interval = "100s" },
        { name = "hangs", exec = ["sh", "-c", "setsid sleep 1000 & echo $! >hung; sleep 1000"], interval = "100s", timeout = "500ms" },
        { name = "waits", exec = ["sh", "-c", "setsid sleep 1000 & echo $! >slow; until [ -e go ]; do sleep 0.02; done"], interval = "100s" },
    ]
"#;

fn pid(node: &Node, file: &str) -> u32 {
    until(&format!("{file} holds a pid"), || {
        fs::read_to_string(node.path().join(file)).ok()?.trim().parse().ok()
    })
}

fn until_dead(node: &Node, file: &str) {
    let pid = pid(node, file);
    until(&format!("{file} is dead"), || (!is_alive(pid)).then_some(()));
}

/// Groups of tasks that are there now.
fn groups(node: &Node) -> Option<usize> {
    let text = fs::read(node.run_dir().join("run.json")).ok()?;
    let run: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let tasks = Path::new(run["cgroup"].as_str()?).join("tasks");
    let entries = fs::read_dir(tasks).ok()?.filter_map(Result::ok);
    Some(entries.filter(|entry| entry.path().is_dir()).count())
}

#[test]
fn what_a_task_leaves_behind_ends_with_it_and_its_job_is_spared() {
    for setup in [Setup::config(CONFIG), Setup::config(CONFIG).without_cgroups()] {
        let node = setup.start();
        let job = node.running("job");
        until_dead(&node, "left");
        until_dead(&node, "hung");
        let slow = pid(&node, "slow");
        assert!(is_alive(slow), "its task goes on");
        node.must(&["upgrade"]);
        assert!(is_alive(slow), "its task still goes on");
        fs::write(node.path().join("go"), "").expect("a scratch directory");
        until_dead(&node, "slow");
        if node.job("job")["tree"] == "cgroup" {
            until("no group of a task is left", || (groups(&node)? == 0).then_some(()));
        }
        assert_eq!(node.running("job"), job);
        assert!(is_alive(pid(&node, "own")), "a child of the job is no child of its check");
        assert_eq!(node.status()["strays"], serde_json::json!([]));
    }
}
