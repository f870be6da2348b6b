//! What an element of the rules says: of an application, a program, or a model of programs.
//!
//! Values are read once, so that one that is wrong is told once. Supvisors goes on with the default
//! then; elements that it does not know it passes over.

use super::options::{STRATEGIES, ours};
use crate::{draft::Draft, supervisord::text::truth, xml::Element};
use mainstay_core::fleet::placement::FULL;

/// As far as an element says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) start_sequence: Option<u32>,
    pub(super) stop_sequence: Option<u32>,
    pub(super) required: Option<bool>,
    pub(super) wait_exit: Option<bool>,
    pub(super) load: Option<u32>,
    /// Names, tags, aliases, and the signs among them.
    pub(super) identifiers: Option<Vec<String>>,
    /// Our word.
    pub(super) on_start_failure: Option<&'static str>,
    pub(super) on_failure: Option<RunningFailure>,
    /// Our word.
    pub(super) strategy: Option<&'static str>,
    /// Our word.
    pub(super) distribution: Option<&'static str>,
    pub(super) reference: Option<String>,
    pub(super) file: String,
    pub(super) line: usize,
}

/// `running_failure_strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunningFailure {
    Continue,
    RestartProcess,
    StopApplication,
    RestartApplication,
    /// Of the whole fleet.
    Shutdown,
    /// Of the whole fleet.
    Restart,
}

const RUNNING: [(&str, RunningFailure); 6] = [
    ("CONTINUE", RunningFailure::Continue),
    ("RESTART_PROCESS", RunningFailure::RestartProcess),
    ("STOP_APPLICATION", RunningFailure::StopApplication),
    ("RESTART_APPLICATION", RunningFailure::RestartApplication),
    ("SHUTDOWN", RunningFailure::Shutdown),
    ("RESTART", RunningFailure::Restart),
];
const STARTING: [(&str, &str); 3] =
    [("ABORT", "abort"), ("STOP", "stop"), ("CONTINUE", "continue")];
const DISTRIBUTIONS: [(&str, &str); 3] =
    [("ALL_INSTANCES", "any"), ("SINGLE_INSTANCE", "one-node"), ("SINGLE_NODE", "one-machine")];
/// Larger than any that is written.
const HIGHEST: u32 = 1_000_000;

impl RunningFailure {
    /// Our word, the nearest there is.
    pub(super) fn word(self) -> &'static str {
        match self {
            RunningFailure::Continue => "continue",
            RunningFailure::RestartProcess => "restart-process",
            RunningFailure::StopApplication | RunningFailure::Shutdown => "stop-app",
            RunningFailure::RestartApplication | RunningFailure::Restart => "restart-app",
        }
    }

    /// Supvisors then lets Supervisor restart nothing.
    pub(super) fn is_about_the_app(self) -> bool {
        match self {
            RunningFailure::StopApplication | RunningFailure::RestartApplication => true,
            RunningFailure::Continue
            | RunningFailure::RestartProcess
            | RunningFailure::Shutdown
            | RunningFailure::Restart => false,
        }
    }
}

impl Rule {
    /// What an element says; what of it is of no use is told.
    pub(super) fn read(draft: &mut Draft, file: &str, element: &Element) -> Rule {
        let mut rule = Rule { file: file.to_owned(), line: element.line, ..Rule::default() };
        for child in &element.children {
            let setting = rule.take(child);
            let name = &child.name;
            let message = match setting {
                Setting::Known => continue,
                Setting::Unfit => format!(
                    "{name}: '{}' is passed over, as by Supvisors: its default counts",
                    child.text.trim()
                ),
                Setting::Differs(how) => format!("{name}: {how}"),
            };
            draft.note_of(file.to_owned(), child.line, message);
        }
        rule
    }

    fn take(&mut self, child: &Element) -> Setting {
        let text = child.text.trim();
        let number = |most: u32| text.parse::<u32>().ok().filter(|it| *it <= most);
        match child.name.as_str() {
            "programs" | "program" | "pattern" => Setting::Known,
            // As if it were not there.
            _ if text.is_empty() => Setting::Known,
            "start_sequence" => put(&mut self.start_sequence, number(HIGHEST)),
            "stop_sequence" => put(&mut self.stop_sequence, number(HIGHEST)),
            "required" => put(&mut self.required, truth(text)),
            "wait_exit" => put(&mut self.wait_exit, truth(text)),
            "expected_loading" | "loading" => put(&mut self.load, number(FULL)),
            "identifiers" | "addresses" | "nodes" | "node_names" => {
                let words = text.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty());
                put(&mut self.identifiers, Some(words.map(str::to_owned).collect()))
            }
            "starting_failure_strategy" => put(&mut self.on_start_failure, ours(&STARTING, text)),
            "running_failure_strategy" => {
                let found = RUNNING.iter().find(|(word, _)| *word == text);
                let found = put(&mut self.on_failure, found.map(|(_, what)| *what));
                match self.on_failure {
                    Some(RunningFailure::Shutdown) => {
                        Setting::Differs("SHUTDOWN: its app is stopped, the fleet is not")
                    }
                    Some(RunningFailure::Restart) => {
                        Setting::Differs("RESTART: its app is restarted, the fleet is not")
                    }
                    _ => found,
                }
            }
            "starting_strategy" => put(&mut self.strategy, ours(&STRATEGIES, text)),
            "distribution" => put(&mut self.distribution, ours(&DISTRIBUTIONS, text)),
            "distributed" => {
                let word = |all: bool| if all { "any" } else { "one-node" };
                put(&mut self.distribution, truth(text).map(word))
            }
            "operational_status" => Setting::Differs(
                "no formula says how an app is: it has failed if a required job of it has",
            ),
            "reference" => put(&mut self.reference, Some(text.to_owned())),
            _ => Setting::Differs("it is not known"),
        }
    }

    /// What it does not say, as `base` says it.
    pub(super) fn over(self, base: Rule) -> Rule {
        Rule {
            start_sequence: self.start_sequence.or(base.start_sequence),
            stop_sequence: self.stop_sequence.or(base.stop_sequence),
            required: self.required.or(base.required),
            wait_exit: self.wait_exit.or(base.wait_exit),
            load: self.load.or(base.load),
            identifiers: self.identifiers.or(base.identifiers),
            on_start_failure: self.on_start_failure.or(base.on_start_failure),
            on_failure: self.on_failure.or(base.on_failure),
            strategy: self.strategy.or(base.strategy),
            distribution: self.distribution.or(base.distribution),
            reference: self.reference,
            file: self.file,
            line: self.line,
        }
    }
}

/// What became of an element.
enum Setting {
    Known,
    /// Of no use, and passed over.
    Unfit,
    Differs(&'static str),
}

fn put<T>(place: &mut Option<T>, value: Option<T>) -> Setting {
    match value {
        Some(value) => {
            *place = Some(value);
            Setting::Known
        }
        None => Setting::Unfit,
    }
}
