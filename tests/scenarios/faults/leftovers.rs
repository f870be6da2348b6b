//! What other runs leave behind, or hold.

use mainstay_tests::{Node, Setup, is_alive, signal, until};
use rustix::process::Signal;
use std::{fs, path::Path};

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.tree]
    exec = ["sh", "-c", "setsid sleep 1001 & sleep 1000"]
"#;

/// What a file holds before the zeros at its end.
fn cut_in_half(path: &Path) {
    let bytes = fs::read(path).expect("it is there");
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    fs::write(path, &bytes[..length / 2]).expect("our own file");
}

#[test]
fn a_second_run_in_the_same_directory_is_refused_and_says_who_is_there() {
    let node = Setup::config(CONFIG).start();
    let pid = node.running("tree");
    let second = node.ask(&["run", "--", "true"]);
    assert_eq!(second.status.code(), Some(1));
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains(&format!("another mainstay (pid {})", node.keeper())), "{told}");
    assert!(told.contains("mainstay shutdown --run-dir"), "{told}");
    assert_eq!(node.running("tree"), pid);
}

#[test]
fn a_run_that_ends_well_leaves_no_cgroup() {
    let mut node = Setup::config(CONFIG).start();
    node.running("tree");
    let told = fs::read_to_string(node.run_dir().join("run.json")).expect("it says who runs");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let Some(group) = told["cgroup"].as_str().map(std::path::PathBuf::from) else {
        return eprintln!("no cgroups here");
    };
    assert!(group.exists(), "{}", group.display());
    until("it has its spare", || (node.processes().len() >= 5).then_some(()));
    node.must(&["shutdown"]);
    node.wait();
    assert!(!group.exists(), "{} is left", group.display());
}

#[test]
fn after_a_killed_keeper_the_next_run_sweeps_and_begins_anew() {
    for setup in [Setup::config(CONFIG), Setup::config(CONFIG).without_cgroups()] {
        let mut node = setup.start();
        let pid = node.running("tree");
        let (keeper, agent) = (node.keeper(), node.agent());
        until("the whole tree is there", || (node.processes().len() >= 5).then_some(()));
        let before: Vec<u32> = node.processes();
        // Neither gets to clean up.
        signal(agent, Signal::STOP);
        signal(keeper, Signal::KILL);
        node.wait();
        signal(agent, Signal::KILL);
        for file in ["mainstay.sock", "keeper.sock", "jobs/tree/control"] {
            assert!(node.run_dir().join(file).exists(), "{file} is left");
        }
        // And what it was writing was cut.
        for file in ["plan.json", "journal", "jobs/tree/state"] {
            let path = node.run_dir().join(file);
            cut_in_half(&path);
        }
        fs::write(node.run_dir().join(".run.json.new"), "{").expect("our own file");
        node.launch_again();
        node.wait_until_ready();
        assert_ne!(node.running("tree"), pid);
        let left: Vec<u32> = before.into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(left.is_empty(), "left of the old run: {left:?}");
        assert_eq!(node.status()["agent_restarts"], 0);
        assert_eq!(node.job("tree")["incarnation"], 1);
    }
}

/// Kills keeper and agent at once, so that neither gets to clean up.
fn kill_both(node: &mut Node) {
    let (keeper, agent) = (node.keeper(), node.agent());
    signal(agent, Signal::STOP);
    signal(keeper, Signal::KILL);
    node.wait();
    signal(agent, Signal::KILL);
}

#[test]
fn a_sweep_finds_what_is_left_although_the_file_that_names_the_run_is_damaged() {
    for setup in [Setup::config(CONFIG), Setup::config(CONFIG).without_cgroups()] {
        let mut node = setup.start();
        node.running("tree");
        until("the whole tree is there", || (node.processes().len() >= 5).then_some(()));
        let before: Vec<u32> = node.processes();
        kill_both(&mut node);
        fs::write(node.run_dir().join("run.json"), "{\"run\":").expect("our own file");
        let told = node.must(&["sweep"]);
        let left: Vec<u32> = before.into_iter().filter(|pid| is_alive(*pid)).collect();
        assert!(left.is_empty(), "{left:?} are left: {told}");
        assert!(told.contains("sleep 1001"), "{told}");
    }
}

