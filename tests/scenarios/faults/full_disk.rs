//! A disk that is full: under the logs, and under the run directory.

use mainstay_tests::{Events, Node, Setup, needs_root, signal, until, within};
use rustix::process::Signal;
use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

/// Takes all the room that is left.
pub(super) fn fill(path: &Path) {
    let mut file =
        OpenOptions::new().create(true).append(true).open(path).expect("an inode is left");
    for size in [4096, 1] {
        while file.write_all(&[b'x'; 4096][..size]).is_ok() {}
    }
}

/// Says lines from one number to another whenever it is told to by its fifo.
const SPEAKER: &str = r#"
    [node]
    exit = "never"
    [log]
    forward = false
    keep = { size = "64K", files = 100 }
    [jobs.speaker]
    exec = ["sh", "-c", "while read from to; do seq -f 'line %09.0f of some length, so that they add up' $from $to; done <>say"]
    [jobs.bystander]
    exec = "sleep 1000"
"#;

struct Speaker {
    node: Node,
    said: u64,
}

impl Speaker {
    fn say(&mut self, count: u64) {
        let mut fifo = OpenOptions::new().write(true).open(self.node.path().join("say"));
        let (from, to) = (self.said + 1, self.said + count);
        fifo.as_mut()
            .expect("a fifo")
            .write_all(format!("{from} {to}\n").as_bytes())
            .expect("said");
        self.said = to;
        until("the keeper has taken it", || {
            let log = self.node.job("speaker")["log"].clone();
            (log["lines"].as_u64() == Some(to)).then_some(())
        });
    }

    fn dropped(&self) -> u64 {
        self.node.job("speaker")["log"]["dropped"].as_u64().expect("a count")
    }

    /// The numbers that are in the log, oldest first; a gap line is `Err`.
    fn log(&self) -> Vec<Result<u64, String>> {
        let lines = self.node.log("speaker");
        lines
            .into_iter()
            .map(|line| match line.strip_prefix("line ") {
                Some(rest) => Ok(rest[..9].parse().expect("a number")),
                None => Err(line),
            })
            .collect()
    }

    fn archives(&self) -> Vec<PathBuf> {
        let mut files = self.node.log_files("speaker");
        files.pop();
        files
    }
}

/// What the gap lines say; each says exactly how many numbers are missing where it stands.
fn told(log: &[Result<u64, String>]) -> Vec<u64> {
    let mut told = Vec::new();
    for (index, line) in log.iter().enumerate() {
        let Err(text) = line else { continue };
        let count: u64 =
            text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a count");
        told.push(count);
        if let (Some(Ok(before)), Some(Ok(after))) =
            (index.checked_sub(1).map(|index| &log[index]), log.get(index + 1))
        {
            assert_eq!(after - before - 1, count, "{text}");
        }
    }
    told
}

/// What the events say, all of them together, once they say as much as this.
fn lost(events: &mut Events, dropped: u64) -> u64 {
    let lines = |event: &serde_json::Value| event["detail"]["lines"].as_u64().expect("a count");
    let seen = events.seen().iter().filter(|event| event["event"] == "logGap");
    let mut lost: u64 = seen.map(lines).sum();
    while lost < dropped {
        lost += lines(&events.wait_for("speaker", "logGap"));
    }
    lost
}

#[test]
fn a_gap_that_goes_on_over_upgrades_counts_every_line() {
    needs_root();
    let node = Setup::config(SPEAKER).with_mounts(
        "mkfifo say; mkdir -p \"$MAINSTAY_STATE_DIR\"
         mount -t tmpfs -o size=1m,mode=755 none \"$MAINSTAY_STATE_DIR\"",
    );
    let node = node.start();
    let pid = node.running("speaker");
    let mut events = node.events();
    let mut speaker = Speaker { node, said: 0 };
    let filling = speaker.node.seen("state").join("filling");
    speaker.say(10);
    while speaker.dropped() == 0 {
        fill(&filling);
        speaker.say(200);
        assert!(speaker.said < 60_000, "the disk does not get full");
    }
    fill(&filling);
    for _ in 0..2 {
        speaker.node.must(&["upgrade"]);
        fill(&filling);
        speaker.say(300);
    }
    let dropped = speaker.dropped();
    assert!(dropped >= 600, "{dropped}");
    fs::remove_file(&filling).expect("our own file");
    speaker.say(10);
    assert_eq!(speaker.dropped(), dropped);
    let log = speaker.log();
    // The last page of a file may have room for a line about lines for which it has none.
    assert_eq!(told(&log).iter().sum::<u64>(), dropped);
    assert_eq!(log.last(), Some(&Ok(speaker.said)));
    assert_eq!(lost(&mut events, dropped), dropped);
    assert_eq!(speaker.node.pid("speaker"), Some(pid));
}

