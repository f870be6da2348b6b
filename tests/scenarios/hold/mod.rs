//! `mainstay hold`: the seed's simulation with a plain socket, line by line.

mod orphans;

use mainstay_tests::{Command, Scratch, binary, until};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
};

struct HoldCommand {
    scratch: Scratch,
    child: Child,
}

impl HoldCommand {
    fn start(command: &[&str]) -> HoldCommand {
        let scratch = Scratch::new();
        let child = Command::new(binary())
            .args(["hold", "--stop-timeout", "300ms", "--"])
            .args(command)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("the binary can be started");
        HoldCommand { scratch, child }
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.scratch.path().join("control"))
    }

    fn state(&self) -> Value {
        let text = fs::read(self.scratch.path().join("state")).expect("there is a state");
        serde_json::from_slice(&text).expect("a state is JSON")
    }
}

impl Drop for HoldCommand {
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

    let mut held =
        HoldCommand::start(&["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"]);
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
    let mut held = HoldCommand::start(&["/no/such/command"]);
    assert_eq!(held.child.wait().expect("our child").code(), Some(127));
    assert_eq!(held.connect().expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    let state = held.state();
    assert_eq!(state["status"], "DOWN");
    assert!(state["err"].as_str().expect("a reason").contains("no such file"), "{state}");
}

#[test]
fn a_socket_that_cannot_be_made_is_told_on_stderr_and_in_the_state() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("control/taken")).expect("a scratch directory");
    let output = Command::new(binary())
        .args(["hold", "--", "cat", "state"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary can be started");
    assert_eq!(output.status.code(), Some(0), "the command runs all the same");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cannot make the control socket"), "{told}");
    let state: Value = serde_json::from_slice(&fs::read(scratch.path().join("state")).expect("it"))
        .expect("a state is JSON");
    assert_eq!(state["status"], "DOWN");
    assert!(state["err"].as_str().is_some_and(|err| err.contains("control socket")), "{state}");
    let left: Vec<_> = fs::read_dir(scratch.path())
        .expect("ours")
        .map(|it| it.expect("ours").file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_state_that_cannot_be_written_is_told_on_stderr() {
    mainstay_tests::needs_root();
    let scratch = Scratch::new();
    let dir = scratch.path().display();
    let script = format!(
        "mount -t tmpfs -o size=64k,mode=755 tmpfs {dir}
         head -c 65536 /dev/zero > {dir}/filler 2>/dev/null || true
         cd {dir}; exec {} hold -- true",
        binary().display()
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .expect("unshare");
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cannot write the state file"), "{told}");
}
