//! What has become of a request, for whoever waited for it; and what a job waits for, in one line.

use super::{Waiting, awaited, word};
use crate::{
    exit::Exit,
    job::{Desired, Phase},
    name::Name,
};
use std::time::Duration;

/// So many of the things that a job waits for stand in one line.
const SHOWN: usize = 2;

/// The run that was waited for has failed.
#[must_use]
pub fn failed(job: &Name, phase: Phase, exit: Option<&Exit>) -> String {
    let exit = exit.map_or_else(String::new, |exit| format!(": {exit}"));
    format!("{job} is {}{exit}", word(phase))
}

/// What the job waits for itself can never come.
#[must_use]
pub fn hopeless(job: &Name, desired: Desired, waiting: &[Waiting]) -> String {
    if desired == Desired::Disabled {
        return format!("{job} is disabled; `mainstay enable {job}` lets it start");
    }
    match waiting.iter().find(|one| one.reason.is_some()) {
        None => format!("{job} can never start"),
        Some(one) => {
            format!("{job} waits for {}; `mainstay start {job} --now` does not wait", awaited(one))
        }
    }
}

/// The time to wait is over.
#[must_use]
pub fn too_slow(job: &Name, phase: Phase, waiting: &[Waiting], patience: Duration) -> String {
    let waits = waiting.first().map_or_else(String::new, |Waiting { source, event, .. }| {
        format!(", waiting for {source} {event} (`mainstay why {job}`)")
    });
    format!(
        "{job} is still {} after {patience:?}{waits}; the request stands and goes on",
        word(phase)
    )
}

/// A command that was run for the job has failed; `output`: what it had to say.
#[must_use]
pub fn reload_failed(job: &Name, exit: &Exit, output: &str) -> String {
    let said = match output.trim_end() {
        "" => String::new(),
        text => format!(": {text}"),
    };
    format!("the reload command of {job} failed: {exit}{said}")
}

/// A command that was run for the job has not ended in the time to wait for it.
#[must_use]
pub fn reload_too_slow(job: &Name, patience: Duration) -> String {
    format!("the reload command of {job} has not ended after {patience:?}; it goes on")
}

/// In one line, whatever it waits for, what can never come first; `None`: nothing worth a line.
#[must_use]
pub fn waits(waiting: &[Waiting], as_desired: bool) -> Option<String> {
    // One that waits for its next time is as it should be.
    let mut waiting: Vec<&Waiting> =
        waiting.iter().filter(|one| !as_desired || one.reason.is_some()).collect();
    waiting.sort_by_key(|one| one.reason.is_none());
    let each = waiting.iter().take(SHOWN).map(|Waiting { source, event, reason }| {
        let reason = reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("{source} {event}{reason}")
    });
    let each: Vec<String> = each.collect();
    match waiting.len().saturating_sub(SHOWN) {
        _ if each.is_empty() => None,
        0 => Some(each.join(" and ")),
        more => Some(format!("{} and {more} more", each.join(", "))),
    }
}
