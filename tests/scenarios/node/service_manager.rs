//! What the service manager that starts a node hears, at the socket that it names.

use mainstay_tests::{Scratch, Setup, signal};
use rustix::process::Signal;
use std::{os::unix::net::UnixDatagram, time::Duration};

struct Manager {
    socket: UnixDatagram,
    // Its directory lives as long.
    _scratch: Scratch,
}

impl Manager {
    /// Starts a node whose watchdog is to be fed every so many milliseconds.
    fn starts(config: &str, watchdog: u64) -> (mainstay_tests::Node, Manager) {
        let scratch = Scratch::new();
        let path = scratch.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        let watchdog = (watchdog * 1000).to_string();
        let setup = Setup::config(config).env("NOTIFY_SOCKET", &path);
        let node = setup.env("WATCHDOG_USEC", watchdog).start();
        (node, Manager { socket, _scratch: scratch })
    }

    fn hears(&self) -> String {
        let mut words = [0; 4096];
        let length = self.socket.recv(&mut words).expect("a word in time");
        String::from_utf8_lossy(&words[..length]).into_owned()
    }

    /// The first thing that has this line.
    fn until(&self, line: &str) -> String {
        loop {
            let words = self.hears();
            if words.lines().any(|it| it == line) {
                return words;
            }
        }
    }
}

#[test]
fn it_hears_of_the_start_of_reloads_and_of_the_end_with_its_time() {
    let config = |seconds: u32| {
        format!(
            "[jobs.web]\nexec = \"sleep {seconds}\"\nstop = {{ timeout = \"20s\" }}\n\
             [jobs.env]\nexec = [\"sh\", \"-c\", \"echo ${{NOTIFY_SOCKET:-none}} ${{WATCHDOG_USEC:-none}}\"]"
        )
    };
    let (mut node, manager) = Manager::starts(&config(1000), 60_000);
    assert_eq!(manager.until("READY=1"), "STATUS=running\nREADY=1");
    assert_eq!(node.until_logged("env", "none none"), ["none none"], "it is not theirs");

    node.configure(&config(1001));
    node.must(&["reload"]);
    let words = manager.until("RELOADING=1");
    assert!(words.contains("\nMONOTONIC_USEC="), "{words}");
    manager.until("READY=1");

    node.must(&["maintenance", "on"]);
    manager.until("STATUS=in maintenance");
    node.must(&["shutdown", "--no-wait"]);
    let words = manager.until("STOPPING=1");
    assert!(words.contains("EXTEND_TIMEOUT_USEC=23000000"), "20 s, 1 s and 2 s: {words}");
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn the_watchdog_is_fed_while_there_is_no_agent_and_after_an_upgrade() {
    let (mut node, manager) = Manager::starts("[jobs.web]\nexec = \"sleep 1000\"", 200);
    manager.until("READY=1");
    let agent = node.agent();
    signal(agent, Signal::STOP);
    (0..5).for_each(|_| drop(manager.until("WATCHDOG=1")));
    signal(agent, Signal::KILL);
    node.must(&["upgrade"]);
    (0..5).for_each(|_| drop(manager.until("WATCHDOG=1")));
    signal(node.keeper(), Signal::TERM);
    manager.until("STOPPING=1");
    node.wait();
}
