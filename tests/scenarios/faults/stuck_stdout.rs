//! Somebody holds our stdout and never reads it.

use mainstay_tests::{Scratch, Setup, until};
use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};

const LINES: u64 = 60_000;

#[test]
fn a_stuck_reader_costs_forwarded_lines_but_stops_no_job_and_is_told_how_many() {
    let config = format!(
        r#"
        [node]
        exit = "never"
        [jobs.talker]
        exec = ["sh", "-c", "seq -f 'line %09.0f of some length, so that they add up' {LINES}; touch written; read again <>say; echo last; exec sleep 1000"]
        log = {{ keep = {{ size = "100M" }} }}
    "#
    );
    let scratch = Scratch::new();
    let made = std::process::Command::new("mkfifo")
        .args(["out", "say"])
        .current_dir(scratch.path())
        .status();
    assert!(made.expect("mkfifo can be started").success());
    // Both ends, so that opening the other one does not wait for anybody.
    let mut reader = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(scratch.path().join("out"))
        .expect("a fifo");
    let node = Setup::config(config).after("exec >out").launch_in(scratch);
    node.wait_until_ready();
    let pid = node.running("talker");

    // The job gets rid of everything, and all of it is in its log.
    until("the talker is not held up", || node.path().join("written").exists().then_some(()));
    until("all of it is in the log", || {
        (node.job("talker")["log"]["lines"].as_u64() == Some(LINES)).then_some(())
    });
    let log = node.log("talker");
    assert_eq!(log.len() as u64, LINES);
    let dropped = node.status()["keeper"]["forward_dropped"].as_u64().expect("a count");
    assert!(dropped > LINES / 2, "{dropped}");
    let text = String::from_utf8(node.ask(&["status"]).stdout).expect("text");
    assert!(text.contains(&format!("{dropped} lines were not forwarded")), "{text}");

    // It reads again: what follows says how much is missing.
    let mut read = String::new();
    let mut more = || {
        let mut bytes = [0; 64 << 10];
        match reader.read(&mut bytes) {
            Ok(count) => read.push_str(&String::from_utf8_lossy(&bytes[..count])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        read.clone()
    };
    until("what was queued comes out", || {
        let text = more();
        let queued = text.matches("talker | line").count() as u64;
        (queued + dropped >= LINES).then_some(())
    });
    std::fs::write(node.path().join("say"), "go\n").expect("a fifo");
    let text = until("the last line comes out", || {
        Some(more()).filter(|text| text.contains("talker | last\n"))
    });
    assert!(
        text.contains(&format!("mainstay | {dropped} lines were not forwarded\n")),
        "{dropped}"
    );
    assert_eq!(text.matches("talker | line").count() as u64 + dropped, LINES);
    assert_eq!(node.pid("talker"), Some(pid));
}
