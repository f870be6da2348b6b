//! Places between two steps of the loop at which a test may let the agent die.
//!
//! In a debug build `MAINSTAY_CRASH_AT=journaled:3` kills the process (SIGKILL) when it gets to
//! `journaled` for the third time, provided that the file named by `MAINSTAY_CRASH_ONCE`, if any,
//! could be removed: so one agent dies and the next one lives. In a release build none of it exists.

use std::{env, fs};

/// In the order in which the loop passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// An input was taken, nothing is known about it outside.
    Input,
    Journaled,
    Published,
    Acknowledged,
    Commanded,
}

impl Point {
    pub const ALL: [Point; 5] =
        [Point::Input, Point::Journaled, Point::Published, Point::Acknowledged, Point::Commanded];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Point::Input => "input",
            Point::Journaled => "journaled",
            Point::Published => "published",
            Point::Acknowledged => "acknowledged",
            Point::Commanded => "commanded",
        }
    }
}

/// The agent has to be dropped here: only ever seen in tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("crashed on request at '{}'", .0.name())]
pub struct Crashed(pub Point);

#[derive(Debug, Default)]
pub struct Crash {
    at: Option<(Point, u64)>,
    /// Dropped by a test instead of killed.
    gentle: bool,
}

impl Crash {
    /// What the environment asks for.
    #[must_use]
    pub fn from_env() -> Crash {
        if !cfg!(debug_assertions) {
            return Crash::default();
        }
        Crash { at: env::var("MAINSTAY_CRASH_AT").ok().as_deref().and_then(parse), gentle: false }
    }

    /// For tests inside one process: [`Crash::at`] fails at the `count`-th time.
    #[must_use]
    pub fn gently_at(point: Point, count: u64) -> Crash {
        Crash { at: Some((point, count)), gentle: true }
    }

    pub(crate) fn at(&mut self, point: Point) -> Result<(), Crashed> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        match &mut self.at {
            Some((wanted, count)) if *wanted == point => {
                *count = count.saturating_sub(1);
                if *count > 0 {
                    return Ok(());
                }
                self.at = None;
                if self.gentle {
                    return Err(Crashed(point));
                }
                die();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn parse(text: &str) -> Option<(Point, u64)> {
    let (name, count) = text.split_once(':').unwrap_or((text, "1"));
    let point = Point::ALL.into_iter().find(|point| point.name() == name)?;
    Some((point, count.parse().ok().filter(|count| *count > 0)?))
}

fn die() {
    if env::var_os("MAINSTAY_CRASH_ONCE").is_none_or(|file| fs::remove_file(file).is_ok()) {
        mainstay_sys::signal::kill_self();
    }
}
