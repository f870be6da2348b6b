//! `session`, `stdin`, `tty`: what a job reads, and what it is attached to.

use mainstay_tests::{Setup, is_alive, needs_root, proc, until};
use std::fs;

/// The pid, its group and its session.
fn ids(pid: u32) -> (u32, u32, u32) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit(')').next().expect("a line");
    let field = |index| rest.split_whitespace().nth(index).and_then(|it: &str| it.parse().ok());
    (pid, field(2).expect("a group"), field(3).expect("a session"))
}

#[test]
fn a_job_has_a_session_of_its_own_or_only_a_group() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.apart]
        exec = "sleep 1000"
        [jobs.within]
        exec = ["sh", "-c", "sleep 1000 & sleep 1000"]
        session = false
    "#;
    let node = Setup::config(config).start();
    let (apart, within) = (node.running("apart"), node.running("within"));
    assert_eq!(ids(apart), (apart, apart, apart));
    let (_, _, session) = ids(node.keeper());
    assert_eq!(ids(within), (within, within, session));
    let children = until("both run", || Some(proc::children(within)).filter(|all| all.len() == 2));
    node.must(&["stop", "within"]);
    assert!(!children.into_iter().any(is_alive), "the group is stopped as a whole");
}

#[test]
fn a_job_reads_nothing_unless_it_is_told_where() {
    let config = r#"
        [jobs.nothing]
        exec = "cat"
        [jobs.file]
        exec = "cat"
        stdin = "./input"
        cwd = "${DIR}"
        [jobs.inherited]
        exec = "cat"
        stdin = "inherit"
    "#;
    let scratch = mainstay_tests::Scratch::new();
    fs::write(scratch.path().join("input"), "of the file\n").expect("a scratch directory");
    fs::write(scratch.path().join("ours"), "of the node\n").expect("a scratch directory");
    let dir = scratch.path().display().to_string();
    let mut node = Setup::config(config).env("DIR", &dir).after("exec <ours").launch_in(scratch);
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    let none: [&str; 0] = [];
    assert_eq!(node.log("nothing"), none);
    assert_eq!(node.log("file"), ["of the file"]);
    assert_eq!(node.log("inherited"), ["of the node"]);
}

#[test]
fn an_input_is_opened_as_the_user_of_the_job() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [jobs.job]
        exec = "cat"
        user = "nobody"
        stdin = "/etc/shadow"
        restart = "never"
    "#;
    let node = Setup::config(config).start();
    let error = until("it could not be started", || {
        Some(node.job("job")["exit"]["error"].as_str()?.to_owned())
    });
    assert!(error.contains("'/etc/shadow'") && error.contains("Permission denied"), "{error}");
}

#[test]
fn an_input_that_nobody_writes_to_holds_up_its_own_job_only() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.job]
        exec = "cat"
        stdin = "./fifo"
        restart = "never"
        [jobs.other]
        exec = "sleep 1000"
    "#;
    let node = Setup::config(config).after("mkfifo fifo").start();
    node.running("other");
    assert_eq!(node.job("job")["state"], "STARTING");
    fs::write(node.path().join("fifo"), "at last\n").expect("the job opens it");
    node.until_logged("job", "at last");
    // One that still waits is ended like any other.
    node.must(&["start", "job", "--no-wait"]);
    node.must(&["stop", "job"]);
}

/// Says what it is attached to, then lines when told to by a file.
const ON_A_TERMINAL: &str = r#"
    [node]
    exit = "never"
    [jobs.job]
    exec = ["sh", "-c", """
        [ -t 1 ] && [ -t 2 ] && [ ! -t 0 ] && echo on a terminal
        stty size </dev/tty
        echo to stderr >&2
        echo to the terminal >/dev/tty
        exec >&- 2>&-
        for word in one two; do
            until [ -e $word ]; do sleep 0.02; done
            echo $word >/dev/tty
        done
        printf 'the last of it' >/dev/tty"""]
    tty = true
    restart = "never"
"#;

#[test]
fn a_terminal_is_captured_like_a_pipe_over_the_end_of_its_agent_and_upgrades() {
    let node = Setup::config(ON_A_TERMINAL).start();
    let pid = node.running("job");
    let first = ["on a terminal", "24 80", "to stderr", "to the terminal"];
    assert_eq!(node.until_logged("job", "to the terminal"), first);
    let (_, group, session) = ids(pid);
    assert_eq!((group, session), (pid, pid));

    // Nothing of it is open any more, and it is still there.
    node.kill_agent();
    node.must(&["upgrade"]);
    fs::write(node.path().join("one"), "").expect("a scratch directory");
    node.until_logged("job", "one");
    node.must(&["upgrade"]);
    assert_eq!(node.running("job"), pid);
    fs::write(node.path().join("two"), "").expect("a scratch directory");
    let lines = node.until_logged("job", "the last of it");
    assert_eq!(lines[4..], ["one", "two", "the last of it"]);
    assert_eq!(node.until_state("job", "EXITED")["exit"]["code"], 0);
}

#[test]
fn what_a_job_says_to_its_terminal_right_before_its_end_is_not_lost() {
    const RUNS: u32 = 30;
    let config = r#"
        [jobs.job]
        exec = ["sh", "-c", "seq 2000"]
        tty = true
        instances = 30
        [log]
        forward = false
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    let wanted: Vec<String> = (1..=2000).map(|it| it.to_string()).collect();
    for run in 1..=RUNS {
        assert_eq!(node.log(&format!("job-{run}")), wanted);
    }
}

#[test]
fn a_terminal_has_the_size_of_the_one_that_the_node_was_started_at() {
    use rustix::{pty, termios};
    let flags = pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY | pty::OpenptFlags::CLOEXEC;
    let ours = pty::openpt(flags).expect("there are terminals");
    pty::grantpt(&ours).expect("our own");
    pty::unlockpt(&ours).expect("our own");
    let size = termios::Winsize { ws_row: 31, ws_col: 97, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(&ours, size).expect("our own");
    let name = pty::ptsname(&ours, Vec::new()).expect("our own").into_string().expect("text");
    let config = r#"
        [jobs.job]
        exec = ["sh", "-c", "stty size </dev/tty"]
        tty = true
    "#;
    let mut node = Setup::config(config).after(&format!("exec <>{name}")).launch();
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    assert_eq!(node.log("job"), ["31 97"]);
}
