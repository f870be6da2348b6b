//! Sockets that are abused: garbage, halves of things, and thousands of connections.

use mainstay_tests::{Control, Node, Setup, is_alive, until, until_it_rests};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.one]
    exec = ["sh", "-c", "while :; do echo tick; sleep 0.05; done"]
    [jobs.two]
    exec = "sleep 1000"
"#;

fn sockets(node: &Node) -> [PathBuf; 3] {
    ["mainstay.sock", "keeper.sock", "jobs/one/control"].map(|name| node.run_dir().join(name))
}

/// Room for our own ends of the connections.
fn raise_own_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    raised.expect("up to the hard limit");
}

/// Jobs, API and control sockets do what they should.
fn all_is_well(node: &Node, one: u32) {
    assert!(is_alive(one));
    assert_eq!(node.pid("one"), Some(one));
    node.must(&["restart", "two"]);
    let written = node.job("one")["log"]["lines"].as_u64();
    until("one goes on writing", || {
        (node.job("one")["log"]["lines"].as_u64() > written).then_some(())
    });
}

#[test]
fn thousands_of_connections_are_bounded_and_everything_goes_on() {
    const EACH: usize = 2000;
    raise_own_limit();
    let mut node = Setup::config(CONFIG).start();
    let one = node.running("one");
    let keeper = node.keeper();
    let own = mainstay_tests::proc::descriptors(keeper).len();
    let mut held = Vec::new();
    for path in sockets(&node) {
        for _ in 0..EACH {
            held.push(until("it takes connections", || UnixStream::connect(&path).ok()));
        }
    }
    all_is_well(&node, one);
    let open = mainstay_tests::proc::descriptors(keeper).len();
    assert!(open < own + 140, "the keeper holds {open} descriptors, {own} without connections");
    let open = mainstay_tests::proc::descriptors(node.agent()).len();
    assert!(open < 2200, "the agent holds {open} descriptors");
    until_it_rests(keeper);

    // Those who do not even ask do not keep others from the keeper.
    let reason = node.ask(&["upgrade", "/no/such/binary"]);
    let text = String::from_utf8_lossy(&reason.stderr).into_owned();
    assert_eq!(reason.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot use /no/such/binary"), "{text}");
    node.kill_agent();
    all_is_well(&node, one);
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    drop(held);
}

#[test]
fn garbage_closes_its_own_connection_and_no_other() {
    let node = Setup::config(CONFIG).start();
    let one = node.running("one");
    let mut watcher = node.control("one");
    assert_eq!(watcher.next_state().expect("a state")["status"], "UP");

    let long = vec![b'x'; 2 << 20];
    let [api, keeper, control] = sockets(&node);
    let abuse: [(&PathBuf, &[u8]); 11] = [
        (&api, b"\0\xff\xfe garbage \r\n\r\n"),
        (&api, b"GET /v1/status HTTP/9.9\r\n\r\n"),
        (&api, &long),
        (&keeper, b"GET / HTTP/1.1\r\n\r\n"),
        (&keeper, b"\xff\xff\xff\xff{}"),
        (&keeper, b"\x00\x00\x00\x05{}{}{"),
        (&keeper, b"\x05\x00\x00\x00nulls"),
        (&keeper, &long),
        (&control, b"event: signal\ndata: {\"signal\":\"SIGNOTHING\"}\n\n"),
        (&control, b"event: stop\ndata: {{{\n\n"),
        (&control, &long),
    ];
    for (path, bytes) in abuse {
        let mut stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        // It may be closed before all was said.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{} holds on to {bytes:?}: {error}", path.display()),
        }
    }
    // Unknown events and comments are not garbage.
    let mut client = node.control("one");
    client.say(b": hello\nevent: dance\ndata: {}\n\nid: 7\nretry: 1\n\n").expect("it listens");
    assert_eq!(client.next_state().expect("a state")["status"], "UP");

    all_is_well(&node, one);
    assert_eq!(watcher.next_state().expect("still connected")["status"], "UP");
}

#[test]
fn halves_are_waited_for_without_harm() {
    let node = Setup::config(CONFIG).start();
    let one = node.running("one");
    let [api, keeper, control] = sockets(&node);
    let halves: [(&PathBuf, &[u8]); 4] = [
        (&api, b"POST /v1/jobs/one/stop HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"),
        (&api, b"GET /v1/sta"),
        (&keeper, b"\x00\x00"),
        (&control, b"event: stop\ndata: {"),
    ];
    let mut held = Vec::new();
    for _ in 0..20 {
        for (path, bytes) in halves {
            let mut stream = UnixStream::connect(path).expect("it listens");
            stream.write_all(bytes).expect("it listens");
            held.push(stream);
        }
    }
    all_is_well(&node, one);
    // Left in the middle: half a stop is none.
    drop(held);
    all_is_well(&node, one);
}

#[test]
fn a_client_that_never_reads_gets_the_last_state_or_is_let_go() {
    let node = Setup::config(CONFIG).start();
    node.running("two");
    let mut deaf: Vec<Control> = (0..63).map(|_| node.control("two")).collect();
    let mut client = node.control("two");
    node.must(&["stop", "two"]);
    let last = client.last_state().expect("a last state");
    assert_eq!(last["status"], "DOWN");
    assert_eq!(deaf[0].last_state(), Some(last));
    node.must(&["start", "two"]);
}