#[test]
fn a_full_state_directory_costs_the_oldest_archives_then_lines_and_one_line_tells_of_the_gap() {
    needs_root();
    let node = Setup::config(SPEAKER).with_mounts(
        "mkfifo say; mkdir -p \"$MAINSTAY_STATE_DIR\"
         mount -t tmpfs -o size=1m,mode=755 none \"$MAINSTAY_STATE_DIR\"",
    );
    let node = node.start();
    let (pid, bystander, agent) =
        (node.running("speaker"), node.running("bystander"), node.agent());
    let mut events = node.events();
    let mut speaker = Speaker { node, said: 0 };
    let filling = speaker.node.seen("state").join("filling");

    speaker.say(3000);
    let before = speaker.archives();
    assert!(before.len() > 3, "{before:?}");
    fill(&filling);
    speaker.say(500);
    assert_eq!(speaker.dropped(), 0, "archives make room");
    let after = speaker.archives();
    assert!(!after.contains(&before[0]) && after.contains(&before[before.len() - 1]), "{after:?}");
    assert_eq!(speaker.log().last(), Some(&Ok(3500)));

    // Nothing left to remove: lines are lost, and counted.
    while speaker.dropped() == 0 {
        fill(&filling);
        speaker.say(200);
        assert!(speaker.said < 60_000, "the disk does not get full");
    }
    fill(&filling);
    speaker.say(1000);
    events.wait_for("speaker", "logGap");
    speaker.node.until_told("the output of speaker cannot be written");
    let dropped = speaker.dropped();
    assert!(dropped >= 1000);
    assert_eq!(speaker.node.agent(), agent);
    assert_eq!(speaker.node.pid("bystander"), Some(bystander));

    fs::remove_file(&filling).expect("our own file");
    speaker.say(10);
    assert_eq!(speaker.dropped(), dropped, "room again: nothing more is lost");
    let log = speaker.log();
    let last_gap = log.iter().rposition(Result::is_err).expect("a gap line");
    let tail: Vec<u64> =
        log[last_gap + 1..].iter().map(|line| *line.as_ref().expect("a line")).collect();
    assert_eq!(tail, (speaker.said - 9..=speaker.said).collect::<Vec<_>>());
    assert_eq!(told(&log).iter().sum::<u64>(), dropped);
    assert_eq!(lost(&mut events, dropped), dropped);
    assert_eq!(speaker.node.pid("speaker"), Some(pid));
}

#[test]
fn a_log_that_somebody_has_emptied_holds_no_zeros_after_a_full_disk() {
    needs_root();
    let node = Setup::config(SPEAKER).with_mounts(
        "mkfifo say; mkdir -p \"$MAINSTAY_STATE_DIR\"
         mount -t tmpfs -o size=256k,mode=755 none \"$MAINSTAY_STATE_DIR\"",
    );
    let mut speaker = Speaker { node: node.start(), said: 0 };
    let current = speaker.node.state_dir().join("logs/speaker/current");
    let filling = speaker.node.state_dir().join("filling");
    speaker.say(300);
    OpenOptions::new().write(true).open(&current).and_then(|it| it.set_len(0)).expect("emptied");
    while speaker.dropped() == 0 {
        fill(&filling);
        speaker.say(200);
        assert!(speaker.said < 60_000, "the disk does not get full");
    }
    fs::remove_file(&filling).expect("our own file");
    let dropped = speaker.dropped();
    speaker.say(10);
    let text = fs::read(&current).expect("a log");
    assert!(!text.contains(&0), "{} zeros", text.iter().filter(|byte| **byte == 0).count());
    let log = speaker.log();
    assert_eq!(log.last(), Some(&Ok(speaker.said)));
    assert_eq!(told(&log).iter().sum::<u64>(), dropped);
}

