//! What clients of a control socket say, and how.

use super::{OBEDIENT, held::Held, node, pid};
use mainstay_tests::{Watched, is_alive, signal, until};
use rustix::process::Signal;
use std::{net::Shutdown, time::Duration};

#[test]
fn a_stop_and_a_kill_are_understood_however_they_are_written() {
    for (text, code) in [
        ("event: stop\n\n", 0),
        ("event: stop\ndata\n\n", 0),
        ("event: stop\ndata:\n\n", 0),
        ("event:stop\r\ndata: {}\r\n\r\n", 0),
        (": hello\nid: 1\nevent: what\ndata: {}\n\nevent: stop\ndata: {\ndata: }\n\n", 0),
        ("event: kill\n\n", 137),
        ("event: kill\ndata\n\n", 137),
        ("event: kill\ndata:\n\n", 137),
    ] {
        let mut held = Held::script(OBEDIENT);
        let mut client = held.connect();
        client.say(text.as_bytes()).expect("it listens");
        assert_eq!(held.wait().code(), Some(code), "{text:?}");
        let process = client.last_state().expect("a last state")["container_process_state"].clone();
        assert_eq!(process["exited"] == true, code == 0, "{process}");
        assert_eq!(process["signaled"] == true, code == 137, "{process}");
    }
}

#[test]
fn a_stop_that_is_not_followed_is_followed_by_a_kill() {
    let mut held = Held::script("trap '' TERM; echo up > $UP; while :; do sleep 0.02; done");
    let mut client = held.connect();
    client.next_state().expect("a state");
    client.say(b"event: stop\n\n").expect("it listens");
    let last = client.last_state().expect("a last state");
    assert_eq!(last["container_process_state"]["signal"], 9);
    assert_eq!(held.wait().code(), Some(137));
}

#[test]
fn the_first_signal_to_the_holder_stops_and_the_second_kills() {
    let mut held = Held::script(OBEDIENT);
    drop(held.connect());
    signal(held.pid(), Signal::TERM);
    assert_eq!(held.wait().code(), Some(0));

    let mut held = Held::nothing().patiently();
    let mark = held.beside("asked");
    let trap = format!("trap 'touch {}' TERM", mark.display());
    held.hold(&format!("{trap}; echo up > $UP; while :; do sleep 0.02; done"));
    drop(held.connect());
    signal(held.pid(), Signal::INT);
    until("it was asked to stop", || mark.exists().then_some(()));
    signal(held.pid(), Signal::INT);
    assert_eq!(held.wait().code(), Some(137));
}

#[test]
fn a_signal_goes_to_the_process_and_ends_nothing() {
    let mut held = Held::nothing();
    let mark = held.beside("hup");
    let trap = format!("trap 'touch {}' HUP", mark.display());
    held.hold(&format!("{trap}; echo up > $UP; while :; do sleep 0.02; done"));
    let mut client = held.connect();
    client.say(b"event: signal\ndata: {\"signal\":\"SIGHUP\"}\n\n").expect("it listens");
    until("the signal has come", || mark.exists().then_some(()));
    assert_eq!(client.next_state().expect("a state")["status"], "UP");
    assert_eq!(client.next_state().expect("the next state")["status"], "UP");
}

#[test]
fn what_cannot_be_read_closes_one_connection_and_no_other() {
    let held = Held::script(OBEDIENT);
    let mut good = held.connect();
    let first = pid(&good.next_state().expect("a state"));
    let long = [&b"event: x\ndata: \""[..], &b"x".repeat(65 << 10), b"\"\n\n"].concat();
    let many = b"data: 1\n".repeat(20_000);
    for nonsense in [
        &b"event: stop\ndata: {\n\n"[..],
        b"event: kill\ndata: nonsense\n\n",
        b"event: signal\n\n",
        b"event: signal\ndata: {\"signal\":\"SIGNOTHING\"}\n\n",
        b"event: \xff\xfe\n\n",
        &long,
        &many,
    ] {
        let mut bad = held.connect();
        bad.next_state().expect("a state");
        // It may be closed before all of it is said.
        let _ = bad.say(nonsense);
        assert_eq!(bad.last_state(), None);
    }
    // Unknown events are passed over.
    good.say(b"event: unheard-of\ndata: {\"a\":1}\n\n").expect("it listens");
    assert_eq!(pid(&good.next_state().expect("the next state")), first);
    assert!(is_alive(first));
}

#[test]
fn what_was_understood_before_the_nonsense_counts() {
    let mut held = Held::script(OBEDIENT);
    let mut client = held.connect();
    client.say(b"event: stop\n\nevent: x\ndata: {\n\n").expect("it listens");
    assert_eq!(held.wait().code(), Some(0));
}

#[test]
fn a_client_that_has_said_all_still_hears_everything() {
    let mut held = Held::script(OBEDIENT);
    let mut silent = held.connect();
    silent.stream().shutdown(Shutdown::Write).expect("connected");
    assert_eq!(silent.next_state().expect("a state")["status"], "UP");
    // The regular word, too.
    assert_eq!(silent.next_state().expect("a state")["status"], "UP");
    let mut other = held.connect();
    other.say(b"event: stop\n\n").expect("it listens");
    other.stream().shutdown(Shutdown::Write).expect("connected");
    assert_eq!(silent.last_state().expect("a last state")["status"], "DOWN");
    assert_eq!(other.last_state().expect("a last state")["status"], "DOWN");
    assert_eq!(held.wait().code(), Some(0));
}

#[test]
fn sixty_four_clients_are_served_and_a_place_that_becomes_free_is_taken() {
    let held = Held::script(OBEDIENT);
    let watched = held.watched();
    let mut clients: Vec<_> = (0..64).map(|_| watched.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.next_state().expect("a state")["status"], "UP");
    }
    assert_eq!(watched.connect().next_state(), None, "the next one is turned away");
    drop(clients.pop());
    until("there is a place again", || watched.connect().next_state());
    clients[0].say(b"event: stop\n\n").expect("it listens");
    for client in &mut clients {
        assert_eq!(client.last_state().expect("a last state")["status"], "DOWN");
    }
}

#[test]
fn a_stop_at_the_socket_of_a_job_ends_its_restarts() {
    for (text, exit) in [
        (&b"event: stop\n\n"[..], serde_json::json!({ "code": 0 })),
        (b"event: kill\n\n", serde_json::json!({ "signal": "SIGKILL", "oom": false })),
    ] {
        let node = node(OBEDIENT, "restart = { on = \"any\", delay = \"0s\" }").start();
        node.until_logged("job", "up");
        let watched = Watched::new(node.run_dir().join("jobs/job"));
        let mut client = watched.connect();
        client.say(text).expect("it listens");
        assert_eq!(client.last_state().expect("a last state")["status"], "DOWN");
        let job = node.until_state("job", "STOPPED");
        assert_eq!((&job["exit"], &job["desired"]), (&exit, &"rest".into()));
        assert!(watched.is_refused());
        // Until somebody wants it to run.
        node.must(&["start", "job"]);
        assert_eq!(watched.connect().next_state().expect("a state")["incarnation"], 2);
    }
}

#[test]
fn states_come_every_three_seconds_to_those_who_listen() {
    let held = Held::script(OBEDIENT);
    let mut client = held.connect();
    client.next_state().expect("a state");
    let start = std::time::Instant::now();
    client.next_state().expect("a state");
    client.next_state().expect("a state");
    assert!(start.elapsed() >= Duration::from_secs(5), "{:?}", start.elapsed());
}
