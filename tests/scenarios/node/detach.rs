//! `run --detach`: a node that is left behind, or an error that is told.

use mainstay_tests::{Node, Setup, Terminal, is_alive, needs, proc, signal, until};
use rustix::process::Signal;
use std::{fs, path::Path};

const IDLE: &str = r#"
    [node]
    exit = "never"
    [jobs.idle]
    exec = "sleep 1000"
    [jobs.loud]
    exec = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i >&2; sleep 0.05; done; echo survived; exec sleep 1000"]
    stderr = "inherit"
"#;

fn detached(config: &str) -> Setup {
    Setup::config(config).args(&["--detach"])
}

fn keeper(node: &Node) -> u32 {
    let pid = node.status()["keeper"]["pid"].as_u64().expect("a keeper answers");
    u32::try_from(pid).expect("a pid")
}

/// The session of a process.
fn session(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit(')').next().expect("a line");
    rest.split_whitespace().nth(3).and_then(|it| it.parse().ok()).expect("a session")
}

#[test]
fn a_node_that_is_left_behind_has_started_and_can_be_asked() {
    let mut node = detached(IDLE).launch();
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    // No waiting: startup was said.
    let status = node.must(&["status", "--json"]);
    assert!(status.contains("\"state\":\"running\""), "{status}");
    let keeper = keeper(&node);
    assert!(node.stdout().contains(&format!("the node runs as process {keeper}")));
    assert_eq!(session(keeper), keeper, "a session of its own");
    let open = |stream: u32| fs::read_link(format!("/proc/{keeper}/fd/{stream}"));
    for stream in [0, 1] {
        assert_eq!(open(stream).expect("it is open"), Path::new("/dev/null"));
    }
    until("nobody reads its stderr any more", || {
        (open(2).expect("it is open") == Path::new("/dev/null")).then_some(())
    });
    // Whoever had its stderr is not hurt by that.
    node.until_logged("loud", "survived");
    assert_eq!(node.job("loud")["incarnation"], 1);

    // A second one is refused, and says by whom.
    let second = node.command(&["run", "--detach", "--", "true"]).output().expect("started");
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains(&format!("another mainstay (pid {keeper}) runs in")), "{told}");

    node.must(&["shutdown"]);
    until("it is gone", || (!is_alive(keeper)).then_some(()));
}

#[test]
fn a_node_that_cannot_start_is_told_with_its_code() {
    let mut node = detached("[jobs.web]\nexce = \"sleep 1000\"\n").launch();
    assert_eq!(node.wait().code(), Some(78), "{}", node.stderr());
    assert!(node.stderr().contains("unknown key 'exce'"), "{}", node.stderr());
    node.leaves_nothing();
    let usage = node.command(&["run", "--detach", "--from", "nothing", "x"]).output();
    assert_eq!(usage.expect("started").status.code(), Some(2));
}

#[test]
fn a_warning_reaches_who_starts_it_and_json_a_program() {
    let config = "[node]\nexit = \"never\"\nstop_timeout = \"1s\"\n[jobs.slow]\nexec = \"sleep 1000\"\nstop = { timeout = \"30s\" }\n";
    let mut node = detached(config).args(&["--json"]).launch();
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    assert!(node.stderr().contains("stop_timeout"), "{}", node.stderr());
    let told: serde_json::Value = serde_json::from_str(&node.stdout()).expect("JSON");
    assert_eq!(told["pid"], keeper(&node));
    assert_eq!(told["run_dir"], node.run_dir().display().to_string());
    // One that has ended by now had started.
    let mut short = Setup::command(&["true"]).args(&["--detach"]).launch();
    assert_eq!(short.wait().code(), Some(0), "{}", short.stderr());
}

#[test]
fn a_node_that_is_left_behind_outlives_the_terminal() {
    needs("setsid");
    let terminal = Terminal::new();
    let setup = detached(IDLE).under(&["setsid", "--ctty", "--wait"]);
    let mut node = setup.after(&format!("exec <>{} >&0 2>&0", terminal.name())).launch();
    assert_eq!(node.wait().code(), Some(0));
    let pid = node.running("idle");
    drop(terminal);
    node.must(&["restart", "loud"]);
    assert_eq!(node.pid("idle"), Some(pid));
    node.must(&["shutdown"]);
}

/// Its agent waits for a configuration that does not come.
fn that_waits() -> (Node, u32) {
    let setup = Setup::example("fifo").args(&["--detach"]);
    let node = setup.after("mkfifo fifo").launch();
    let starter = node.keeper();
    let keeper = until("there is a keeper", || {
        let child = proc::children(starter).first().copied()?;
        (!proc::children(child).is_empty()).then_some(child)
    });
    (node, keeper)
}

#[test]
fn a_keeper_that_dies_before_the_start_is_told() {
    let (mut node, keeper) = that_waits();
    signal(keeper, Signal::KILL);
    assert_eq!(node.wait().code(), Some(1));
    assert!(node.stderr().contains("the keeper was killed by signal 9"), "{}", node.stderr());
}

#[test]
fn who_gives_up_before_the_start_leaves_nothing_behind() {
    let (mut node, keeper) = that_waits();
    signal(node.keeper(), Signal::INT);
    node.wait();
    until("the keeper is gone", || (!is_alive(keeper)).then_some(()));
    assert!(!node.run_dir().join("run.json").exists(), "it has ended in order");
}