/// Our stdout is a file on a disk with little room.
fn forwarding() -> (Speaker, PathBuf, PathBuf) {
    needs_root();
    let node = Setup::config(SPEAKER.replace("forward = false", "forward = true")).with_mounts(
        "mkfifo say; mkdir out; mount -t tmpfs -o size=3m,mode=755 none out; exec >out/stdout",
    );
    let node = node.start();
    node.running("speaker");
    let out = node.seen("out");
    (Speaker { node, said: 0 }, out.join("stdout"), out.join("filling"))
}

/// Waits until a line was forwarded; the numbers, and how many are said to be missing in between.
fn forwarded(file: &Path, last: u64) -> (Vec<u64>, u64) {
    let text = until("the last line was forwarded", || {
        let text = fs::read_to_string(file).expect("text");
        text.contains(&format!("line {last:09} of")).then_some(text)
    });
    let (mut numbers, mut missing) = (Vec::new(), 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("speaker | line ") {
            assert!(rest.ends_with(" of some length, so that they add up"), "cut: {line}");
            numbers.push(rest[..9].parse().expect("a number"));
        } else {
            let count = line.strip_prefix("mainstay | ").and_then(|rest| rest.split(' ').next());
            missing += count.and_then(|it| it.parse::<u64>().ok()).expect("what is missing");
        }
    }
    (numbers, missing)
}

#[test]
fn a_stdout_on_a_disk_that_was_full_goes_on_where_it_was_and_lacks_nothing() {
    let (mut speaker, file, filling) = forwarding();
    speaker.say(10);
    fill(&filling);
    speaker.say(2000);
    fs::remove_file(&filling).expect("our own file");
    speaker.say(10);
    let (numbers, missing) = forwarded(&file, speaker.said);
    assert_eq!((numbers, missing), ((1..=2020).collect(), 0));
}

#[test]
fn a_stdout_on_a_disk_that_is_full_for_long_says_how_much_it_lacks() {
    let (mut speaker, file, filling) = forwarding();
    fill(&filling);
    speaker.say(30_000);
    let status = speaker.node.status();
    let dropped = status["keeper"]["forward_dropped"].as_u64().expect("a count");
    assert!(dropped > 1000, "{dropped}");
    fs::remove_file(&filling).expect("our own file");
    until("what was kept is forwarded", || {
        let text = fs::read_to_string(&file).expect("text");
        (text.matches(", so that they add up\n").count() as u64 + dropped == 30_000).then_some(())
    });
    speaker.say(10);
    let (numbers, missing) = forwarded(&file, speaker.said);
    assert_eq!((numbers.len() as u64 + dropped, missing), (30_010, dropped));
    assert!(numbers.is_sorted());
}

#[test]
fn a_short_line_does_not_slip_in_before_the_word_about_those_that_are_missing() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [log]
        forward = false
        [jobs.echo]
        exec = ["sh", "-c", "exec cat <>say"]
    "#;
    let node = Setup::config(config)
        .with_mounts(
            "mkfifo say; mkdir -p \"$MAINSTAY_STATE_DIR\"
             mount -t tmpfs -o size=64k,mode=755 none \"$MAINSTAY_STATE_DIR\"",
        )
        .start();
    node.running("echo");
    let mut fifo = OpenOptions::new().write(true).open(node.path().join("say")).expect("a fifo");
    let mut said: u64 = 0;
    let mut say = |more: &str| {
        said += 1;
        fifo.write_all(format!("{said} {more}\n").as_bytes()).expect("said");
        until("the keeper has taken it", || {
            (node.job("echo")["log"]["lines"].as_u64() == Some(said)).then_some(())
        });
        said
    };
    let filling = node.state_dir().join("filling");
    say("first");
    fill(&filling);
    // What is left of the last page takes short lines when it has no room for long ones.
    for _ in 0..60 {
        say(&"x".repeat(3000));
        say("");
    }
    fs::remove_file(&filling).expect("our own file");
    let last = say("last");
    let mut next = 1;
    for line in node.log("echo") {
        match line.strip_prefix("mainstay: ") {
            Some(gap) => {
                let missing: u64 =
                    gap.split(' ').next().and_then(|it| it.parse().ok()).expect("a count");
                next += missing;
            }
            None => {
                let number: u64 =
                    line.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
                assert_eq!(number, next, "what is missing is told where it is missing");
                next += 1;
            }
        }
    }
    assert_eq!(next, last + 1);
}

