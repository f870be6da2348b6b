//! What is not ours is left alone, whatever a configuration or somebody else makes of it.

use mainstay_tests::{Command, Scratch, Setup, binary, is_alive, signal, until};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

const IDLE: &str = "[node]\nexit = \"never\"\n[jobs.idle]\nexec = \"sleep 1000\"\n";

#[test]
fn a_directory_that_was_never_a_run_directory_is_not_cleared() {
    let scratch = Scratch::new();
    let precious = scratch.path().join("jobs/important/data");
    fs::create_dir_all(precious.parent().expect("it has one")).expect("a scratch directory");
    fs::write(&precious, "mine").expect("a scratch directory");
    let output = Command::new(binary())
        .args(["run", "--run-dir", ".", "--state-dir", "state", "--", "true"])
        .current_dir(scratch.path())
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("no run directory") && told.contains("'jobs'"), "{told}");
    assert_eq!(fs::read_to_string(precious).expect("it is still there"), "mine");
}

#[test]
fn a_link_in_the_place_of_a_temporary_file_leads_nowhere() {
    let scratch = Scratch::new();
    let (dir, victim) = (scratch.path().join("held"), scratch.path().join("victim"));
    fs::create_dir(&dir).expect("a scratch directory");
    fs::write(&victim, "mine").expect("a scratch directory");
    symlink(&victim, dir.join(".state.new")).expect("a scratch directory");
    let status = Command::new(binary())
        .args(["hold", "--", "true"])
        .current_dir(&dir)
        .status()
        .expect("the binary can be started");
    assert_eq!(status.code(), Some(0));
    assert_eq!(fs::read_to_string(victim).expect("it is still there"), "mine");
    assert!(fs::read_to_string(dir.join("state")).expect("a state").contains("DOWN"));
}

#[test]
fn who_reads_logs_follows_no_link() {
    let mut node = Setup::command(&["echo", "first"]).launch();
    node.wait();
    let (logs, secret) = (node.state_dir().join("logs/echo"), node.path().join("secret"));
    fs::write(&secret, "2026-01-01T00:00:00.000000000Z stdout F secret\n").expect("our own file");
    fs::remove_file(logs.join("current")).expect("a log");
    for name in ["current", "00000001-20260101T000000Z"] {
        symlink(&secret, logs.join(name)).expect("our own directory");
        let read = node.ask(&["logs", "echo"]);
        let told = String::from_utf8_lossy(&[read.stdout, read.stderr].concat()).into_owned();
        assert!(!told.contains("secret\n"), "{told}");
        fs::remove_file(logs.join(name)).expect("our own link");
    }
}

#[test]
fn a_socket_path_that_is_taken_is_refused_and_one_that_nobody_listens_at_is_not() {
    let scratch = Scratch::new();
    let (live, file, stale) =
        (scratch.path().join("live"), scratch.path().join("file"), scratch.path().join("stale"));
    let _listener = UnixListener::bind(&live).expect("a scratch directory");
    drop(UnixListener::bind(&stale).expect("a scratch directory"));
    fs::write(&file, "mine").expect("a scratch directory");
    let job = |name: &str, path: &std::path::Path| {
        format!(
            "[jobs.{name}]\nexec = \"sleep 1000\"\nrestart = \"never\"\nsockets = {{ x = \"unix:{}\" }}\n",
            path.display()
        )
    };
    let config =
        format!("{IDLE}{}{}{}", job("live", &live), job("file", &file), job("stale", &stale));
    let node = Setup::config(config).start();
    node.running("stale");
    for name in ["live", "file"] {
        let job = node.until_state(name, "FATAL");
        let error = job["exit"]["error"].as_str().expect("a reason").to_owned();
        assert!(error.contains("cannot listen on unix:"), "{error}");
    }
    assert_eq!(fs::read_to_string(file).expect("it is still there"), "mine");
    node.running("idle");
}

#[test]
fn a_listener_that_does_not_accept_holds_up_nobody() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let scratch = Scratch::new();
    let path = scratch.path().join("deaf");
    let deaf = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&deaf, &SocketAddrUnix::new(&path).expect("short")).expect("a scratch directory");
    listen(&deaf, 0).expect("bound");
    // Its queue is full from now on: whoever connects waits.
    let first = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
    let web = format!(
        "[jobs.web]\nexec = \"sleep 1000\"\nrestart = \"never\"\nsockets = {{ x = \"unix:{}\" }}\n",
        path.display()
    );
    let mut node = Setup::config(IDLE).start();
    node.running("idle");
    node.configure(&format!("{IDLE}{web}"));
    node.ask(&["reload"]);
    let job = node.until_state("web", "FATAL");
    let error = job["exit"]["error"].as_str().expect("a reason").to_owned();
    assert!(error.contains("cannot listen on unix:") && error.contains("in use"), "{error}");
    signal(node.keeper(), Signal::TERM);
    assert_eq!(node.wait().code(), Some(0));
    drop(first);
}

#[test]
fn a_log_that_somebody_removes_is_begun_anew() {
    let config = "[node]\nexit = \"never\"\n[jobs.job]\nexec = [\"sh\", \"-c\", \"while echo tick; do sleep 0.05; done\"]";
    let node = Setup::config(config).start();
    node.until_logged("job", "tick");
    let current = node.state_dir().join("logs/job/current");
    fs::remove_file(&current).expect("it is there");
    until("there is a new one", || current.exists().then_some(()));
    node.until_logged("job", "tick");
}

#[test]
fn two_nodes_do_not_share_a_state_directory() {
    let node = Setup::config(IDLE).start();
    let scratch = Scratch::new();
    let output = Command::new(binary())
        .args(["run", "--run-dir", &scratch.path().display().to_string(), "--", "true"])
        .env("MAINSTAY_STATE_DIR", node.state_dir())
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("another mainstay keeps its logs in"), "{told}");
    // Also not after an upgrade.
    node.must(&["upgrade"]);
    let again = Command::new(binary())
        .args(["run", "--run-dir", &scratch.path().display().to_string(), "--", "true"])
        .env("MAINSTAY_STATE_DIR", node.state_dir())
        .output()
        .expect("the binary can be started");
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn a_group_without_cookies_goes_with_its_keeper() {
    let script = "env -i sh -c 'echo $$; exec sleep 1000' & wait";
    let node = Setup::command(&["sh", "-c", script]).without_cgroups().start();
    let pid: u32 = until("it runs", || node.log("sh").first()?.parse().ok());
    assert!(is_alive(pid));
    // Its group is known by the state file, which says so once exec is known to have succeeded.
    node.running("sh");
    signal(node.keeper(), Signal::KILL);
    until("the whole group is gone", || (!is_alive(pid)).then_some(()));
}

#[test]
fn a_run_that_has_ended_makes_room_for_the_next_at_once() {
    let mut node = Setup::config(IDLE).start();
    for _ in 0..5 {
        node.must(&["shutdown"]);
        let next = node.ask(&["run", "--", "true"]);
        let told = String::from_utf8_lossy(&next.stderr).into_owned();
        assert_eq!(next.status.code(), Some(0), "{told}");
        node.wait();
        node.launch_again();
        node.wait_until_ready();
    }
}
