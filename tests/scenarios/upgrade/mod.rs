//! `mainstay upgrade`: the node goes on as another binary, and nobody notices.

use mainstay_tests::{Scratch, Setup, binary, until};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

#[test]
fn output_that_nobody_has_read_yet_goes_through_an_upgrade() {
    // More than a pipe holds, less than what makes a job wait.
    const LINES: u32 = 20_000;
    let scratch = Scratch::new();
    let fifo = scratch.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
        .expect("a scratch directory");
    let reader = rustix::fs::open(&fifo, OFlags::RDWR, Mode::empty()).expect("our own");
    let config = format!(
        "[node]\nexit = \"never\"\n[jobs.job]\nexec = [\"sh\", \"-c\", \"seq {LINES}; exec sleep 1000\"]"
    );
    let node = Setup::config(config).after(&format!("exec >{}", fifo.display())).start();
    node.until_logged("job", &LINES.to_string());
    node.must(&["upgrade"]);
    node.must(&["upgrade"]);
    let (sender, lines) = channel();
    let reader = BufReader::new(File::from(reader));
    thread::spawn(move || reader.lines().try_for_each(|line| sender.send(line.expect("text"))));
    for number in 1..=LINES {
        let line = lines.recv_timeout(Duration::from_secs(30)).expect("the next line");
        assert_eq!(line, format!("job | {number}"));
    }
}

#[test]
fn a_node_goes_on_as_the_binary_that_was_named_and_its_agent_with_it() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let (keeper, pid) = (node.keeper(), node.running("job"));
    let mut events = node.events();
    let copy = node.path().join("another");
    fs::copy(binary(), &copy).expect("a scratch directory");
    node.must(&["upgrade", &copy.display().to_string()]);
    events.wait_for("global", "upgraded");
    let runs = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    assert_eq!((node.keeper(), runs(keeper)), (keeper, Some(copy.clone())));
    until("the agent, too", || (runs(node.try_agent()?) == Some(copy.clone())).then_some(()));
    assert_eq!(node.running("job"), pid);

    // Replaced under its feet, and upgraded to what lies there now.
    fs::remove_file(&copy).expect("our own");
    fs::copy(binary(), &copy).expect("a scratch directory");
    node.must(&["upgrade"]);
    events.wait_for("global", "upgraded");
    assert_eq!((runs(keeper), node.running("job")), (Some(copy), pid));
}

#[test]
fn an_upgrade_leaves_no_descriptor_behind() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let open = || fs::read_dir(format!("/proc/{}/fd", node.keeper())).ok().map(Iterator::count);
    // The first may have been started with some of its own.
    node.must(&["upgrade"]);
    node.running("job");
    let before = open().expect("a keeper");
    node.must(&["upgrade"]);
    node.running("job");
    until("as many as before", || (open()? <= before).then_some(()));
}

#[test]
fn a_binary_that_is_none_is_refused_and_everything_goes_on() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let (agent, pid) = (node.agent(), node.running("job"));
    for binary in ["/bin/false", "/no/such/binary", "/etc/passwd"] {
        let output = node.ask(&["upgrade", binary]);
        assert_eq!(output.status.code(), Some(1), "{binary}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("runs on as it was"), "{said}");
    }
    assert_eq!((node.agent(), node.running("job")), (agent, pid));
}

#[test]
fn what_is_no_program_is_refused_with_what_it_is_and_waits_for_nobody() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let (keeper, pid) = (node.keeper(), node.running("job"));
    let scratch = Scratch::new();
    let fifo = scratch.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
        .expect("a scratch directory");
    let directory = scratch.path().to_owned();
    let neither = "neither a program for this machine nor a script";
    for (path, why) in [
        (scratch.script("empty", ""), neither),
        (scratch.script("text", "no program"), neither),
        (directory, "it is a directory"),
        (fifo, "it is a FIFO"),
    ] {
        let answer = node.ask(&["upgrade", &path.display().to_string()]);
        assert_eq!(answer.status.code(), Some(1));
        let told = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(told.contains(why) && told.contains(&path.display().to_string()), "{told}");
    }
    assert_eq!((node.keeper(), node.running("job")), (keeper, pid));
}

#[test]
fn a_program_that_is_no_mainstay_is_refused_although_it_ends_well() {
    let node = Setup::config("[node]\nexit = \"never\"\n[jobs.job]\nexec = \"sleep 1000\"").start();
    let pid = node.running("job");
    for program in ["/bin/true", "/bin/echo"] {
        let answer = node.ask(&["upgrade", program]);
        assert_eq!(answer.status.code(), Some(1));
        let told = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(told.contains("cannot take over"), "{told}");
    }
    assert_eq!(node.running("job"), pid);
}

#[test]
fn a_name_and_an_environment_that_are_no_text_go_through_an_upgrade_unchanged() {
    let config = r#"
        [node]
        exit = "never"
        [jobs.job]
        exec = ["sh", "-c", "printenv BYTES >>seen; exec sleep 1000"]
    "#;
    let script = r#"export BYTES=$'one \xff two'; exec -a $'stay\xfe' "$@""#;
    let node = Setup::config(config).under(&["bash", "-c", script, "bash"]).start();
    let pid = node.running("job");
    let name = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
    assert!(name(node.keeper()).starts_with(b"stay\xfe\0"));
    node.must(&["upgrade"]);
    assert_eq!(node.running("job"), pid);
    assert!(name(node.keeper()).starts_with(b"stay\xfe\0"));
    node.must(&["restart", "job"]);
    until("its second run has said it, too", || {
        let seen = fs::read(node.path().join("seen")).expect("it was written");
        (seen == b"one \xff two\none \xff two\n").then_some(())
    });
}
