//! What a new plan does to a job, in words.

use super::condition;
use crate::{
    node::{Effect, MovedBy},
    plan::Change,
};

/// What becomes of a job; `waits`: what it will wait for.
#[must_use]
pub fn effect(effect: Effect, change: Change, waits: &[String]) -> String {
    let waits = || match waits.is_empty() {
        true => "waits".to_owned(),
        false => format!("waits for {}", waits.join(" and ")),
    };
    match (effect, change) {
        (Effect::Keep, _) => "is the same".to_owned(),
        (Effect::Live, _) => "goes on with what has changed".to_owned(),
        (Effect::Start, _) => "is started".to_owned(),
        (Effect::Restart, _) => "is restarted".to_owned(),
        (Effect::Wait, _) => waits(),
        (Effect::StopAndWait, _) => format!("is stopped, and {}", waits()),
        (Effect::Stop, Change::Removed) => "is stopped and forgotten".to_owned(),
        (Effect::Stop, _) => "is stopped".to_owned(),
        (Effect::NotAgain, _) => "has ended well and is not run again".to_owned(),
        (Effect::Later, Change::Added) => "rests until it is started".to_owned(),
        (Effect::Later, _) => "rests, and has it when it is started next".to_owned(),
    }
}

/// What moves a job whose own lines have not changed.
#[must_use]
pub fn moved_by(mover: &MovedBy) -> String {
    match mover {
        MovedBy::Source(source) => format!("follows {source}"),
        MovedBy::Event(event) => format!("hears {}", condition(event)),
        MovedBy::Hook(hook) => format!("has waited for {hook}, which runs for its end"),
        MovedBy::App(app) => format!("belongs to app {app}"),
    }
}
