//! Tasks: checks and commands that leave something behind.

use mainstay_tests::{Node, Setup, is_alive, signal, until};
use rustix::process::Signal;
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

/// A reload command that says when it runs, and ends when it may.
const RELOADS: &str = r#"
    [node]
    exit = "never"
    [jobs.web]
    exec = ["sleep", "1000"]
    reload = { exec = ["sh", "-c", "echo run >>runs; until [ -e go ]; do sleep 0.02; done; echo cannot read it; echo over >over; exit 3"] }
    [jobs.fine]
    exec = ["sleep", "1000"]
    reload = { exec = ["true"] }
"#;

fn begin_reload(node: &Node) {
    node.must(&["reload", "web", "--no-wait"]);
    until("it runs", || fs::read_to_string(node.path().join("runs")).ok());
}

fn let_it_end(node: &Node) {
    fs::write(node.path().join("go"), "").expect("a scratch directory");
    until("it has ended", || fs::read(node.path().join("over")).ok());
}

#[test]
fn a_reload_command_that_fails_is_told_with_its_code_and_output() {
    let node = Setup::config(RELOADS).start();
    node.running("web");
    assert!(node.must(&["reload", "fine"]).contains("RUNNING"));
    fs::write(node.path().join("go"), "").expect("a scratch directory");
    let output = node.ask(&["reload", "web"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("exit code 3: cannot read it"), "{said}");
    let mut events = node.events();
    let ended = events.wait_for("web", "taskEnded");
    assert_eq!(ended["detail"]["exit"]["code"], 3);
    assert_eq!(ended["detail"]["output"], "cannot read it\n");
}

#[test]
fn a_reload_that_is_not_over_in_time_goes_on_and_a_second_one_joins_it() {
    let node = Setup::config(RELOADS).start();
    node.running("web");
    let output = node.ask(&["reload", "web", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("goes on"), "{said}");
    begin_reload(&node);
    let_it_end(&node);
    node.events().wait_for("web", "taskEnded");
    assert_eq!(fs::read_to_string(node.path().join("runs")).expect("it ran"), "run\n");
}

/// The command ends while the agent is frozen, so that nobody has taken its outcome when the agent
/// is replaced.
fn outcome_survives(replace_agent: impl Fn(&Node)) {
    let node = Setup::config(RELOADS).start();
    node.running("web");
    let mut events = node.events();
    begin_reload(&node);
    signal(node.agent(), Signal::STOP);
    let_it_end(&node);
    replace_agent(&node);
    let ended = events.wait_for("web", "taskEnded");
    assert_eq!(ended["detail"]["exit"]["code"], 3);
    node.kill_agent();
    node.must(&["upgrade"]);
    node.must(&["stop", "web"]);
    events.wait_for("web", "stopped");
    let told = events.seen().iter().filter(|event| event["event"] == "taskEnded").count();
    assert_eq!(told, 1, "{:#?}", events.seen());
    assert_eq!(fs::read_to_string(node.path().join("runs")).expect("it ran"), "run\n");
}

#[test]
fn the_outcome_of_a_task_survives_a_killed_agent_and_is_told_once() {
    outcome_survives(|node| signal(node.agent(), Signal::KILL));
}

#[test]
fn the_outcome_of_a_task_survives_an_upgrade_and_is_told_once() {
    outcome_survives(|node| {
        node.must(&["upgrade"]);
    });
}

#[test]
fn a_reload_command_goes_on_while_agents_die_and_is_run_once() {
    let node = Setup::config(RELOADS).start();
    node.running("web");
    begin_reload(&node);
    node.kill_agent();
    node.kill_agent();
    let_it_end(&node);
    let ended = node.events().wait_for("web", "taskEnded");
    assert_eq!(ended["detail"]["output"], "cannot read it\n");
    assert_eq!(fs::read_to_string(node.path().join("runs")).expect("it ran"), "run\n");
}
