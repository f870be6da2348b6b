//! The content of log files.

use mainstay_tests::{Node, Setup};
use std::fs;

/// Runs one job to its end.
fn ended(script: &str, settings: &str) -> Node {
    let config = format!("[jobs.one]\nexec = [\"sh\", \"-c\", '''{script}''']\n{settings}\n");
    let mut node = Setup::config(config).launch();
    node.wait();
    node
}

fn current(node: &Node) -> Vec<u8> {
    fs::read(node.state_dir().join("logs/one/current")).expect("a log")
}

/// Time, stream, kind and text of every entry.
fn entries(node: &Node) -> Vec<(String, String, String, Vec<u8>)> {
    let bytes = current(node);
    assert!(bytes.ends_with(b"\n"), "the last entry is whole");
    let lines = bytes[..bytes.len() - 1].split(|byte| *byte == b'\n');
    lines
        .map(|line| {
            let mut fields = line.splitn(4, |byte| *byte == b' ');
            let mut text =
                || String::from_utf8(fields.next().expect("a field").to_vec()).expect("text");
            let (time, stream, kind) = (text(), text(), text());
            (time, stream, kind, fields.next().expect("a text").to_vec())
        })
        .collect()
}

#[test]
fn stdout_and_stderr_are_in_one_file_in_the_order_of_writing() {
    let node = ended("for i in $(seq 500); do echo out $i; echo err $i >&2; done", "");
    let expected: Vec<String> =
        (1..=500).flat_map(|i| [format!("out {i}"), format!("err {i}")]).collect();
    assert_eq!(node.log("one"), expected);
    let times: Vec<String> = entries(&node).into_iter().map(|entry| entry.0).collect();
    assert!(times.is_sorted());
    assert!(times.iter().all(|time| time.parse::<jiff::Timestamp>().is_ok() && time.len() == 30));
    assert!(entries(&node).iter().all(|entry| entry.1 == "stdout" && entry.2 == "F"));
}

#[test]
fn separate_streams_are_marked() {
    let node = ended("echo out; echo err >&2", "stderr = \"separate\"");
    let mut seen: Vec<(String, Vec<u8>)> =
        entries(&node).into_iter().map(|entry| (entry.1, entry.3)).collect();
    seen.sort();
    let pair = |stream: &str, text: &str| (stream.to_owned(), text.as_bytes().to_vec());
    assert_eq!(seen, [pair("stderr", "err"), pair("stdout", "out")]);
}

#[test]
fn a_raw_file_holds_what_was_written_byte_by_byte() {
    let script = "printf 'a\\nb b\\n\\n'; head -c 200000 /dev/zero; printf '\\nend\\n'";
    let node = ended(script, "log = { file = \"raw\" }");
    let mut expected = b"a\nb b\n\n".to_vec();
    expected.extend(vec![0; 200_000]);
    expected.extend(b"\nend\n");
    assert!(current(&node) == expected);
}

#[test]
fn without_a_file_there_is_none_and_output_is_forwarded_all_the_same() {
    let node = ended("echo text", "log = { file = \"none\" }");
    assert!(!node.state_dir().join("logs/one").exists());
    assert_eq!(node.stdout(), "one | text\n");
}

#[test]
fn long_lines_are_pieces_that_join() {
    let node = ended("head -c 200000 /dev/zero | tr '\\0' x; echo; echo short", "");
    let entries = entries(&node);
    let kinds: Vec<(&str, usize)> =
        entries.iter().map(|entry| (entry.2.as_str(), entry.3.len())).collect();
    assert_eq!(kinds, [("P", 65536), ("P", 65536), ("P", 65536), ("F", 3392), ("F", 5)]);
    assert_eq!(node.log("one"), ["x".repeat(200_000), "short".to_owned()]);
}

#[test]
fn a_last_line_without_an_end_is_kept() {
    let node = ended("echo one; printf two", "");
    assert_eq!(node.log("one"), ["one", "two"]);
    let node = ended("printf alone", "log = { file = \"raw\" }");
    assert_eq!(current(&node), b"alone\n");
}

#[test]
fn bytes_that_are_no_text_survive() {
    // Every byte but the end of a line.
    let script =
        "for i in $(seq 0 255); do [ $i = 10 ] || printf \"\\\\$(printf %03o $i)\"; done; echo";
    let node = ended(script, "log = { format = \"raw\" }");
    let expected: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    assert_eq!(entries(&node)[0].3, expected);
    let mut forwarded = expected.clone();
    forwarded.push(b'\n');
    assert_eq!(fs::read(node.path().join("stdout")).expect("forwarded"), forwarded);
}

#[test]
fn when_a_run_has_ended_all_output_is_there() {
    // From every process of the tree, up to its last moment.
    let script = "for job in a b c d; do (i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo $job $i; done) & done; wait; echo last";
    for _ in 0..3 {
        let node = ended(script, "log = { keep = { size = \"100M\" } }");
        let lines = node.log("one");
        assert_eq!(lines.len(), 20_001);
        assert_eq!(lines.last().map(String::as_str), Some("last"));
        let forwarded = node.stdout();
        assert_eq!(forwarded.lines().count(), 20_001);
        for job in ["a", "b", "c", "d"] {
            let prefix = format!("{job} ");
            let numbers: Vec<u32> =
                lines.iter().filter_map(|line| line.strip_prefix(&prefix)?.parse().ok()).collect();
            assert_eq!(numbers, (1..=5000).collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_is_in_a_pipe_when_its_job_ends_is_not_lost() {
    // Each fills its pipe and is gone: the end is often known before the pipe was looked at.
    let jobs: String =
        (0..60).map(|number| format!("[jobs.job{number}]\nexec = \"seq 12000\"\n")).collect();
    let mut node = Setup::config(format!("[log]\nforward = false\n{jobs}")).launch();
    assert_eq!(node.wait().code(), Some(0));
    for number in 0..60 {
        let lines = node.log(&format!("job{number}"));
        assert_eq!(lines.len(), 12_000, "job{number}");
        assert_eq!(lines[11_999], "12000");
    }
}

#[test]
fn log_files_are_not_for_everybody() {
    use std::os::unix::fs::PermissionsExt;
    let node = ended("echo secret", "");
    let mode = |path: &str| {
        fs::metadata(node.state_dir().join(path)).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(mode("logs/one/current"), 0o640);
    assert_eq!(mode("logs/one") & 0o007, 0);
}
