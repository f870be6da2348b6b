//! Many at once: clients of the event stream, and jobs on a reload that changes nothing.

use mainstay_tests::{Node, Setup, until};
use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

const CLIENTS: usize = 1000;

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

fn listen(node: &Node) -> UnixStream {
    let mut stream = UnixStream::connect(node.run_dir().join("mainstay.sock")).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    stream
}

fn read_until(stream: &mut UnixStream, text: &str) {
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let count = stream.read(&mut bytes).expect("an event");
        assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
}

#[test]
fn a_thousand_listeners_hear_everything_and_cost_little() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard });
    let config = "[node]\nexit = \"never\"\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n";
    let node = Setup::config(config).start();
    node.running("web");
    let before = resident_kib(node.agent());
    let mut streams: Vec<UnixStream> = (0..CLIENTS).map(|_| listen(&node)).collect();
    streams.iter_mut().for_each(|stream| read_until(stream, "from here"));
    node.must(&["maintenance", "on"]);
    streams.iter_mut().for_each(|stream| read_until(stream, "enterMaintenance"));
    let each = resident_kib(node.agent()).saturating_sub(before) * 1024 / CLIENTS as u64;
    assert!(each < 64 << 10, "{each} bytes for each listener");
    drop(streams);
    node.must(&["maintenance", "off"]);
}

#[test]
fn clients_that_are_gone_leave_nothing_behind() {
    let config = "[node]\nexit = \"never\"\n[jobs.web]\nexec = [\"sleep\", \"1000\"]\n";
    let node = Setup::config(config).start();
    node.running("web");
    let ask_often = || {
        for _ in 0..2 * CLIENTS {
            let path = node.run_dir().join("mainstay.sock");
            let mut stream = UnixStream::connect(path).expect("a socket");
            let request = b"GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            stream.write_all(request).expect("sent");
            stream.read_to_end(&mut Vec::new()).expect("an answer");
        }
        resident_kib(node.agent())
    };
    let before = ask_often();
    let grown = ask_often().saturating_sub(before);
    assert!(grown < 1024, "{grown} KiB more after {} more clients", 2 * CLIENTS);
}

#[test]
fn a_reload_that_changes_nothing_is_quick_with_a_thousand_jobs() {
    let mut config = "[node]\nexit = \"never\"\n".to_owned();
    for number in 0..1000 {
        // They wait forever, so that this test needs no thousand processes.
        config +=
            &format!("[jobs.job-{number}]\nexec = \"true\"\nwhen = {{ interval = \"1h\" }}\n");
    }
    let node = Setup::config(config).start();
    let settled = |job: &serde_json::Value| job["state"] == "EXITED";
    until("all have run", || {
        let status = node.status();
        status["jobs"].as_array().expect("a list").iter().all(settled).then_some(())
    });
    let began = Instant::now();
    let text = node.must(&["reload"]);
    assert!(text.contains("nothing"), "{text}");
    // Debug builds are slow; the real figure is in bench.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
