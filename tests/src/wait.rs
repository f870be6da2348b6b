//! Waiting for something to become true, with a deadline and a word on what was waited for.

use std::{
    fmt::Display,
    thread,
    time::{Duration, Instant},
};

/// Generous: a test machine may be busy. What is waited for usually comes within milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until there is an answer.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, ask)
}

/// Asks until there is an answer; what there was instead is told if there is none in time.
pub fn until_ok<T, E: Display>(what: &str, ask: impl FnMut() -> Result<T, E>) -> T {
    within_ok(PATIENCE, what, ask)
}

pub fn within<T>(patience: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    within_ok(patience, what, || ask().ok_or("nothing"))
}

pub(crate) fn within_ok<T, E: Display>(
    patience: Duration,
    what: &str,
    mut ask: impl FnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + patience;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(instead) => assert!(
                Instant::now() < end,
                "waited {patience:?} in vain: {what}; there was {instead}"
            ),
        }
        thread::sleep(Duration::from_millis(5));
    }
}
