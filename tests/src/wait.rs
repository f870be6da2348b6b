//! Waiting for something to become true, with a deadline and a word on what was waited for.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Generous: a test machine may be busy. What is waited for usually comes within milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until there is an answer.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask)
}

pub fn within<T>(patience: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited {patience:?} in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