#[test]
fn who_has_left_session_and_environment_is_found_by_the_cgroup() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.tree]
        exec = ["sh", "-c", "env -i setsid sleep 1002 & sleep 1000"]
    "#;
    let mut node = Setup::config(config).start();
    node.running("tree");
    let run = fs::read_to_string(node.run_dir().join("run.json")).expect("it is there");
    if !run.contains("\"cgroup\":\"/") {
        return eprintln!("skipped: there are no cgroups to be had here");
    }
    let group = serde_json::from_str::<serde_json::Value>(&run).expect("JSON")["cgroup"].clone();
    let procs = Path::new(group.as_str().expect("a path")).join("jobs/tree/cgroup.procs");
    let members = || -> Vec<u32> {
        let text = fs::read_to_string(&procs).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    until("all of it is there", || (members().len() == 3).then_some(()));
    let members = members();
    kill_both(&mut node);
    let told = node.must(&["sweep"]);
    assert!(told.contains("sleep 1002"), "{told}");
    assert!(members.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn a_killed_keeper_leaves_no_cgroup_behind() {
    let node = Setup::config(CONFIG).start();
    node.running("tree");
    let run = fs::read(node.run_dir().join("run.json")).expect("it is there");
    let run: serde_json::Value = serde_json::from_slice(&run).expect("JSON");
    let Some(group) = run["cgroup"].as_str() else {
        eprintln!("skipped: there are no cgroups to be had here");
        return;
    };
    signal(node.keeper(), Signal::KILL);
    until("its cgroups are gone", || (!fs::exists(group).unwrap_or(true)).then_some(()));
}

#[test]
fn torn_files_of_any_kind_do_not_keep_a_run_from_beginning() {
    let mut node = Setup::config(CONFIG).start();
    node.must(&["shutdown"]);
    node.wait();
    let files = [
        "run.json",
        "plan.json",
        "journal",
        "mainstay.sock",
        "mainstay.sock.tmp",
        "keeper.sock",
        "jobs/tree/state",
        "jobs/tree/control",
    ];
    for content in [&b""[..], b"{\"run\":", b"\0\xff\0", b"null\n", b"00000000 {}\n"] {
        fs::create_dir_all(node.run_dir().join("jobs/tree")).expect("our own directory");
        for file in files {
            let path = node.run_dir().join(file);
            let _ = fs::remove_file(&path);
            fs::write(path, content).expect("our own directory");
        }
        node.launch_again();
        node.wait_until_ready();
        node.running("tree");
        node.must(&["shutdown"]);
        assert_eq!(node.wait().code(), Some(0));
    }
}

#[test]
fn torn_files_under_a_running_node_cost_its_next_agent_knowledge_and_no_job() {
    for file in ["plan.json", "journal"] {
        let node = Setup::config(CONFIG).start();
        let pid = node.running("tree");
        cut_in_half(&node.run_dir().join(file));
        node.kill_agent();
        assert_eq!(node.running("tree"), pid, "{file}");
        node.must(&["restart", "tree"]);
        assert!(!is_alive(pid));
    }
}

#[test]
fn a_log_that_a_crash_cut_in_the_middle_of_a_line_goes_on_with_a_new_one() {
    let mut node = Setup::command(&["echo", "first"]).launch();
    node.wait();
    let current = node.state_dir().join("logs/echo/current");
    let mut text = fs::read_to_string(&current).expect("a log");
    text.push_str("2026-01-01T00:00:00.000000000Z stdout F cut of");
    fs::write(&current, text).expect("our own file");
    node.launch_again();
    node.wait();
    assert_eq!(node.log("echo"), ["first", "cut of", "first"]);
}
