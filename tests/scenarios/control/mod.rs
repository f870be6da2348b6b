//! Control sockets and state files: their whole life, and every window in which something may crash.

mod clients;
mod held;
mod lifetime;
mod restarts;
mod windows;

use held::Held;
use mainstay_tests::{Node, Reached, Setup, Watched, is_alive, needs_root, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::{fs, os::unix::fs::FileTypeExt};

/// Ends well when it is asked to. `UP` is a file that says when it is ready for that.
const OBEDIENT: &str = "trap 'exit 0' TERM; echo up > $UP; while :; do sleep 0.02; done";

fn job(node: &Node, name: &str) -> Watched {
    Watched::new(node.run_dir().join("jobs").join(name))
}

fn pid(state: &Value) -> u32 {
    state["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid")
}

/// A node with one job that runs this script.
fn node(script: &str, rest: &str) -> Setup {
    Setup::config(format!(
        "[node]\nexit = \"never\"\n[jobs.job]\nexec = [\"sh\", \"-c\", \"{script}\"]\n{rest}"
    ))
    .env("UP", "/dev/stdout")
}

#[test]
fn before_the_beginning_there_is_no_socket_and_no_state() {
    let held = Held::nothing();
    assert!(matches!(held.watched().try_connect(), Reached::NoSuchFile));
    assert_eq!(held.watched().state(), None);
}

#[test]
fn who_connects_finds_a_state_file_that_says_the_same() {
    let held = Held::script(OBEDIENT);
    let watched = held.watched();
    let first = watched.connect().next_state().expect("a state on connect");
    let file = watched.state().expect("the state was written before anything listened");
    for state in [&first, &file] {
        assert_eq!(state["status"], "UP");
        assert_eq!(state["container_process_state"]["up"], true);
        assert_eq!(state["incarnation"], 1);
    }
    assert!(is_alive(pid(&first)));
    assert_eq!(pid(&file), pid(&first));
}

#[test]
fn every_client_gets_the_last_state_then_the_end_and_a_late_one_is_refused() {
    let mut held = Held::script("trap 'exit 4' TERM; echo up > $UP; while :; do sleep 0.02; done");
    let watched = held.watched();
    let mut clients: Vec<_> = (0..3).map(|_| held.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.next_state().expect("a state")["status"], "UP");
    }
    clients[1].say(b"event: stop\n\n").expect("it listens");
    for client in &mut clients {
        let last = client.last_state().expect("a last state");
        assert_eq!(last["status"], "DOWN");
        assert_eq!(last["container_process_state"]["exited"], true);
        assert_eq!(last["container_process_state"]["exit_status"], 4);
        // Written before it was said.
        assert_eq!(watched.state(), Some(last));
    }
    assert_eq!(held.wait().code(), Some(4));
    assert!(watched.is_refused());
    let file = fs::symlink_metadata(held.path().join("control")).expect("the file stays");
    assert!(file.file_type().is_socket());
}

#[test]
fn a_killed_holder_leaves_a_refusal_beside_a_state_that_says_up_and_no_process() {
    let mut held = Held::script(OBEDIENT);
    let watched = held.watched();
    let mut client = held.connect();
    let child = pid(&client.next_state().expect("a state"));
    held.kill();
    assert_eq!(client.last_state(), None, "nobody was left to say that it ended");
    until("the child is gone, too", || (!is_alive(child)).then_some(()));
    // The kernel closes what a killed process had open one after the other.
    until("nobody listens", || watched.is_refused().then_some(()));
    assert_eq!(watched.state().expect("as it was")["status"], "UP");

    // The next one begins in the same place as if nothing had happened.
    held.hold(OBEDIENT);
    let mut client = held.connect();
    let next = pid(&client.next_state().expect("a state"));
    assert!(next != child && is_alive(next));
    client.say(b"event: stop\n\n").expect("it listens");
    assert_eq!(client.last_state().expect("a last state")["status"], "DOWN");
    assert_eq!(held.wait().code(), Some(0));
}

#[test]
fn a_killed_keeper_leaves_the_same_and_the_next_run_begins_anew() {
    let mut node = node(OBEDIENT, "").start();
    let child = node.running("job");
    let watched = job(&node, "job");
    let mut client = watched.connect();
    client.next_state().expect("a state");
    signal(node.keeper(), Signal::KILL);
    assert_eq!(client.last_state(), None);
    until("the child is gone, too", || (!is_alive(child)).then_some(()));
    // The kernel closes what a killed process had open one after the other.
    until("nobody listens", || watched.is_refused().then_some(()));
    assert_eq!(watched.state().expect("as it was")["status"], "UP");
    node.wait();
    node.launch_again();
    node.wait_until_ready();
    let next = node.running("job");
    assert_eq!(pid(&watched.connect().next_state().expect("a state")), next);
}

