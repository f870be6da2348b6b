//! Health: every kind of check, what it gates, and what a bad one does not disturb.

use super::{position, said};
use mainstay_tests::{Scratch, Setup, is_alive, signal, until};
use rustix::process::Signal;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    thread,
};

/// A web server in the hands of the test.
struct Server {
    port: u16,
    status: Arc<AtomicU16>,
}

impl Server {
    fn start(status: u16) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let status = Arc::new(AtomicU16::new(status));
        let current = status.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, current.load(Ordering::Relaxed));
            }
        });
        Server { port, status }
    }

    fn set(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

fn answer(mut stream: TcpStream, status: u16) {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request);
    let head = format!("HTTP/1.1 {status} Word\r\ncontent-length: 5\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all((head + "hello").as_bytes());
}

#[test]
fn an_http_check_gates_others_and_tells_when_it_turns() {
    let server = Server::start(503);
    let config = format!(
        r#"
        [node]
        exit = "never"
        [jobs.api]
        exec = ["sleep", "1000"]
        health = {{ name = "http", http = {{ url = "http://localhost:{}/", body_matches = "^hel+o$" }}, interval = "100ms", timeout = "10s" }}
        [jobs.client]
        exec = ["sleep", "1000"]
        when = {{ source = "api", once = "healthy" }}
        "#,
        server.port
    );
    let node = Setup::config(config).start();
    until("the check has failed", || {
        let output = node.job("api")["checks"][0]["output"].as_str()?.to_owned();
        output.contains("503").then_some(())
    });
    assert_eq!(node.job("client")["state"], "STOPPED");
    assert_eq!(node.ask(&["status"]).status.code(), Some(3));
    let mut events = node.events();
    server.set(200);
    events.wait_for("api", "healthy");
    let pid = node.running("client");
    assert_eq!(node.job("api")["checks"][0]["state"], "passing");
    server.set(500);
    events.wait_for("api", "unhealthy");
    server.set(201);
    events.wait_for("api", "healthy");
    assert_eq!(node.running("client"), pid, "a latch is not let go");
}

#[test]
fn every_kind_of_check_makes_its_job_healthy() {
    let server = Server::start(200);
    let config = format!(
        r#"
        [node]
        exit = "never"
        [jobs.tcp]
        exec = ["sleep", "1000"]
        health = {{ tcp = "127.0.0.1:{}" }}
        [jobs.exec]
        exec = ["sleep", "1000"]
        env = {{ WORD = "yes" }}
        health = {{ exec = ["sh", "-c", "test $WORD = yes"] }}
        [jobs.descriptor]
        exec = ["sh", "-c", "sleep 0.2; echo >&7; exec sleep 1000"]
        health = {{ fd = 7 }}
        [jobs.notify]
        exec = ["sh", "-c", "sleep 0.2; perl ./notify; exec sleep 1000"]
        health = {{ notify = true }}
        "#,
        server.port
    );
    let scratch = Scratch::new();
    scratch.script("notify", NOTIFY);
    let node = Setup::config(config).launch_in(scratch);
    for job in ["tcp", "exec", "descriptor", "notify"] {
        let healthy = node.until_health(job, "healthy");
        assert_eq!(healthy["checks"][0]["state"], "passing", "{healthy}");
    }
}

/// sd_notify without any tool but perl, which every Debian has.
const NOTIFY: &str = r#"
    use IO::Socket::UNIX;
    my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => $ENV{NOTIFY_SOCKET}) or die $!;
    print $socket "READY=1\n";
"#;

#[test]
fn a_check_that_hangs_is_killed_with_all_it_started_and_delays_nobody() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.slow]
        exec = ["sleep", "1000"]
        health = { exec = ["sh", "-c", "echo $$ >> pids; sleep 1000 & echo $! >> pids; wait"], interval = "5s", timeout = "300ms" }
        [jobs.tick]
        exec = "true"
        when = { interval = "50ms" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    let failing = until("the check has failed", || {
        let job = node.job("slow");
        (job["checks"][0]["state"] == "failing").then_some(job)
    });
    let output = failing["checks"][0]["output"].as_str().unwrap_or_default().to_owned();
    assert!(output.contains("time"), "{output}");
    let pids = std::fs::read_to_string(node.path().join("pids")).expect("it has written");
    let pids: Vec<u32> = pids.lines().take(2).map(|pid| pid.parse().expect("a pid")).collect();
    until("nobody of it is left", || (!pids.iter().any(|pid| is_alive(*pid))).then_some(()));
    for _ in 0..5 {
        events.wait_for("tick", "exitSuccess");
    }
    assert_eq!(node.job("slow")["state"], "RUNNING");
}

