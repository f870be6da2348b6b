//! What people see: pages of lines and tables, colours, times.
//!
//! Jobs, checks and other machines have a say in most of what is shown. A [`Page`] is the only way
//! to a terminal for it: whatever they have said stays in its line and steers nothing. JSON and
//! what is made for files ([`print`]) has the bytes.

use crate::{args::Color, failure::Failure};
use anstream::{AutoStream, ColorChoice};
use mainstay_core::text::{bytes, visible};
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
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

/// What was asked for on the command line.
pub(crate) fn choose_color(color: Color) {
    match color {
        Color::Auto if is_dumb() => ColorChoice::Never.write_global(),
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
}

/// A terminal that shows escapes as they are, whatever else speaks for colours.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Colours only on a terminal that has them, and only for those who did not decline (NO_COLOR,
/// CLICOLOR=0, TERM=dumb), unless the command line says otherwise.
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

/// A piece of a line, and how it looks.
pub(crate) type Span<'a> = (&'a str, Tint);

/// Text for people, line by line.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    color: bool,
}

impl Page {
    pub(crate) fn new() -> Page {
        Page { text: String::new(), color: stdout_color() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.tinted_line(&[(text.as_ref(), Tint::Plain)]);
    }

    pub(crate) fn tinted_line(&mut self, spans: &[Span<'_>]) {
        for (text, tint) in spans {
            self.span(text, *tint);
        }
        self.text.push('\n');
    }

    /// Aligned columns, two blanks apart.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<(String, Tint)>]) {
        let cell = |(text, tint): &(String, Tint)| (visible(text).into_owned(), *tint);
        let header = header.iter().map(|text| ((*text).to_owned(), Tint::Dim)).collect();
        let rows: Vec<Vec<(String, Tint)>> = std::iter::once(header)
            .chain(rows.iter().map(|row| row.iter().map(cell).collect()))
            .collect();
        let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or(0)];
        for row in &rows {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        for row in &rows {
            let last = row.len().saturating_sub(1);
            for (at, ((text, tint), width)) in row.iter().zip(&widths).enumerate() {
                self.span(text, *tint);
                if at < last {
                    self.text.extend(std::iter::repeat_n(' ', width - text.chars().count() + 2));
                }
            }
            self.text.push('\n');
        }
    }

    /// Shows it on stdout.
    pub(crate) fn show(&self) -> Result<(), Failure> {
        print(&self.text)
    }

    fn span(&mut self, text: &str, tint: Tint) {
        let text = visible(text);
        match (tint, self.color) {
            (Tint::Plain, _) | (_, false) => self.text.push_str(&text),
            (_, true) => self.text.push_str(&format!("\x1b[{}m{text}\x1b[0m", tint.code())),
        }
    }
}

#[cfg(test)]
impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A line that a job has written, for our stdout: a terminal gets it as it may be seen, anything
/// else as it is.
pub(crate) struct JobLines {
    out: io::BufWriter<io::Stdout>,
    page: Page,
    terminal: bool,
}

impl JobLines {
    pub(crate) fn new() -> JobLines {
        let terminal = io::stdout().is_terminal();
        JobLines { out: io::BufWriter::new(io::stdout()), page: Page::new(), terminal }
    }

    pub(crate) fn line(&mut self, prefix: &str, text: &[u8]) -> Result<(), Failure> {
        if !prefix.is_empty() {
            self.page.span(prefix, Tint::Cyan);
            self.page.text.push(' ');
        }
        if self.terminal {
            self.page.span(&bytes::to_text(text), Tint::Plain);
        }
        let text = if self.terminal { &[] } else { text };
        let begun = std::mem::take(&mut self.page.text);
        let all = [begun.as_bytes(), text, b"\n"];
        told(all.into_iter().try_for_each(|part| self.out.write_all(part)))
    }

    /// For a reader that is no person.
    pub(crate) fn raw(&mut self, line: &str) -> Result<(), Failure> {
        told(writeln!(self.out, "{line}"))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        told(self.out.flush())
    }
}

/// A sentence of ours on stderr; of more than one line, the others are set in, so that none of
/// them can be taken for another sentence.
#[expect(clippy::print_stderr, reason = "the one place")]
pub(crate) fn tell(text: &str) {
    let lines: Vec<_> = text.trim_end().split('\n').map(visible).collect();
    eprintln!("mainstay: {}", lines.join("\n  "));
}

/// What `config` has made to be read: it has shown what is in files with care.
#[expect(clippy::print_stderr, reason = "the one place")]
pub(crate) fn tell_diagnostics(text: &str) {
    eprintln!("{text}");
}

/// The same as a node has sent it, which may be elsewhere.
pub(crate) fn tell_sent_diagnostics(text: &str) {
    let lines: Vec<_> = text.trim_end().split('\n').map(visible).collect();
    tell_diagnostics(&lines.join("\n"));
}

/// Lines of the terminal that stdout is, if it is one.
pub(crate) fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
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

/// Writes to stdout what is meant for a program or a file.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    told(io::stdout().lock().write_all(text.as_bytes()))
}

/// A reader that went away has seen what it wanted: nothing is left to be told.
fn told(written: io::Result<()>) -> Result<(), Failure> {
    match written {
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

    fn plain() -> Page {
        Page { text: String::new(), color: false }
    }

    #[test]
    fn what_others_say_stays_in_its_line_and_keeps_no_escape() {
        let evil = "fine\n\x1b[2Jweb  RUNNING\r";
        let mut page = Page { text: String::new(), color: true };
        page.line(format!("check: {evil}"));
        page.tinted_line(&[(evil, Tint::Red)]);
        page.table(&["SAID"], &[vec![(evil.to_owned(), Tint::Plain)]]);
        let ours = ["\x1b[31m", "\x1b[2m", "\x1b[0m"];
        let left = ours.iter().fold(page.text.clone(), |text, code| text.replace(code, ""));
        assert!(!left.contains(['\x1b', '\r']), "{left:?}");
        assert_eq!(left.lines().count(), 4, "{left:?}");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let cell = |text: &str| (text.to_owned(), Tint::Green);
        let rows = [vec![cell("web"), cell("RUNNING")], vec![cell("database"), cell("FATAL")]];
        let mut page = plain();
        page.table(&["NAME", "STATE"], &rows);
        assert_eq!(page.text, "NAME      STATE\nweb       RUNNING\ndatabase  FATAL\n");
    }

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, text) in [(0, "0s"), (125, "2m5s"), (3600, "1h0m"), (90_000, "1d1h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
