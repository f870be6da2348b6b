//! No threads left, or some that hang: every question has an answer, from the same agent.

use mainstay_tests::{Node, Scratch, Setup, needs, needs_root, until, within};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Output, Stdio},
    time::Duration,
};

/// A user of our own: limits count all its processes.
pub(super) fn as_user(setup: Setup, uid: u32, processes: u32) -> Node {
    needs_root();
    needs("setpriv");
    needs("prlimit");
    let scratch = Scratch::new();
    scratch.give_to(uid);
    let id = uid.to_string();
    setup
        .under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        .under(&["prlimit", &format!("--nproc={processes}")])
        .launch_in(scratch)
}

/// More jobs than there are processes.
fn too_many_jobs(telemetry: u16) -> String {
    format!(
        r#"
    [node]
    exit = "never"
    stop_timeout = "3s"
    [log]
    forward = false
    [telemetry]
    listen = "127.0.0.1:{telemetry}"
    [jobs.other]
    exec = "sleep 1000"
"#
    ) + &(0..30)
        .map(|n| format!("[jobs.crowd{n}]\nexec = \"sleep 1000\"\nrestart = {{ on = \"any\", delay = \"300ms\" }}\n"))
        .collect::<String>()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The code of an answer to `GET path`.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("our own socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Begins a command and does not wait for it.
fn begin(node: &Node, args: &[&str]) -> Child {
    let mut command = node.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary can be started")
}

fn ended(what: &str, mut child: Child) -> Output {
    let status = within(Duration::from_secs(60), what, || child.try_wait().expect("our own child"));
    let mut output = child.wait_with_output().expect("it has ended");
    output.status = status;
    output
}

/// Done, or refused with a reason that names what was missing.
fn answers(node: &Node, args: &[&str]) {
    let output = ended(&format!("{args:?} is answered"), begin(node, args));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = ["thread", "wait for", "Resource temporarily unavailable"];
    let explained = refused.iter().any(|reason| said.contains(reason));
    assert!(output.status.success() || explained, "{args:?}: {said}");
}

#[test]
fn with_all_processes_used_up_the_same_agent_answers_everything() {
    let port = free_port();
    let mut node =
        as_user(Setup::config(too_many_jobs(port)), 63_000 + std::process::id() % 1000, 20);
    node.wait_until_ready();
    let agent = node.agent();
    until("there are no processes left", || {
        let refused = |n: u32| {
            let error = node.job(&format!("crowd{n}"))["exit"]["error"].clone();
            error.as_str().is_some_and(|error| error.contains("clone"))
        };
        (0..30).any(refused).then_some(())
    });
    for args in [
        &["plan"] as &[&str],
        &["reload"],
        &["status"],
        &["why", "other"],
        &["disable", "other"],
        &["enable", "other"],
    ] {
        // Some of them say by their code that a job is not as it should be.
        match args[0] {
            "status" | "why" => drop(node.ask(args)),
            _ => answers(&node, args),
        }
        assert_eq!(node.agent(), agent, "after {args:?}: {}", node.stderr());
    }
    assert!(["200", "503"].contains(&get(port, "/metrics").as_str()));
    assert_eq!(node.agent(), agent);
    assert_eq!(node.status()["agent_restarts"], 0);
    let jobs = node.status()["jobs"].clone();
    let running = jobs.as_array().into_iter().flatten().find(|job| job["state"] == "RUNNING");
    let running = running.expect("some run")["name"].as_str().expect("a name").to_owned();
    node.must(&["kill", &running]);
    node.must(&["stop", &running]);
    node.must(&["shutdown"]);
    assert!(node.wait().success() || node.stderr().contains("killed"), "{}", node.stderr());
}

/// A client of the API who asks for a log and reads nothing.
fn ask_for_log(node: &Node, job: &str) -> UnixStream {
    let mut stream = UnixStream::connect(node.run_dir().join("mainstay.sock")).expect("a socket");
    let request = format!("GET /v1/jobs/{job}/log?lines=all HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    stream
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo can be started").success());
}

#[test]
fn logs_that_would_be_waited_for_are_refused_and_nobody_else_waits() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = "sleep 1000"
        [jobs.user]
        exec = "sleep 1000"
        user = "nobody"
    "#;
    let node = Setup::config(config).start();
    node.running("user");
    let log = node.state_dir().join("logs/web");
    fs::create_dir_all(&log).expect("the state directory is ours");
    let _ = fs::remove_file(log.join("current"));
    make_fifo(&log.join("current"));
    let clients: Vec<UnixStream> = (0..12).map(|_| ask_for_log(&node, "web")).collect();
    // Whatever needs a thread of its own kind, while they are there.
    node.must(&["plan"]);
    node.must(&["reload"]);
    node.must(&["restart", "user"]);
    node.must(&["disable", "web"]);
    drop(clients);
    let refused = node.ask(&["logs", "web"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("FIFO"), "{refused:?}");
}