/// How often somebody has said something.
fn times(order: &[(String, String)], source: &str, event: &str) -> usize {
    order.iter().filter(|(by, what)| by == source && what == event).count()
}

#[test]
fn a_healthy_job_that_fails_for_good_is_told_as_unhealthy_once() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "sleep 0.3; exit 1"]
        restart = "never"
        health = { exec = "true", interval = "100ms", timeout = "10s" }
        when = { source = "well", once = "exitSuccess" }
        [jobs.well]
        exec = ["sleep", "0.3"]
        health = { exec = "true", interval = "100ms", timeout = "10s" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    events.wait_for("well", "stopped");
    events.wait_for("web", "stopped");
    let order = said(&events);
    assert!(position(&order, "web", "healthy") < position(&order, "web", "unhealthy"));
    assert_eq!(times(&order, "web", "unhealthy"), 1, "{order:?}");
    assert_eq!(times(&order, "well", "unhealthy"), 0, "an end as expected is none: {order:?}");
}

#[test]
fn a_crash_that_is_mended_in_time_is_no_verdict_and_one_that_is_not_is_one() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "[ ! -e broken ] || exit 1; exec sleep 1000"]
        restart = { delay = "50ms", max_delay = "50ms" }
        # What dies at once is not to pass before.
        health = { exec = ["sh", "-c", "[ ! -e broken ] || exec sleep 1000"], interval = "2s" }
        [jobs.follower]
        exec = ["sleep", "1000"]
        while = { source = "web" }
        [jobs.pager]
        exec = "echo paged"
        when = { source = "web", each = "unhealthy" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    events.wait_for("follower", "healthy");
    signal(node.running("web"), Signal::KILL);
    events.wait_for("web", "exitFailed");
    events.wait_for_all(&[("follower", "stopped"), ("web", "healthy")]);
    events.wait_for("follower", "healthy");
    assert_eq!(times(&said(&events), "web", "unhealthy"), 0, "{:?}", said(&events));

    std::fs::write(node.path().join("broken"), "").expect("the node's directory");
    signal(node.running("web"), Signal::KILL);
    events.wait_for("web", "unhealthy");
    events.wait_for("pager", "exitSuccess");
    for _ in 0..10 {
        events.wait_for("web", "exitFailed");
    }
    assert_eq!(times(&said(&events), "web", "unhealthy"), 1, "{:?}", said(&events));
    std::fs::remove_file(node.path().join("broken")).expect("it is there");
    events.wait_for("web", "healthy");
}

#[test]
fn the_time_for_a_verdict_goes_on_while_the_agent_is_replaced() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sh", "-c", "[ ! -e broken ] || exit 1; exec sleep 1000"]
        restart = { delay = "1h", max_delay = "1h" }
        health = { exec = "true", interval = "1s" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    events.wait_for("web", "healthy");
    signal(node.running("web"), Signal::KILL);
    events.wait_for("web", "exitFailed");
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    events.wait_for("web", "unhealthy");
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    node.must(&["start", "web"]);
    events.wait_for("web", "healthy");
    assert_eq!(times(&said(&events), "web", "unhealthy"), 1, "{:?}", said(&events));
}

#[test]
fn a_job_may_say_that_it_is_ready_after_an_upgrade_and_to_another_agent() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.late]
        exec = ["sh", "-c", "trap 'echo >&7' USR1; echo up; while :; do sleep 0.05; done"]
        health = { fd = 7 }
    "#;
    let node = Setup::config(config).start();
    let pid = node.running("late");
    until("it listens", || (node.log("late") == ["up"]).then_some(()));
    node.must(&["upgrade"]);
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    assert_eq!(node.job("late")["health"], "unknown");
    node.must(&["signal", "USR1", "late"]);
    node.until_health("late", "healthy");
    signal(node.agent(), Signal::KILL);
    assert_eq!(node.until_health("late", "healthy")["pid"], pid);
}

