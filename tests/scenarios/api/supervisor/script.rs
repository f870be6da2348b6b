//! One script of every command of `supervisorctl`, run against both sides.

use super::{
    compare::{Said, differences, plain},
    sides::{Side, Told},
};
use mainstay_tests::until;
use std::thread;

const SCRIPT: &str = include_str!("script.txt");
/// States that are on their way to another.
const PASSING: [&str; 3] = ["STARTING", "STOPPING", "BACKOFF"];

#[test]
fn every_command_is_answered_as_supervisord_answers_it() {
    let theirs = thread::spawn(|| play(&Side::supervisord()));
    let ours = play(&Side::mainstay());
    let theirs = theirs.join().expect("supervisord plays along");
    let differ = differences(&theirs, &ours);
    assert!(differ.is_empty(), "{} steps differ:\n\n{}", differ.len(), differ.join("\n"));
    assert!(ours.len() > 90, "{} steps were compared", ours.len());
}

/// Every command that supervisorctl knows is in the script.
#[test]
fn the_script_leaves_no_command_out() {
    let asked: Vec<&str> = SCRIPT
        .lines()
        .filter_map(|line| line.split_once("$ ")?.1.split_whitespace().next())
        .collect();
    for command in [
        "add", "avail", "clear", "exit", "fg", "help", "maintail", "open", "pid", "quit", "reload",
        "remove", "reread", "restart", "shutdown", "signal", "start", "status", "stop", "tail",
        "update", "version",
    ] {
        assert!(asked.contains(&command), "{command}");
    }
}

fn play(side: &Side) -> Vec<Said> {
    let mut said = Vec::new();
    for step in SCRIPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (line, how) = step.split_once(" # ").unwrap_or((step, ""));
        let (before, command) = line.split_once("$ ").unwrap_or((line, ""));
        let told = match before.trim().split_once(' ').unwrap_or((before.trim(), "")) {
            ("settle", _) => {
                until_steady(side);
                continue;
            }
            ("answers", _) => {
                side.until_it_answers();
                continue;
            }
            ("config", which) => {
                side.configure(which);
                continue;
            }
            ("until", word) => {
                until(step, || Some(side.ctl(command)).filter(|told| told.text.contains(word)))
            }
            ("interrupt", word) => side.interrupted(command, word),
            ("type", typed) => side.typed(command, typed),
            ("", _) => side.ctl(command),
            (other, _) => panic!("'{other}' is no step"),
        };
        said.push(Said { step: step.to_owned(), text: shown(side, &told, how) });
    }
    said
}

fn until_steady(side: &Side) {
    until("every process is where it is going", || {
        let told = side.ctl("status").text;
        (!PASSING.iter().any(|state| told.contains(state))).then_some(())
    });
}

fn shown(side: &Side, told: &Told, how: &str) -> String {
    let text = plain(&told.text, side.dir());
    let text = match how {
        "listed" => {
            assert!(!text.trim().is_empty(), "nothing is said");
            String::new()
        }
        "sorted" => {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.join("\n")
        }
        "" => text,
        other => panic!("'{other}' is no way to compare"),
    };
    format!("{text}\n(exit {:?})", told.code)
}
