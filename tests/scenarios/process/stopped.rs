//! How a job is asked to end, and signalled.

use mainstay_tests::{Setup, is_alive, until};

/// A leader and a child of its group and one outside of it, each of which says what it got.
const TREE: &str = r#"
    [node]
    exit = "never"
    [jobs.one]
    exec = ["sh", "-c", """
        say() { trap "echo $1 got TERM" TERM; trap "echo $1 got USR2" USR2; trap "echo $1 got USR1" USR1; echo $1 up; while :; do sleep 0.05; done; }
        (say child) & (setsid sh -c "$SAY" say) & say leader
    """]
    env = { SAY = "trap 'echo outsider got TERM' TERM; trap 'echo outsider got USR2' USR2; trap 'echo outsider got USR1' USR1; echo outsider up; while :; do sleep 0.05; done" }
    stop = { STOP }
"#;

fn tree(stop: &str) -> mainstay_tests::Node {
    let node = Setup::config(TREE.replace("STOP", stop)).start();
    node.running("one");
    for name in ["leader", "child", "outsider"] {
        node.until_logged("one", &format!("{name} up"));
    }
    node
}

fn got(node: &mainstay_tests::Node, signal: &str) -> Vec<String> {
    let ending = format!(" got {signal}");
    let mut names: Vec<String> = node
        .log("one")
        .iter()
        .filter_map(|line| Some(line.strip_suffix(&ending)?.to_owned()))
        .collect();
    names.sort();
    names
}

#[test]
fn the_stop_signal_reaches_whom_it_should_and_the_kill_reaches_all() {
    for (to, reached) in [
        ("leader", &["leader"][..]),
        ("group", &["child", "leader"]),
        ("tree", &["child", "leader", "outsider"]),
    ] {
        let node = tree(&format!("signal = \"SIGUSR2\", to = \"{to}\", timeout = \"500ms\""));
        let tree: Vec<u32> = node.processes();
        let tree: Vec<u32> = tree.into_iter().filter(|pid| !node.is_spare(*pid)).collect();
        node.must(&["stop", "one"]);
        until(&format!("{to} got it"), || (got(&node, "USR2") == reached).then_some(()));
        assert!(got(&node, "TERM").is_empty());
        let job = node.job("one");
        assert_eq!((&job["state"], &job["exit"]["signal"]), (&"STOPPED".into(), &"SIGKILL".into()));
        let (keeper, agent) = (node.keeper(), node.agent());
        let left = tree.iter().filter(|pid| ![keeper, agent].contains(pid) && is_alive(**pid));
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn a_signal_reaches_whom_it_is_sent_to() {
    let node = tree("timeout = \"100ms\"");
    node.must(&["signal", "USR1", "one"]);
    until("the leader got it", || (got(&node, "USR1") == ["leader"]).then_some(()));
    node.must(&["signal", "SIGUSR1", "one", "--to", "tree"]);
    until("all got it", || {
        (got(&node, "USR1") == ["child", "leader", "leader", "outsider"]).then_some(())
    });
    assert_eq!(node.job("one")["state"], "RUNNING");
}

#[test]
fn a_stop_command_runs_before_the_signal_and_within_the_same_time() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = ["sh", "-c", "trap 'echo got TERM; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
        env = { COLOUR = "blue" }
        stop = { exec = ["sh", "-c", "echo $COLOUR > asked; kill -0 $(cat pid); echo well"], timeout = "5s" }
        [jobs.hung]
        exec = ["sh", "-c", "trap 'echo got TERM; exit 0' TERM; echo up; while :; do sleep 0.05; done"]
        stop = { exec = "sleep 1000", timeout = "1s" }
    "#;
    let node = Setup::config(config).start();
    let pid = node.running("one");
    node.until_logged("one", "up");
    node.until_logged("hung", "up");
    std::fs::write(node.path().join("pid"), pid.to_string()).expect("our own directory");
    node.must(&["stop", "one"]);
    let asked = std::fs::read_to_string(node.path().join("asked")).expect("it ran");
    assert_eq!(asked, "blue\n");
    node.until_logged("one", "got TERM");
    node.until_told("well");
    assert_eq!(node.job("one")["exit"]["code"], 0);
    // One that hangs does not save its job.
    node.must(&["stop", "hung"]);
    assert_eq!(node.job("hung")["state"], "STOPPED");
}
