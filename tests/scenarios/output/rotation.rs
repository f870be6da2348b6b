//! Log files are closed at a line's end, by size or on request; so many of them stay.

use mainstay_tests::{Node, Setup, needs, signal, until};
use rustix::process::Signal;
use std::{fs, path::Path, process::Command};

fn numbers(lines: &[String]) -> Vec<u64> {
    lines.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

fn ended(lines: u64, keep: &str) -> Node {
    let config = format!(
        "[log]\nforward = false\nkeep = {{ {keep} }}\n\
         [jobs.one]\nexec = \"seq -f '%.0f is a number, and this is some text' {lines}\"\n"
    );
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(0));
    node
}

#[test]
fn files_are_closed_by_size_at_a_lines_end_and_the_newest_stay() {
    let node = ended(5000, "size = \"32K\", files = 3");
    let files = node.log_files("one");
    assert_eq!(files.len(), 4, "{files:?}");
    for file in &files {
        let bytes = fs::read(file).expect("a log");
        assert!(bytes.len() <= 32 << 10 && bytes.ends_with(b"\n"));
    }
    let kept = numbers(&node.log("one"));
    assert_eq!(kept.last(), Some(&5000));
    assert!(kept.len() > 1000 && kept.len() < 2000, "{}", kept.len());
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "nothing is lost in between");
}

#[test]
fn no_closed_file_need_be_kept() {
    let node = ended(5000, "size = \"32K\", files = 0");
    assert_eq!(node.log_files("one").len(), 1);
    assert_eq!(numbers(&node.log("one")).last(), Some(&5000));
}

#[test]
fn a_next_run_goes_on_with_the_numbers_of_the_one_before() {
    let mut node = ended(2000, "size = \"32K\", files = 100");
    let before = node.log_files("one").len();
    node.launch_again();
    node.wait();
    assert!(node.log_files("one").len() >= 2 * before - 1);
    let all: Vec<u64> = (1..=2000).chain(1..=2000).collect();
    assert_eq!(numbers(&node.log("one")), all);
}

/// Says a line whenever it is told to.
const SPEAKER: &str = r#"
    [node]
    exit = "never"
    [log]
    forward = false
    keep = { KEEP }
    [jobs.one]
    exec = ["sh", "-c", "n=0; trap 'n=$((n+1)); echo $n is said' USR2; echo up; while :; do sleep 0.02; done"]
"#;

#[test]
fn a_signal_closes_all_files_and_agent_and_jobs_go_on() {
    let node = Setup::config(SPEAKER.replace("KEEP", "files = 5")).start();
    let pid = node.running("one");
    node.until_logged("one", "up");
    for round in 1..=3 {
        signal(node.keeper(), Signal::USR1);
        until("the file is closed", || {
            let files = node.log_files("one");
            (files.len() == round && !files.iter().any(|file| file.ends_with("current")))
                .then_some(())
        });
        node.must(&["signal", "USR2", "one"]);
        node.until_logged("one", &format!("{round} is said"));
    }
    assert_eq!(node.log("one"), ["up", "1 is said", "2 is said", "3 is said"]);
    assert_eq!(node.log_files("one").len(), 4);
    assert_eq!(node.pid("one"), Some(pid));
    assert!(node.log_files("mainstay").len() <= 5);
}

fn text_of(file: &Path) -> String {
    let output = Command::new("gzip").arg("-dc").arg(file).output().expect("gzip can be started");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn closed_files_are_compressed_also_those_of_a_dead_agent() {
    needs("gzip");
    let node = Setup::config(SPEAKER.replace("KEEP", "compress = true")).start();
    node.running("one");
    node.until_logged("one", "up");
    let packed = |node: &Node| {
        let files = node.log_files("one");
        files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|it| it == "gz"))
            .collect::<Vec<_>>()
    };
    signal(node.keeper(), Signal::USR1);
    let first = until("it is compressed", || Some(packed(&node)).filter(|files| files.len() == 1));
    assert!(text_of(&first[0]).ends_with(" F up\n"));
    until("and nothing else is left of it", || {
        let files = node.log_files("one");
        files
            .iter()
            .all(|file| file.ends_with("current") || packed(&node).contains(file))
            .then_some(())
    });

    node.must(&["signal", "USR2", "one"]);
    until("it has spoken", || {
        fs::read_to_string(node.state_dir().join("logs/one/current"))
            .ok()
            .filter(|text| text.contains("1 is said"))
    });
    // Closed while the agent cannot look, and then dies.
    let agent = node.agent();
    signal(agent, Signal::STOP);
    signal(node.keeper(), Signal::USR1);
    until("it is closed", || (!node.state_dir().join("logs/one/current").exists()).then_some(()));
    signal(agent, Signal::KILL);
    let both = until("the next agent compresses it", || {
        Some(packed(&node)).filter(|files| files.len() == 2)
    });
    assert!(text_of(&both[1]).contains("1 is said"));
}
