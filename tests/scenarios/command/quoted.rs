//! What jobs and checks have said, wherever it is shown beside what we say.

use mainstay_tests::{Node, Setup, on_terminal, until};
use std::fs;

/// A job that writes escapes, whose check does, too, and that reloads with a command which would
/// rather be us.
const CONFIG: &str = r#"
    [node]
    exit = "never"
    [jobs.web]
    exec = ["sh", "-c", "printf 'in \\033[2J\\033]0;mine\\007its log\\303\\251 \\377\\n'; exec sleep 1000"]
    health = { name = "up", exec = ["sh", "-c", "printf '\\033[2Jdown\\rup\\nmainstay: web is fine\\n'; exit 1"], interval = "100ms" }
    [jobs.db]
    exec = "sleep 1000"
    reload = { exec = ["sh", "-c", "printf 'fine\\nmainstay: db: given up\\n\\033[1A\\033[2Kmainstay: forged\\n'; exit 3"] }
"#;

/// The text without the colours that are our own.
fn without_colours(shown: &str) -> String {
    let codes = ["0", "1", "2", "31", "32", "33", "36"].map(|code| format!("\x1b[{code}m"));
    codes.iter().fold(shown.to_owned(), |text, code| text.replace(code, ""))
}

fn shown(node: &Node, args: &[&str]) -> String {
    let (_, shown) = on_terminal(node.command(args));
    // A terminal begins a line anew by itself.
    let shown = without_colours(&shown).replace("\r\n", "\n");
    assert!(!shown.contains(['\x1b', '\x07', '\r']), "{args:?}: {shown:?}");
    shown
}

#[test]
fn a_terminal_never_obeys_what_a_job_or_a_check_has_said() {
    let node = Setup::config(CONFIG).start();
    node.until_health("web", "unhealthy");
    node.until_logged("web", "in \x1b[2J\x1b]0;mine\x07its log\u{e9} \u{fffd}");
    for args in [&["why", "web"][..], &["status"], &["status", "web"], &["events"]] {
        let shown = shown(&node, args);
        assert!(shown.contains("\\x1b[2Jdown"), "{args:?}: {shown}");
        assert!(!shown.lines().any(|line| line.starts_with("mainstay:")), "{args:?}: {shown}");
        // A pipe is read by a person sooner or later.
        let piped = String::from_utf8_lossy(&node.ask(args).stdout).into_owned();
        assert!(piped.contains("\\x1b[2Jdown") && !piped.contains('\x1b'), "{args:?}: {piped}");
    }
    let log = shown(&node, &["logs", "web", "-n", "all"]);
    assert_eq!(log, "in \\x1b[2J\\x1b]0;mine\\x07its log\u{e9} \\xff\n");
    let piped = node.ask(&["logs", "web", "-n", "all"]).stdout;
    assert_eq!(piped, b"in \x1b[2J\x1b]0;mine\x07its log\xc3\xa9 \xff\n", "a pipe has the bytes");
    let event = String::from_utf8(node.ask(&["events", "--json"]).stdout).expect("JSON");
    assert!(event.contains(r"\u001b[2Jdown\rup\nmainstay: web is fine"), "{event}");
}

#[test]
fn no_command_of_a_job_can_write_a_line_of_our_log_or_of_an_error() {
    let node = Setup::config(CONFIG).start();
    node.running("db");
    let (status, told) = on_terminal(node.command(&["reload", "db"]));
    assert_eq!(status.code(), Some(1));
    let told = without_colours(&told).replace("\r\n", "\n");
    assert!(!told.contains('\x1b') && !told.contains("\nmainstay: "), "{told:?}");
    node.until_told("said: \\x1b[1A\\x1b[2Kmainstay: forged");
    let own = until("it is in the file, too", || {
        let file = node.state_dir().join("logs/mainstay/current");
        Some(fs::read_to_string(file).ok()?).filter(|text| text.contains("forged"))
    });
    for text in [node.stderr(), own] {
        assert!(!text.contains('\x1b'), "{text:?}");
        let forged = |line: &&str| line.contains("given up") || line.contains("forged");
        for line in text.lines().filter(forged) {
            assert!(line.contains("mainstay: db: its reload command said: "), "{line}");
        }
    }
}
