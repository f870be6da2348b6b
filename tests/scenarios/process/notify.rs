//! sd_notify: what jobs say about themselves, and who may say it.

use mainstay_tests::{Node, Setup, needs, until};
use serde_json::Value;
use std::os::unix::net::UnixDatagram;

const SAY: &str = "import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(sys.argv[1].encode(), os.environ['NOTIFY_SOCKET'])
if len(sys.argv) > 2: os.execvp('sleep', ['sleep', '1000'])
";

fn start(job: &str) -> Node {
    needs("python3");
    let scratch = mainstay_tests::Scratch::new();
    scratch.script("say.py", SAY);
    let node = Setup::config(format!("[node]\nexit = \"never\"\n{job}")).launch_in(scratch);
    node.wait_until_ready();
    node
}

fn said(node: &Node, field: &str) -> Option<String> {
    match &node.job("one")["notify"][field] {
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn until_said(node: &Node, field: &str, text: &str) {
    until(&format!("{field}={text} is known"), || {
        (said(node, field).as_deref() == Some(text)).then_some(())
    });
}

#[test]
fn what_a_job_says_is_in_its_status_and_outlives_the_agent() {
    let node = start(
        "[jobs.one]\nexec = [\"python3\", \"say.py\", \"READY=1\\nSTATUS=warm\\nUNKNOWN=x\", \"stay\"]\nnotify = true\n",
    );
    node.running("one");
    until_said(&node, "STATUS", "warm");
    assert_eq!(said(&node, "READY").as_deref(), Some("1"));
    assert_eq!(said(&node, "UNKNOWN"), None);
    let text = String::from_utf8(node.ask(&["status"]).stdout).expect("text");
    assert!(text.contains("one: warm"), "{text}");
    node.kill_agent();
    assert_eq!(said(&node, "STATUS").as_deref(), Some("warm"));
    node.must(&["upgrade"]);
    node.wait_until_ready();
    until_said(&node, "STATUS", "warm");
}

#[test]
fn systemd_notify_works_as_everywhere() {
    needs("systemd-notify");
    let node = start(
        "[jobs.one]\nexec = [\"sh\", \"-c\", \"systemd-notify --ready --status='all is well'; exec sleep 1000\"]\nnotify = true\n",
    );
    node.running("one");
    until_said(&node, "STATUS", "all is well");
}

#[test]
fn a_new_incarnation_begins_without_the_words_of_the_old_one() {
    let node = start(
        "[jobs.one]\nexec = [\"sh\", \"-c\", \"[ -e again ] || { touch again; python3 say.py STATUS=first; }; exec sleep 1000\"]\nnotify = true\n",
    );
    until_said(&node, "STATUS", "first");
    node.must(&["restart", "one"]);
    node.running("one");
    assert_eq!(said(&node, "STATUS"), None);
}

#[test]
fn others_may_not_speak_for_a_job() {
    let node = start(
        "[jobs.one]\nexec = [\"sh\", \"-c\", \"trap 'exec python3 say.py STATUS=genuine stay' USR1; echo up; while :; do sleep 0.05; done\"]\nnotify = true\n",
    );
    node.running("one");
    node.until_logged("one", "up");
    if node.job("one")["tree"] != "cgroup" {
        eprintln!("skipped: without cgroups whoever may write to the socket is believed");
        return;
    }
    let socket = UnixDatagram::unbound().expect("a socket");
    let path = node.run_dir().join("notify/one");
    socket.send_to(b"STATUS=forged\nERRNO=5", &path).expect("it may be written to");
    node.must(&["signal", "USR1", "one"]);
    until_said(&node, "STATUS", "genuine");
    assert_eq!(said(&node, "ERRNO"), None, "what came first from somebody else was refused");
}

#[test]
fn a_job_that_never_stops_talking_keeps_nobody_waiting() {
    let node = start(
        r#"
        [jobs.one]
        exec = ["python3", "-c", """
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
n = 0
while True:
    n += 1
    s.sendto(b'STATUS=%d' % n, os.environ['NOTIFY_SOCKET'])
"""]
        notify = true
        [jobs.other]
        exec = "sleep 1000"
    "#,
    );
    until("it talks", || said(&node, "STATUS"));
    for _ in 0..5 {
        node.must(&["restart", "other"]);
    }
    let before = said(&node, "STATUS");
    until("it still talks", || (said(&node, "STATUS") != before).then_some(()));
    assert!(mainstay_tests::proc::high_water(node.keeper()) < 48 << 10);
    assert!(mainstay_tests::proc::high_water(node.agent()) < 64 << 10);
}

#[test]
fn a_job_is_told_how_often_it_has_to_speak_and_not_how_often_we_have_to() {
    let config = r#"
        [jobs.told]
        exec = ["sh", "-c", "echo $WATCHDOG_USEC $${WATCHDOG_PID-none}"]
        health = { notify = true, interval = "3s" }
        [jobs.untold]
        exec = ["sh", "-c", "echo $${WATCHDOG_USEC-none} $${WATCHDOG_PID-none}"]
        health = { notify = true }
    "#;
    let mut node =
        Setup::config(config).env("WATCHDOG_USEC", "7").env("WATCHDOG_PID", "1").launch();
    node.wait();
    assert_eq!(node.log("told"), ["3000000 none"]);
    assert_eq!(node.log("untold"), ["none none"]);
}

#[test]
fn a_job_that_never_says_that_it_is_ready_is_shown_as_failing() {
    let node = start(
        "[jobs.one]\nexec = \"sleep 1000\"\n\
         health = [{ notify = true, timeout = \"50ms\" }, { fd = 3, timeout = \"50ms\" }]\n",
    );
    let job = until("both checks fail", || {
        let job = node.until_health("one", "unhealthy");
        let checks = job["checks"].as_array()?.iter();
        checks.into_iter().all(|check| check["state"] == "failing").then(|| job.clone())
    });
    assert_eq!(job["state"], "RUNNING");
    assert_eq!(job["checks"][0]["output"], "no READY=1 within 50ms");
    assert_eq!(job["checks"][1]["output"], "no newline on descriptor 3 within 50ms");
}
