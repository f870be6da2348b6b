//! Diagnostics: what is wrong, where, and what to do about it.
//!
//! A diagnostic carries the lines it is about with it, so that it can be shown after the texts are
//! gone:
//!
//! ```text
//! error: unknown key 'reestart' in jobs.web
//!  --> mainstay.toml:3:1
//!   |
//! 3 | reestart = "never"
//!   | ^^^^^^^^
//!   |
//!   = help: did you mean 'restart'?
//! ```

mod nearest;
mod render;
mod spot;

pub use nearest::nearest;
pub use spot::Spot;

use crate::source::Source;
use mainstay_core::text::visible;
use std::{fmt, ops::Range};

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
    /// Other places that it is about.
    pub related: Vec<Related>,
    /// Something is not there. It may be in a file that cannot be read.
    pub(crate) absence: bool,
    /// Sorts diagnostics into the order of the files.
    pub(crate) order: (usize, usize),
}

/// Another place that a diagnostic is about, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    pub file: String,
    pub spot: Spot,
    pub label: String,
    /// The line between this one and that of the diagnostic, if there is just one.
    between: Option<String>,
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
            related: Vec::new(),
            absence: false,
            order: (0, 0),
        }
    }

    #[must_use]
    pub fn warning(message: impl AsRef<str>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    #[must_use]
    pub fn help(mut self, help: impl AsRef<str>) -> Diagnostic {
        self.help = Some(printable(help.as_ref())).filter(|help| !help.is_empty());
        self
    }

    #[must_use]
    pub fn file(mut self, file: impl AsRef<str>) -> Diagnostic {
        self.file = Some(visible(file.as_ref()).into_owned());
        self
    }

    /// The place it is about.
    #[must_use]
    pub fn at(mut self, source: &Source, span: Range<usize>) -> Diagnostic {
        self.order.1 = span.start;
        self.spot = Some(source.spot(span));
        self.file(&source.name)
    }

    /// Another place it is about, and what is there; said after [`Diagnostic::at`].
    #[must_use]
    pub(crate) fn beside(mut self, source: &Source, span: Range<usize>, label: &str) -> Diagnostic {
        let file = visible(&source.name).into_owned();
        let spot = source.spot(span);
        let own = self.spot.as_ref().filter(|_| self.file.as_ref() == Some(&file));
        let between = own
            .filter(|own| own.line.abs_diff(spot.line) == 2)
            .map(|own| source.shown_line(own.line.min(spot.line) + 1));
        self.related.push(Related { file, spot, label: printable(label), between });
        self
    }

    /// About the file as a whole.
    #[must_use]
    pub fn nowhere(mut self) -> Diagnostic {
        self.order.1 = 0;
        self.spot = None;
        self.related.clear();
        self
    }

    /// Whether `other` has said the same of the same place.
    #[must_use]
    pub fn repeats(&self, other: &Diagnostic) -> bool {
        self.order == other.order && self.message == other.message
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
        let count = match self.0.len() {
            1 => None,
            all @ 2..=SHOWN => Some(format!("{all} mistakes")),
            all => Some(format!("{all} mistakes, the first {SHOWN} are shown")),
        };
        let count = count.map(Diagnostic::error);
        let shown = self.0.iter().take(SHOWN).chain(&count).map(|one| one.render(color));
        shown.collect::<Vec<String>>().join("\n\n")
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

/// A file may hold escape sequences; a terminal must not obey them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_mistakes_is_cut_and_counted() {
        let errors = Errors::new(vec![Diagnostic::error("wrong"); 70]);
        assert_eq!(errors.len(), 70);
        assert!(errors.render(false).ends_with("error: 70 mistakes, the first 50 are shown"));
    }
}
