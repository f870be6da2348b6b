//! Diagnostics: what is wrong, where, and what to do about it.
//!
//! A diagnostic carries its source line with it, so that it can be shown after the texts are gone:
//!
//! ```text
//! error: unknown key 'reestart' in jobs.web
//!  --> mainstay.toml:3:1
//!   |
//! 3 | reestart = "never"
//!   | ^^^^^^^^ help: did you mean 'restart'?
//! ```

mod nearest;

pub use nearest::nearest;

use crate::source::Source;
use std::{
    fmt::{self, Write as _},
    ops::Range,
};

/// A file with more mistakes than this is the wrong file.
const SHOWN: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    pub help: Option<String>,
    /// The file or directory it is about.
    pub file: Option<String>,
    pub spot: Option<Spot>,
    /// Sorts diagnostics into the order of the files.
    pub(crate) order: (usize, usize),
}

/// A place in a file, with the line it is on. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
    /// The line, without control characters, cut to the part around the mistake.
    pub text: String,
    /// Where in `text` the mistake begins, and how wide it is, in characters.
    pub indent: usize,
    pub width: usize,
}

impl Diagnostic {
    #[must_use]
    pub fn error(message: impl AsRef<str>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: printable(message.as_ref()),
            help: None,
            file: None,
            spot: None,
            order: (0, 0),
        }
    }

    #[must_use]
    pub fn help(mut self, help: impl AsRef<str>) -> Diagnostic {
        self.help = Some(printable(help.as_ref()));
        self
    }

    #[must_use]
    pub fn file(mut self, file: impl AsRef<str>) -> Diagnostic {
        self.file = Some(printable(file.as_ref()));
        self
    }

    /// The place it is about.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Range<usize>) -> Diagnostic {
        self.order.1 = span.start;
        self.spot = Some(source.spot(span));
        self.file(&source.name)
    }

    /// About the file as a whole.
    #[must_use]
    pub fn nowhere(mut self) -> Diagnostic {
        self.order.1 = 0;
        self.spot = None;
        self
    }

    /// Whether `other` has said the same of the same place.
    #[must_use]
    pub fn repeats(&self, other: &Diagnostic) -> bool {
        self.order == other.order && self.message == other.message
    }

    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let paint = Paint { color };
        let (word, tint) = match self.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
        };
        let mut out = format!("{}{}", paint.with(tint, word), paint.with("1", ": "));
        out.push_str(&paint.with("1", &self.message));
        let gutter = self.spot.as_ref().map_or(1, |spot| spot.line.to_string().len());
        let margin = " ".repeat(gutter);
        let arrow = paint.with("1;34", "-->");
        let bar = paint.with("1;34", "|");
        // Writing to a String cannot fail.
        let _ = match (&self.file, &self.spot) {
            (Some(file), Some(spot)) => {
                write!(out, "\n{margin}{arrow} {file}:{}:{}", spot.line, spot.column)
            }
            (Some(file), None) => write!(out, "\n{margin}{arrow} {file}"),
            (None, _) => Ok(()),
        };
        let help = self.help.as_ref().map(|help| format!("{} {help}", paint.with("1;36", "help:")));
        match (&self.spot, help) {
            (Some(spot), help) => {
                let number = paint.with("1;34", &spot.line.to_string());
                let carets = paint.with(tint, &"^".repeat(spot.width));
                let _ = write!(out, "\n{margin} {bar}\n{number} {bar} {}", spot.text);
                let _ = write!(out, "\n{margin} {bar} {}{carets}", " ".repeat(spot.indent));
                if let Some(help) = help {
                    let _ = write!(out, " {help}");
                }
            }
            (None, Some(help)) => {
                let _ = write!(out, "\n{margin} = {help}");
            }
            (None, None) => {}
        }
        out
    }
}

/// Every mistake of a configuration, in the order of its files. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors(Vec<Diagnostic>);

impl Errors {
    /// Those of one file, in any order.
    #[must_use]
    pub fn of_file(mut all: Vec<Diagnostic>) -> Errors {
        all.sort_by_key(|one| one.order);
        Errors::new(all)
    }

    pub(crate) fn new(mut all: Vec<Diagnostic>) -> Errors {
        if all.is_empty() {
            all.push(Diagnostic::error("the configuration is invalid"));
        }
        Errors(all)
    }

    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// For a person; ends with a line that counts when there are several.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let mut parts: Vec<String> =
            self.0.iter().take(SHOWN).map(|one| one.render(color)).collect();
        if self.0.len() > SHOWN {
            parts.push(format!("error: {} mistakes, the first {SHOWN} are shown", self.0.len()));
        } else if self.0.len() > 1 {
            parts.push(format!("error: {} mistakes", self.0.len()));
        }
        parts.join("\n\n")
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Diagnostic> for Errors {
    fn from(one: Diagnostic) -> Errors {
        Errors(vec![one])
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Errors {}

struct Paint {
    color: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A file may hold escape sequences; a terminal must not obey them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_never_sees_the_control_characters_of_a_file() {
        let shown = Diagnostic::error("bad \x1b[2J word").help("a\nb").render(false);
        assert!(!shown.contains('\x1b'));
        assert_eq!(shown.lines().count(), 2);
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        let one = Diagnostic::error("wrong").file("a.toml");
        assert_eq!(one.render(false), "error: wrong\n --> a.toml");
        assert!(one.render(true).contains("\x1b[1;31merror\x1b[0m"));
    }

    #[test]
    fn a_flood_of_mistakes_is_cut_and_counted() {
        let errors = Errors::new(vec![Diagnostic::error("wrong"); 70]);
        assert_eq!(errors.len(), 70);
        assert!(errors.render(false).ends_with("error: 70 mistakes, the first 50 are shown"));
    }
}
