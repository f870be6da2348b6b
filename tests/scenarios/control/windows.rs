//! `mainstay held`: every window of a holder's life and every row of the client's table.

use super::{OBEDIENT, held::Held, job, node};
use mainstay_tests::{Command, Scratch, binary, needs_root, signal, until};
use rustix::{
    net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket},
    process::Signal,
};
use serde_json::Value;
use std::{
    fs,
    io::Write,
    os::{fd::OwnedFd, unix::net::UnixListener},
    path::Path,
    process::{Child, Output, Stdio},
};

const UP: &str = r#"{"status":"UP","container_process_state":{"up":true},"pid":7}"#;
const DOWN: &str =
    r#"{"status":"DOWN","container_process_state":{"up":false,"exited":true,"exit_status":5}}"#;

fn held(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("held").arg(dir).args(args).stdin(Stdio::null());
    command
}

fn ask(dir: &Path, args: &[&str]) -> Output {
    held(dir, args).output().expect("the binary can be started")
}

fn begin(dir: &Path, args: &[&str]) -> Child {
    held(dir, args).stdout(Stdio::piped()).spawn().expect("the binary can be started")
}

/// What it says it is, its state, and the code.
fn sight(dir: &Path, args: &[&str]) -> (String, Value, i32) {
    let output = ask(dir, &[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    let word = value["is"].as_str().expect("a word").to_owned();
    (word, value["state"].clone(), output.status.code().expect("a code"))
}

fn wait(child: &mut Child) -> Option<i32> {
    until("it ends", || child.try_wait().expect("our own child")).code()
}

/// A socket file at which nobody listens.
fn dead_socket(dir: &Path) {
    drop(UnixListener::bind(dir.join("control")).expect("a scratch directory"));
}

/// A process that lives as long as we like, to be the one that starts something.
struct Starter(Child);

impl Starter {
    fn new() -> Starter {
        Starter(Command::new("sleep").arg("1000").spawn().expect("sleep"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn w0_nothing_is_there_and_whoever_starts_it_lives_or_is_gone() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    let mut starter = Starter::new();
    assert_eq!(sight(dir, &[]), ("notStarted".into(), Value::Null, 3));
    assert_eq!(sight(dir, &["--starter", &starter.pid()]).0, "notStarted");
    let mut waiting = begin(dir, &["wait", "--starter", &starter.pid()]);
    starter.end();
    assert_eq!(wait(&mut waiting), Some(1));
    let pid = starter.pid();
    assert_eq!(sight(dir, &["--starter", &pid]), ("failedToStart".into(), Value::Null, 3));
    let late = ask(dir, &["wait", "--timeout", "100ms"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&late.stderr).contains("within 100ms"));
}

#[test]
fn w0_who_waits_before_the_beginning_sees_the_end() {
    let mut held = Held::nothing();
    let mut waiting = begin(held.path(), &["wait"]);
    held.hold("exit 6");
    assert_eq!(wait(&mut waiting), Some(6));
    held.wait();
}

#[test]
fn w1_a_state_without_a_socket_is_a_beginning() {
    for state in [UP, DOWN] {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("state"), state).expect("a scratch directory");
        // A stale one may be about to be replaced.
        assert_eq!(sight(scratch.path(), &[]).0, "notStarted");
        let mut starter = Starter::new();
        starter.end();
        let pid = starter.pid();
        assert_eq!(sight(scratch.path(), &["--starter", &pid]).0, "failedToStart");
    }
}

#[test]
fn w2_a_socket_that_is_bound_and_does_not_listen_yet_is_tried_again() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    fs::write(dir.join("state"), UP).expect("a scratch directory");
    let bound: OwnedFd = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    let address = SocketAddrUnix::new(dir.join("control")).expect("short");
    bind(&bound, &address).expect("a scratch directory");
    let mut looking = begin(dir, &["--json"]);
    // It was refused, and sleeps before it tries again.
    let wchan = format!("/proc/{}/wchan", looking.id());
    until("it tries again", || {
        fs::read_to_string(&wchan).ok().filter(|it| it.contains("nanosleep"))
    });
    listen(&bound, 8).expect("our own socket");
    let (mut client, _) = UnixListener::from(bound).accept().expect("it comes");
    client.write_all(format!("event: state\ndata: {UP}\n\n").as_bytes()).expect("it reads");
    assert_eq!(wait(&mut looking), Some(0));
}

#[test]
fn w3_while_it_serves_the_stream_is_the_truth() {
    let held = Held::script(OBEDIENT);
    drop(held.connect());
    // Whatever the file says.
    fs::write(held.path().join("state"), DOWN).expect("a scratch directory");
    let (word, state, code) = sight(held.path(), &[]);
    assert_eq!((word.as_str(), code), ("live", 0));
    assert_eq!(state["container_process_state"]["up"], true, "{state}");
    let text = ask(held.path(), &[]);
    assert!(String::from_utf8_lossy(&text.stdout).starts_with("up: process "));
}

#[test]
fn w3_w4_a_killed_holder_is_a_crash() {
    let mut held = Held::script(OBEDIENT);
    drop(held.connect());
    let mut waiting = begin(held.path(), &["wait"]);
    held.kill();
    assert_eq!(wait(&mut waiting), Some(1));
    let (word, state, code) = sight(held.path(), &[]);
    assert_eq!((word.as_str(), code), ("crashed", 3));
    assert_eq!(state["status"], "UP");
    // Its process had ended, and nobody wrote it down: that looks the same.
    for args in [&["stop"][..], &["kill"], &["signal", "HUP"]] {
        let (word, _, code) = sight(held.path(), args);
        assert_eq!((word.as_str(), code), ("crashed", 1), "{args:?}");
    }
}

#[test]
fn w5_the_last_state_then_the_end() {
    for (script, code) in [("read x < $FIFO; exit 3", 3), ("read x < $FIFO; kill -USR1 $$", 138)] {
        let mut held = Held::nothing();
        let fifo = held.beside("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        let script = script.replace("$FIFO", fifo.to_str().expect("text"));
        held.hold(&format!("echo up > $UP; {script}"));
        drop(held.connect());
        let mut waiting = begin(held.path(), &["wait"]);
        fs::write(&fifo, "go\n").expect("somebody reads");
        assert_eq!(wait(&mut waiting), Some(code));
        assert_eq!(held.wait().code(), Some(code));
    }
}

#[test]
fn w6_after_the_end_the_file_is_the_truth() {
    let mut held = Held::script("exit 4");
    held.wait();
    let (word, state, code) = sight(held.path(), &[]);
    assert_eq!((word.as_str(), code), ("finished", 3));
    assert_eq!(state["container_process_state"]["exit_status"], 4);
    assert_eq!(ask(held.path(), &["wait"]).status.code(), Some(4));
    assert_eq!(ask(held.path(), &["stop"]).status.code(), Some(0), "it is down");
    let text = ask(held.path(), &[]);
    assert_eq!(String::from_utf8_lossy(&text.stdout), "finished: exited with 4\n");
    let mut well = Held::script("true");
    well.wait();
    assert_eq!(sight(well.path(), &[]).2, 0);
    let mut never = Held::nothing();
    let status = Command::new(binary())
        .args(["hold", "--dir"])
        .arg(never.path())
        .args(["--", "/no/such/command"])
        .status();
    assert_eq!(status.expect("the binary can be started").code(), Some(127));
    let (word, state, _) = sight(never.path(), &[]);
    assert_eq!(word, "finished");
    assert!(state["err"].as_str().is_some_and(|err| err.contains("no such file")), "{state}");
    never.hold("true");
    never.wait();
}

#[test]
fn w7_a_state_that_cannot_be_read_is_none() {
    for text in ["", "{\"status\":\"UP\",", "null", "\0\u{7f}"] {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("state"), text).expect("a scratch directory");
        dead_socket(scratch.path());
        assert_eq!(sight(scratch.path(), &[]), ("crashed".into(), Value::Null, 3), "{text:?}");
    }
    let scratch = Scratch::new();
    dead_socket(scratch.path());
    assert_eq!(sight(scratch.path(), &[]), ("crashed".into(), Value::Null, 3));
}

#[test]
fn w8_on_a_full_disk_it_says_why() {
    needs_root();
    let mut held = Held::nothing();
    let dir = held.path().display().to_string();
    let fill = format!(
        "mount -t tmpfs -o size=64k,mode=755 tmpfs {dir}
         head -c 65536 /dev/zero > {dir}/filler || true
         exec \"$@\""
    );
    let before =
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", fill.as_str(), "sh"];
    held.hold_under(&before, OBEDIENT);
    let watched = held.watched_inside();
    drop(watched.connect());
    let (word, state, code) = sight(watched.path(), &[]);
    assert_eq!((word.as_str(), code), ("live", 0));
    assert!(state["err"].as_str().is_some_and(|err| err.contains("state file")), "{state}");
    let text = ask(watched.path(), &[]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("cannot write the state file"));
    assert_eq!(ask(watched.path(), &["stop"]).status.code(), Some(0));
    assert_eq!(held.wait().code(), Some(0));
}

#[test]
fn refused_with_each_kind_of_state() {
    for (state, word) in [(DOWN, "finished"), (UP, "crashed")] {
        let scratch = Scratch::new();
        dead_socket(scratch.path());
        fs::write(scratch.path().join("state"), state).expect("a scratch directory");
        assert_eq!(sight(scratch.path(), &[]).0, word);
    }
}

#[test]
fn it_stops_kills_and_signals() {
    let mut held = Held::script(OBEDIENT);
    drop(held.connect());
    let output = ask(held.path(), &["stop"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "finished: exited with 0\n");
    assert_eq!(held.wait().code(), Some(0));

    let mut held = Held::script("trap '' TERM; echo up > $UP; while :; do sleep 0.02; done");
    drop(held.connect());
    assert_eq!(ask(held.path(), &["kill"]).status.code(), Some(0));
    assert_eq!(held.wait().code(), Some(137));

    let mut held = Held::nothing();
    let mark = held.beside("usr1");
    let trap = format!("trap 'touch {}' USR1", mark.display());
    held.hold(&format!("{trap}; echo up > $UP; while :; do sleep 0.02; done"));
    drop(held.connect());
    assert_eq!(ask(held.path(), &["signal"]).status.code(), Some(2), "which one?");
    assert_eq!(ask(held.path(), &["signal", "SIGUSR1"]).status.code(), Some(0));
    until("the signal has come", || mark.exists().then_some(()));
    assert_eq!(sight(held.path(), &[]).0, "live");
    assert_eq!(ask(held.path(), &["kill", "--no-wait"]).status.code(), Some(0));
    assert_eq!(held.wait().code(), Some(137));
}

#[test]
fn a_job_that_waits_for_its_restart_is_stopped_by_it() {
    let rest = "restart = { on = \"any\", delay = \"1h\", max_delay = \"1h\" }";
    let node = node("exit 3", rest).start();
    node.until_state("job", "BACKOFF");
    let watched = job(&node, "job");
    let (word, state, code) = sight(watched.path(), &[]);
    assert_eq!((word.as_str(), code), ("live", 0));
    assert_eq!(state["status"], "DOWN");
    let mut waiting = begin(watched.path(), &["wait"]);
    assert_eq!(ask(watched.path(), &["stop"]).status.code(), Some(0));
    assert_eq!(node.until_state("job", "STOPPED")["incarnation"], 1);
    assert_eq!(wait(&mut waiting), Some(3));
}

#[test]
fn a_frozen_holder_costs_time_and_nothing_else() {
    let mut held = Held::script(OBEDIENT);
    drop(held.connect());
    signal(held.pid(), Signal::STOP);
    let late = ask(held.path(), &["stop", "--timeout", "300ms"]);
    assert_eq!(late.status.code(), Some(1));
    signal(held.pid(), Signal::CONT);
    assert_eq!(held.wait().code(), Some(0), "it was taken once there was somebody to take it");
}
