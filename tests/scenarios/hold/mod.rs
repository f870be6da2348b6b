//! `mainstay hold`: the seed's simulation with a plain socket, line by line.

use mainstay_tests::{Command, Scratch, binary, until};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
};

struct Held {
    scratch: Scratch,
    child: Child,
}

impl Held {
    fn start(command: &[&str]) -> Held {
        let scratch = Scratch::new();
        let child = Command::new(binary())
            .args(["hold", "--stop-timeout", "300ms", "--"])
            .args(command)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("the binary can be started");
        Held { scratch, child }
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.scratch.path().join("control"))
    }

    fn state(&self) -> Value {
        let text = fs::read(self.scratch.path().join("state")).expect("there is a state");
        serde_json::from_slice(&text).expect("a state is JSON")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_state(reader: &mut impl BufRead) -> Option<Value> {
    let mut lines = reader.lines().map_while(Result::ok);
    assert_eq!(lines.next()?, "event: state");
    let data = lines.next().expect("data after the event");
    assert_eq!(lines.next().as_deref(), Some(""));
    Some(serde_json::from_str(data.strip_prefix("data: ").expect("a data line")).expect("JSON"))
}

#[test]
fn the_seeds_simulation_goes_as_written() {
    let before = Scratch::new();
    let missing = UnixStream::connect(before.path().join("control")).expect_err("nothing there");
    assert_eq!(missing.kind(), ErrorKind::NotFound);

    let mut held = Held::start(&["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"]);
    let mut client = until("it listens", || held.connect().ok());
    let mut reader = BufReader::new(client.try_clone().expect("a second handle"));
    let first = next_state(&mut reader).expect("a state on connect");
    assert_eq!(first["status"], "UP");
    assert_eq!(first["container_process_state"]["up"], true);
    assert!(first["container_process_state"]["container_metrics"].is_object());
    let again = next_state(&mut reader).expect("another while connected");
    assert_eq!(again["status"], "UP");

    client.write_all(b"event: stop\n\n").expect("it reads");
    let last = next_state(&mut reader).expect("the last state");
    assert_eq!(last["status"], "DOWN");
    assert_eq!(last["container_process_state"]["up"], false);
    assert_eq!(last["container_process_state"]["exited"], true);
    assert_eq!(last["container_process_state"]["exit_status"], 0);
    assert_eq!(next_state(&mut reader), None, "then the stream ends");

    assert_eq!(held.child.wait().expect("our child").code(), Some(0));
    assert_eq!(held.state(), last);
    let refused = held.connect().expect_err("nobody listens any more");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_command_that_cannot_be_run_is_refused_and_explained() {
    let mut held = Held::start(&["/no/such/command"]);
    assert_eq!(held.child.wait().expect("our child").code(), Some(127));
    assert_eq!(held.connect().expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    let state = held.state();
    assert_eq!(state["status"], "DOWN");
    assert!(state["err"].as_str().expect("a reason").contains("no such file"), "{state}");
}