#[test]
fn a_full_run_directory_touches_no_job_and_the_node_recovers_when_there_is_room() {
    needs_root();
    let config = r#"
        [node]
        exit = "never"
        [jobs.one]
        exec = "sleep 1000"
        [jobs.two]
        exec = "sleep 1000"
    "#;
    let node = Setup::config(config)
        .with_mounts(
            "mkdir -p \"$MAINSTAY_RUN_DIR\"
             mount -t tmpfs -o size=512k,mode=711 none \"$MAINSTAY_RUN_DIR\"",
        )
        .start();
    let (one, two) = (node.running("one"), node.running("two"));
    let filling = node.run_dir().join("filling");
    fill(&filling);

    // Jobs can be stopped, started and talked to; what cannot be written is said.
    node.must(&["restart", "two"]);
    let another = node.running("two");
    assert_ne!(another, two);
    let state = node.control("two").next_state().expect("a state on connect");
    assert_eq!(state["status"], "UP");
    node.until_told("two: cannot write the state file");
    until("the journal has no room either", || {
        fill(&filling);
        node.must(&["restart", "two"]);
        node.stderr().contains("going on without it").then_some(())
    });
    let another = node.running("two");

    // An agent that dies now is replaced, and finds the jobs that run.
    node.kill_agent();
    assert_eq!((node.running("one"), node.running("two")), (one, another));
    node.must(&["stop", "two"]);

    fs::remove_file(&filling).expect("our own file");
    until("the journal is taken up again", || {
        node.must(&["restart", "two"]);
        node.stderr().contains("the journal can be written again").then_some(())
    });
    let two = node.running("two");
    signal(node.agent(), Signal::KILL);
    assert_eq!((node.running("one"), node.running("two")), (one, two));
    let state = File::open(node.run_dir().join("jobs/two/state")).expect("it is there again");
    let state: serde_json::Value = serde_json::from_reader(state).expect("JSON");
    assert!(state["err"].is_null(), "{state}");
}

/// Several times as many ends as the room in reserve holds, while nothing else is left.
#[test]
fn a_full_run_directory_costs_no_event_and_no_wish_however_often_the_agent_dies() {
    needs_root();
    let ends = "[jobs.ends]\nexec = \"true\"\nrestart = { on = \"any\", delay = \"0s\" }\n";
    let mount = "mkdir -p \"$MAINSTAY_RUN_DIR\"
         mount -t tmpfs -o size=8m,mode=711 none \"$MAINSTAY_RUN_DIR\"";
    let mut node = Setup::config(format!("{TWO}{ends}")).with_mounts(mount).start();
    let mut events = node.events();
    let one = node.running("one");
    node.running("two");
    let filling = node.run_dir().join("filling");
    fill(&filling);
    let started_anew = || {
        let journal = fs::read(node.run_dir().join("journal")).unwrap_or_default();
        let second = journal.split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        second.windows(10).any(|it| it == b"\"snapshot\"").then_some(second.len())
    };
    let mut last = None;
    for _ in 0..3 {
        within(Duration::from_secs(60), "the journal begins anew in its reserve", || {
            started_anew().filter(|it| last != Some(*it)).map(|it| last = Some(it))
        });
        fill(&filling);
        node.must(&["stop", "two"]);
        node.kill_agent();
        node.until_state("two", "STOPPED");
        node.must(&["start", "two"]);
        node.running("two");
    }
    assert_eq!(node.running("one"), one);
    assert!(!node.stderr().contains("going on without it"), "{}", node.stderr());
    assert!(node.status()["journal_lost"].is_null());
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
    for (number, event) in (1..).zip(events.to_end()) {
        assert_eq!(event["seq"], number, "an event is lost or repeated at {event}");
    }
}