#[test]
fn what_a_crash_left_half_written_is_in_nobodys_way() {
    type Leave = fn(&std::path::Path);
    let left: [Leave; 4] = [
        |dir| fs::write(dir.join(".state.new"), "{\"status\":\"U").expect("our own"),
        |dir| fs::write(dir.join("state"), "{\"status\":\"DOWN\",\"contai").expect("our own"),
        |dir| fs::write(dir.join("control"), "not a socket").expect("our own"),
        |dir| {
            drop(std::os::unix::net::UnixListener::bind(dir.join("control.tmp")).expect("our own"));
            drop(std::os::unix::net::UnixListener::bind(dir.join("control")).expect("our own"));
        },
    ];
    for leave in left {
        let mut held = Held::nothing();
        leave(held.path());
        held.hold(OBEDIENT);
        let mut client = held.connect();
        assert_eq!(client.next_state().expect("a state")["status"], "UP");
        assert_eq!(held.watched().state().expect("a whole one")["status"], "UP");
        client.say(b"event: stop\n\n").expect("it listens");
        assert_eq!(held.wait().code(), Some(0));
        let mut names: Vec<String> = fs::read_dir(held.path())
            .expect("our own")
            .map(|entry| entry.expect("our own").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["control", "state"], "nothing else stays");
    }
}

#[test]
fn on_a_full_disk_the_socket_says_what_the_file_cannot() {
    needs_root();
    for room in [0, 1] {
        let mut held = Held::nothing();
        let dir = held.path().display().to_string();
        // With room for one, the first state is written and the next one is not.
        let fill = format!(
            "mount -t tmpfs -o size=64k,mode=755 tmpfs {dir}
             head -c $(( 65536 - {room} * 4096 )) /dev/zero > {dir}/filler || true
             exec \"$@\""
        );
        let before =
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", fill.as_str(), "sh"];
        held.hold_under(&before, OBEDIENT);
        let watched = held.watched_inside();
        let mut client = watched.connect();
        let first = client.next_state().expect("a state");
        assert_eq!(first["status"], "UP");
        assert_eq!(first["container_process_state"]["up"], true);
        let error = first["err"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("state file"), "{room}: {first}");
        client.say(b"event: stop\n\n").expect("it listens");
        let last = client.last_state().expect("a last state");
        assert_eq!(last["status"], "DOWN");
        assert_eq!(last["container_process_state"]["exit_status"], 0);
        assert_eq!(held.wait().code(), Some(0));
    }
}

#[test]
fn a_disk_with_room_again_gets_the_state() {
    needs_root();
    let mut held = Held::nothing();
    let dir = held.path().display().to_string();
    let out = held.beside("state");
    let fill = format!(
        "mount -t tmpfs -o size=64k,mode=755 tmpfs {dir}
         head -c 65536 /dev/zero > {dir}/filler || true
         \"$@\"; code=$?
         cp {dir}/state {}
         exit $code",
        out.display()
    );
    let before =
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", fill.as_str(), "sh"];
    held.hold_under(&before, OBEDIENT);
    let watched = held.watched_inside();
    let mut client = watched.connect();
    assert!(client.next_state().expect("a state")["err"].is_string());
    fs::remove_file(watched.path().join("filler")).expect("our own");
    client.say(b"event: stop\n\n").expect("it listens");
    let last = client.last_state().expect("a last state");
    assert_eq!(held.wait().code(), Some(0));
    let file: Value =
        serde_json::from_slice(&fs::read(out).expect("it was written")).expect("JSON");
    assert_eq!(file["status"], "DOWN");
    assert_eq!(file["timestamp"], last["timestamp"]);
}

#[test]
fn a_directory_too_deep_for_a_socket_address_is_none_too_deep() {
    let below = format!("{}/{}", "d".repeat(100), "e".repeat(100));
    let mut held = Held::nothing_in(&below);
    held.hold(OBEDIENT);
    let mut client = held.connect();
    assert_eq!(client.next_state().expect("a state")["status"], "UP");
    client.say(b"event: stop\n\n").expect("it listens");
    assert_eq!(client.last_state().expect("a last state")["status"], "DOWN");
    assert_eq!(held.wait().code(), Some(0));
    assert!(held.watched().is_refused());
}

#[test]
fn a_second_holder_in_the_same_directory_is_refused_and_disturbs_nothing() {
    let held = Held::script(OBEDIENT);
    let first = pid(&held.watched().connect().next_state().expect("a state"));
    let second = mainstay_tests::Command::new(mainstay_tests::binary())
        .args(["hold", "--dir", held.path().to_str().expect("text"), "--", "true"])
        .output()
        .expect("the binary can be started");
    assert_eq!(second.status.code(), Some(1));
    let again = held.watched().connect().next_state().expect("a state");
    assert_eq!(pid(&again), first);
}