#[test]
fn what_a_check_prints_shows_no_secret_of_its_job() {
    let scratch = mainstay_tests::Scratch::new();
    let token = scratch.path().join("token");
    std::fs::write(&token, "hunter2-hunter2\n").expect("a scratch directory");
    let config = format!(
        r#"
        [node]
        exit = "never"
        [jobs.job]
        exec = "sleep 1000"
        env = {{ TOKEN = "${{file:{}}}", OPEN = "in the open" }}
        health = {{ exec = ["sh", "-c", "echo no entry with $TOKEN: $OPEN; exit 1"], interval = "100ms" }}
        reload = {{ exec = ["sh", "-c", "echo reloads with $TOKEN: $OPEN"] }}
        "#,
        token.display()
    );
    let node = Setup::config(config).launch_in(scratch);
    let job = node.until_health("job", "unhealthy");
    let output = job["checks"][0]["output"].as_str().expect("a text").to_owned();
    assert!(output.contains("no entry with [secret]: in the open"), "{output}");
    node.must(&["reload", "job"]);
    node.until_told("reloads with [secret]: in the open");
    let mut events = node.events();
    events.wait_for("job", "check");
    let said = [
        node.status().to_string(),
        node.stderr(),
        events.seen().iter().map(ToString::to_string).collect(),
        String::from_utf8(node.ask(&["status", "job"]).stdout).expect("text"),
    ];
    for text in said {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn what_a_check_says_cannot_steer_a_terminal() {
    let node = Setup::config(
        r#"
        [jobs.web]
        exec = ["sleep", "1000"]
        health = { exec = ["sh", "-c", "printf 'a\\033[31mb'; exit 1"], interval = "1s" }
        "#,
    )
    .start();
    let shown = until("it is shown", || {
        let output = node.ask(&["status"]).stdout;
        let text = String::from_utf8(output).expect("text");
        text.contains("fails").then_some(text)
    });
    assert!(shown.contains("a\\x1b[31mb") && !shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn in_maintenance_checks_rest_and_nobody_is_taken_down() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = ["sleep", "1000"]
        restart = { delay = "10ms" }
        health = { exec = ["sh", "-c", "echo asked >> asked; [ ! -e broken ]"], interval = "50ms", timeout = "10s" }
        [jobs.follower]
        exec = ["sleep", "1000"]
        while = { source = "web" }
        [jobs.again]
        exec = ["sleep", "1000"]
        while = { source = "web", on_loss = "restart" }
        [jobs.pager]
        exec = "echo paged"
        when = { source = "web", each = "unhealthy" }
        [jobs.cheer]
        exec = "echo well"
        when = { source = "web", each = "healthy" }
    "#;
    let node = Setup::config(config).start();
    let mut events = node.events();
    node.until_health("follower", "healthy");
    node.until_health("again", "healthy");
    until("it was cheered", || (node.log("cheer") == ["well"]).then_some(()));
    let pids = (node.running("follower"), node.running("again"));
    node.must(&["maintenance", "on"]);
    let asked = || std::fs::read_to_string(node.path().join("asked")).unwrap_or_default().len();
    let before = asked();
    std::fs::write(node.path().join("broken"), "").expect("the node's directory");
    signal(node.running("web"), Signal::KILL);
    events.wait_for("web", "exitFailed");
    let web = node.running("web");
    signal(node.agent(), Signal::KILL);
    node.wait_until_ready();
    let meanwhile = asked() - before;
    assert!(meanwhile <= "asked\n".len(), "one may have been under way, {meanwhile}");
    let before = asked();
    std::fs::remove_file(node.path().join("broken")).expect("it is there");
    node.must(&["maintenance", "off"]);
    until("it is asked at once", || (asked() > before).then_some(()));
    until("it passes", || (node.job("web")["checks"][0]["state"] == "passing").then_some(()));
    assert_eq!(node.running("web"), web);
    assert_eq!((node.running("follower"), node.running("again")), pids, "nobody was touched");
    assert_eq!(node.log("cheer"), ["well"], "a verdict that is the same is not said again");
    std::fs::write(node.path().join("broken"), "").expect("the node's directory");
    events.wait_for("web", "unhealthy");
    events.wait_for_all(&[("follower", "stopped"), ("pager", "exitSuccess")]);
    assert_eq!(times(&said(&events), "web", "unhealthy"), 1, "{:?}", said(&events));
}
