//! Output on our own stdout.

use mainstay_tests::{Scratch, Setup};
use serde_json::Value;

fn forwarded(format: &str) -> String {
    let config = format!(
        r#"
        [log]
        format = "{format}"
        [jobs.one]
        exec = ["sh", "-c", 'echo plain; echo "quo\"ted" >&2; printf "no end"']
    "#
    );
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(0));
    assert_eq!(node.log("one"), ["plain", "quo\"ted", "no end"]);
    node.stdout()
}

#[test]
fn prefix_names_the_job() {
    assert_eq!(forwarded("prefix"), "one | plain\none | quo\"ted\none | no end\n");
}

#[test]
fn raw_is_as_it_was_written() {
    assert_eq!(forwarded("raw"), "plain\nquo\"ted\nno end\n");
}

#[test]
fn json_is_an_object_a_line() {
    let text = forwarded("json");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let texts: Vec<&str> = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(texts, ["plain", "quo\"ted", "no end"]);
    for line in &lines {
        assert_eq!((&line["job"], &line["stream"]), (&"one".into(), &"stdout".into()));
        let time = line["time"].as_str().expect("a time");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
}

#[test]
fn a_job_may_keep_its_output_to_itself() {
    let config = r#"
        [jobs.quiet]
        exec = "echo quiet"
        log = { forward = false }
        [jobs.loud]
        exec = "echo loud"
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(0));
    assert_eq!(node.stdout(), "loud | loud\n");
    assert_eq!(node.log("quiet"), ["quiet"]);
}

#[test]
fn a_stdout_that_is_closed_or_broken_stops_nobody() {
    for script in ["exec >&-", "exec >/dev/full", "exec 2>&-", "exec >&- 2>&-"] {
        let command = "seq 100000; echo last; exit 3";
        let scratch = Scratch::new();
        let mut node = Setup::command(&["sh", "-c", command]).after(script).launch_in(scratch);
        assert_eq!(node.wait().code(), Some(3), "{script}");
        assert_eq!(node.log("sh").last().map(String::as_str), Some("last"), "{script}");
    }
}