/// A node whose run directory has little room.
fn cramped(config: &str) -> Node {
    let mount = "mkdir -p \"$MAINSTAY_RUN_DIR\"
         mount -t tmpfs -o size=64k,mode=711 none \"$MAINSTAY_RUN_DIR\"";
    Setup::config(config).with_mounts(mount).start()
}

/// Takes the room of the journal away; `two` is restarted for that.
fn fill_until_the_journal_fails(node: &Node) -> PathBuf {
    let filling = node.run_dir().join("filling");
    until("the journal has no room", || {
        fill(&filling);
        node.must(&["restart", "two"]);
        node.stderr().contains("going on without it").then_some(())
    });
    filling
}

const TWO: &str = r#"
    [node]
    exit = "never"
    [jobs.one]
    exec = "sleep 1000"
    [jobs.two]
    exec = "sleep 1000"
"#;

#[test]
fn an_end_that_the_journal_has_no_room_for_is_kept_for_the_next_agent() {
    needs_root();
    let mut node = cramped(TWO);
    let one = node.running("one");
    let filling = fill_until_the_journal_fails(&node);
    node.must(&["stop", "two"]);
    node.until_state("two", "STOPPED");

    node.kill_agent();
    node.until_state("two", "STOPPED");
    fs::remove_file(&filling).expect("our own file");
    node.must(&["start", "two"]);
    node.running("two");
    assert_eq!(node.running("one"), one);
    node.must(&["shutdown"]);
    assert_eq!(node.wait().code(), Some(0));
}

#[test]
fn a_journal_is_taken_up_again_without_anything_happening() {
    needs_root();
    let node = cramped(TWO);
    let filling = fill_until_the_journal_fails(&node);
    node.must(&["stop", "two"]);
    node.until_state("two", "STOPPED");
    fs::remove_file(&filling).expect("our own file");
    node.until_told("the journal can be written again");
    node.kill_agent();
    node.until_state("two", "STOPPED");
}

#[test]
fn a_plan_without_any_room_costs_no_event_number_and_starts_no_stopped_job() {
    needs_root();
    let node = cramped(&format!("{TWO}env = {{ LARGE = '{}' }}", "x".repeat(100_000)));
    node.running("two");
    node.until_told("has no room for the plan in force");
    node.must(&["stop", "two"]);
    node.until_state("two", "STOPPED");
    let incarnation = node.job("two")["incarnation"].clone();
    let before = last_number(&node);
    let one = node.running("one");

    node.kill_agent();
    node.until_told("going on with the configuration as it is now");
    node.until_state("two", "STOPPED");
    assert_eq!(node.job("two")["incarnation"], incarnation);
    assert_eq!(node.running("one"), one);
    let mut events = node.events();
    node.must(&["start", "two"]);
    // What was told before may be told again to who follows from the first.
    let event = events.wait("two runs again", |event| {
        let (from, detail) = (&event["source"], &event["detail"]);
        let anew = detail["incarnation"].as_u64() > incarnation.as_u64();
        from == "two" && detail["to"] == "RUNNING" && anew
    });
    assert!(event["seq"].as_u64() > Some(before), "{event} after {before}");
}

/// The number of an event that has just happened.
fn last_number(node: &Node) -> u64 {
    node.must(&["restart", "one"]);
    let told = node.must(&["events", "--json", "--since", "0"]);
    let last = told.lines().last().expect("an event");
    let last: serde_json::Value = serde_json::from_str(last).expect("JSON");
    last["seq"].as_u64().expect("a number")
}

#[test]
fn a_run_directory_without_any_room_is_refused_with_its_reason() {
    needs_root();
    let mut node = Setup::command(&["true"])
        .with_mounts(
            "mkdir -p \"$MAINSTAY_RUN_DIR\"
             mount -t tmpfs -o size=4k,mode=711 none \"$MAINSTAY_RUN_DIR\"
             head -c 4096 /dev/zero > \"$MAINSTAY_RUN_DIR/filling\"",
        )
        .launch();
    assert_eq!(node.wait().code(), Some(1));
    assert!(node.stderr().contains("No space left on device"), "{}", node.stderr());
}
