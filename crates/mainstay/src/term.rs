//! What people see: tables, colours, times.

use crate::failure::Failure;
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use std::{
    io::{self, Write},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    Plain,
    Dim,
    Bold,
    Green,
    Yellow,
    Red,
    Cyan,
}

impl Tint {
    fn code(self) -> &'static str {
        match self {
            Tint::Plain => "0",
            Tint::Dim => "2",
            Tint::Bold => "1",
            Tint::Green => "32",
            Tint::Yellow => "33",
            Tint::Red => "31",
            Tint::Cyan => "36",
        }
    }
}

/// Colours only on a terminal that has them, and only for those who did not decline (NO_COLOR,
/// CLICOLOR=0).
pub(crate) fn stdout_color() -> bool {
    color(AutoStream::choice(&io::stdout()))
}

pub(crate) fn stderr_color() -> bool {
    color(AutoStream::choice(&io::stderr()))
}

fn color(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => true,
        ColorChoice::Never => false,
    }
}

pub(crate) fn tinted(text: &str, tint: Tint, color: bool) -> String {
    match (tint, color) {
        (Tint::Plain, _) | (_, false) => text.to_owned(),
        (_, true) => format!("\x1b[{}m{text}\x1b[0m", tint.code()),
    }
}

/// What a program has said, without anything that steers a terminal.
pub(crate) fn harmless(said: &str) -> String {
    said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Lines of the terminal that stdout is, if it is one.
pub(crate) fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Aligned columns, two blanks apart.
pub(crate) fn table(header: &[&str], rows: &[Vec<(String, Tint)>], color: bool) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, (cell, _)) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let header: Vec<(String, Tint)> =
        header.iter().map(|cell| ((*cell).to_owned(), Tint::Dim)).collect();
    let mut text = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let last = row.len().saturating_sub(1);
        for (at, ((cell, tint), width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(&tinted(cell, *tint, color));
            if at < last {
                text.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
        }
        text.push('\n');
    }
    text
}

/// `3s`, `2m5s`, `4h12m`, `9d3h`: two units at most.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{}s", seconds % 60),
        3600..86_400 => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    }
}

/// Writes to stdout. A reader that went away is not a failure: nothing is left to be told.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::of("cannot write to stdout", error)),
        Ok(()) => Ok(()),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string(value).map_err(|error| Failure::of("cannot write JSON", error))?;
    print(&(text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let cell = |text: &str| (text.to_owned(), Tint::Green);
        let rows = [vec![cell("web"), cell("RUNNING")], vec![cell("database"), cell("FATAL")]];
        let text = table(&["NAME", "STATE"], &rows, false);
        assert_eq!(text, "NAME      STATE\nweb       RUNNING\ndatabase  FATAL\n");
    }

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, text) in [(0, "0s"), (125, "2m5s"), (3600, "1h0m"), (90_000, "1d1h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
