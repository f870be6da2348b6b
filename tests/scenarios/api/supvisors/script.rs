//! One script of every command of the plugin, run against both sides.

use super::sides::PluginSide;
use crate::api::supervisor::compare::{Said, differences, plain};
use mainstay_tests::until;
use std::thread;

const SCRIPT: &str = include_str!("script.txt");

#[test]
fn every_command_of_the_plugin_is_answered_as_supvisors_answers_it() {
    let theirs = thread::spawn(|| play(&PluginSide::supvisors()));
    let ours = play(&PluginSide::mainstay());
    let theirs = theirs.join().expect("Supvisors plays along");
    let differ = differences(&theirs, &ours);
    assert!(differ.is_empty(), "{} steps differ:\n\n{}", differ.len(), differ.join("\n"));
    assert!(ours.len() > 90, "{} steps were compared", ours.len());
}

/// Every command that the plugin knows is in the script; `sreload` would need another begin.
#[test]
fn the_script_leaves_no_command_of_the_plugin_out() {
    let asked: Vec<&str> = SCRIPT
        .lines()
        .filter_map(|line| line.split_once("$ ")?.1.split_whitespace().next())
        .collect();
    for command in [
        "sversion",
        "master",
        "sstate",
        "core",
        "strategies",
        "instance_status",
        "application_info",
        "sstatus",
        "local_status",
        "application_rules",
        "process_rules",
        "conflicts",
        "loglevel",
        "conciliate",
        "end_sync",
        "restart_sequence",
        "sshutdown",
        "stats_status",
        "enable_stats",
        "disable_stats",
        "stats_period",
        "start_application",
        "stop_application",
        "restart_application",
        "test_start_application",
        "start_process",
        "start_process_args",
        "start_any_process",
        "start_any_process_args",
        "start_args",
        "all_start",
        "all_start_args",
        "stop_process",
        "restart_process",
        "test_start_process",
        "update_numprocs",
        "lazy_update_numprocs",
        "enable",
        "disable",
    ] {
        assert!(asked.contains(&command), "{command}");
    }
}

fn play(side: &PluginSide) -> Vec<Said> {
    let mut said = Vec::new();
    for step in SCRIPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (line, how) = step.split_once(" # ").unwrap_or((step, ""));
        let (before, command) = line.split_once("$ ").unwrap_or((line, ""));
        let (text, code) = match before.trim().split_once(' ') {
            Some(("until", word)) => {
                until(step, || Some(side.ctl(command)).filter(|(text, _)| text.contains(word)))
            }
            Some((other, _)) => panic!("'{other}' is no step"),
            None => side.ctl(command),
        };
        let text = match how {
            "listed" => format!("(exit {code:?})"),
            "told" => String::new(),
            "last" | "" => format!("{}\n(exit {code:?})", shown(side, &text)),
            other => panic!("'{other}' is no way to compare"),
        };
        said.push(Said { step: step.to_owned(), text });
    }
    said
}

/// Without what the nodes are called, and how wide that makes a column.
fn shown(side: &PluginSide, text: &str) -> String {
    let mut text = text.to_owned();
    for name in side.names() {
        text = text.replace(&name, "NODE");
    }
    let lines: Vec<String> = plain(&text, side.dir())
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.join("\n")
}
