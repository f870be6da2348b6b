//! Verdicts are true: of a check that cannot be ended, and beside names that nobody answers for.

use mainstay_tests::{Command, Setup, needs, needs_root, own_names, proc, until, within};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    path::PathBuf,
    thread,
    time::Duration,
};

/// A file system that is frozen: whoever writes there sleeps and cannot be killed.
struct Frozen(PathBuf);

impl Frozen {
    fn freeze(path: PathBuf) -> Frozen {
        let frozen = Frozen(path);
        frozen.run("-f");
        frozen
    }

    fn run(&self, flag: &str) {
        let done = Command::new("fsfreeze").arg(flag).arg(&self.0).status();
        assert!(done.expect("fsfreeze can be started").success());
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.run("-u");
    }
}

#[test]
fn an_exec_check_that_cannot_be_killed_has_failed_at_its_time() {
    needs_root();
    ["fsfreeze", "mkfs.ext4", "losetup"].into_iter().for_each(needs);
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = "sleep 1000"
        health = { name = "disk", exec = ["sh", "-c", "date > mnt/file"], interval = "300ms", timeout = "1s", fall = 1 }
    "#;
    let mounts = "truncate -s 16M image\nmkfs.ext4 -q image\nmkdir mnt\nmount -o loop image mnt";
    let node = Setup::config(config).with_mounts(mounts).start();
    node.until_health("web", "healthy");
    let frozen = Frozen::freeze(node.seen("mnt"));
    let mut events = node.events();
    within(Duration::from_secs(5), "the check has failed", || {
        (node.job("web")["health"] == "unhealthy").then_some(())
    });
    let check = node.job("web")["checks"][0].clone();
    assert_eq!(check["output"], "its time was up, and its process has not ended since");
    // It is asked again once its process is gone, and only then.
    drop(frozen);
    events.wait_for("web", "unhealthy");
    events.wait_for("web", "healthy");
    node.must(&["shutdown"]);
}

#[test]
fn a_check_whose_children_cannot_be_killed_leaves_one_of_them_and_not_one_each_time() {
    needs_root();
    ["fsfreeze", "mkfs.ext4", "losetup"].into_iter().for_each(needs);
    let config = r#"
        [node]
        exit = "never"
        [jobs.web]
        exec = "sleep 1000"
        health = { name = "disk", exec = ["sh", "-c", "echo >>rounds; date >mnt/file & wait"], interval = "100ms", timeout = "200ms", fall = 1 }
    "#;
    let mounts = "truncate -s 16M image\nmkfs.ext4 -q image\nmkdir mnt\nmount -o loop image mnt";
    let node = Setup::config(config).with_mounts(mounts).start();
    node.until_health("web", "healthy");
    let frozen = Frozen::freeze(node.seen("mnt"));
    let mut events = node.events();
    let last = || node.job("web")["checks"][0]["output"].as_str().unwrap_or_default().to_owned();
    within(Duration::from_secs(5), "it is not asked again", || {
        last().contains("what its last run has started has not ended").then_some(())
    });
    let stuck = || node.processes().into_iter().filter(|pid| is_stuck(*pid)).count();
    let rounds = || std::fs::read(node.path().join("rounds")).map_or(0, |it| it.len());
    let before = rounds();
    // As long as several rounds would take.
    (0..50).for_each(|_| assert!(last().contains("has not ended")));
    assert_eq!((stuck(), rounds()), (1, before));
    drop(frozen);
    events.wait_for("web", "unhealthy");
    events.wait_for("web", "healthy");
    node.must(&["shutdown"]);
}

/// It waits for a disk, and cannot be killed.
fn is_stuck(pid: u32) -> bool {
    proc::status(pid, "State").starts_with('D')
}

/// Answers everybody well.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    });
    port
}

#[test]
fn names_whose_servers_are_silent_delay_no_other_check() {
    const DEAD: usize = 12;
    needs_root();
    // A name server of our own that hears and says nothing.
    let [.., high, low] = std::process::id().to_be_bytes();
    let silent = Ipv4Addr::new(127, 77, high, low.max(1));
    let _server = UdpSocket::bind((silent, 53)).expect("nobody else has this address");
    let port = web_server();
    let check = |job: &str, host: &str| {
        format!(
            "[jobs.{job}]\nexec = \"sleep 1000\"\nhealth = {{ name = \"http\", http = \
             {{ url = \"http://{host}:{port}/\" }}, interval = \"200ms\", timeout = \"1s\", fall = 1 }}\n"
        )
    };
    let dead: String =
        (0..DEAD).map(|n| check(&format!("dead{n}"), &format!("dead{n}.test"))).collect();
    let known = check("web", "known.test");
    let node = Setup::config(format!("[node]\nexit = \"never\"\n{known}{dead}"))
        .with_mounts(&own_names(&silent.to_string(), "known.test"))
        .start();
    let mut events = node.events();
    events.wait_for("web", "healthy");
    until("every name without an answer has failed", || {
        let failed = |n: usize| node.job(&format!("dead{n}"))["checks"][0]["state"] == "failing";
        (0..DEAD).all(failed).then_some(())
    });
    // Several times more, with all of them under way.
    let since = node.status()["jobs"][0]["since"].clone();
    events.wait_for("dead0", "check");
    assert_eq!(node.job("web")["health"], "healthy", "since {since}");
    let all = node.must(&["events", "--json", "--since", "0"]);
    let unhealthy = |line: &str| line.contains("\"web\"") && line.contains("\"unhealthy\"");
    assert!(!all.lines().any(unhealthy), "{all}");
}
