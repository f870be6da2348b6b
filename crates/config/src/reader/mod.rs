//! The reader: walks the tables of a file by the registry and collects what it finds wrong.
//!
//! It never stops at a mistake. A value that cannot be used is reported and left at its default;
//! the plan is thrown away in the end, but everything else in the file has been looked at.

mod outline;
mod value;

pub(crate) use outline::Outline;
pub(crate) use value::{Place, Span, Value, as_i64};

use crate::{
    Context,
    diag::{Diagnostic, Errors, Severity, nearest},
    keys::{Table, foreign},
    source::Sources,
};
use mainstay_core::{name::Name, text::bytes};
use outline::Mistake;
use std::{
    collections::BTreeSet,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::de::DeTable;

/// Beyond this nothing more is collected: it is the wrong file.
const MOST_FOUND: usize = 1000;

pub(crate) struct Reader<'a> {
    pub(crate) ctx: &'a Context,
    sources: &'a Sources,
    /// The file being read.
    pub(crate) file: usize,
    /// The tables being read, outermost first.
    path: Vec<String>,
    found: Vec<Diagnostic>,
    /// How many of them are errors.
    errors: usize,
    /// The instance being read, for `{instance}`.
    pub(crate) instance: Option<u32>,
    /// Whether a secret may be read here, and whether one was.
    pub(crate) secret: Secret,
    /// There is a `[fleet]`.
    pub(crate) in_fleet: bool,
    /// The nodes that `[fleet]` lists; empty: it does not.
    pub(crate) known_nodes: Vec<Name>,
    /// What is found now has been told before.
    quiet: bool,
    /// Lines that are no TOML. What was made of them says nothing about what was meant.
    broken: BTreeSet<(usize, usize)>,
}

/// What `${file:…}` may do where a string is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret {
    Refused,
    Allowed,
    /// Allowed, and the string holds one.
    Used,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(sources: &'a Sources, ctx: &'a Context) -> Reader<'a> {
        Reader {
            ctx,
            sources,
            file: 0,
            path: Vec::new(),
            found: Vec::new(),
            errors: 0,
            instance: None,
            secret: Secret::Refused,
            in_fleet: false,
            known_nodes: Vec::new(),
            quiet: false,
            broken: BTreeSet::new(),
        }
    }

    /// Reads a table into `into`, key by key.
    pub(crate) fn table<T>(&mut self, table: &'static Table<T>, from: &DeTable<'_>, into: &mut T) {
        for (name, value) in from {
            let known = table.keys.iter().find(|entry| entry.key.name == name.get_ref());
            if let Some(entry) = known {
                let value = Value::new(&entry.key, value);
                self.within(entry.key.name, |reader| (entry.set)(into, value, reader));
            } else if table.later.contains(&name.get_ref().as_ref()) {
                self.not_yet(name.get_ref(), name.span());
            } else if let Some(no) = table.refused.iter().find(|no| no.name == name.get_ref()) {
                self.within(no.name, |reader| reader.wrong::<()>(name.span(), no.why, no.help));
            } else {
                let known: Vec<&str> = table.keys.iter().map(|entry| entry.key.name).collect();
                self.unknown(name.get_ref(), name.span(), &known, table.later);
            }
        }
    }

    /// Does something one table deeper.
    pub(crate) fn within<R>(&mut self, name: &str, what: impl FnOnce(&mut Reader<'a>) -> R) -> R {
        self.path.push(name.to_owned());
        let result = what(self);
        self.path.pop();
        result
    }

    /// Reads something that may hold a secret; says whether it does.
    pub(crate) fn secret<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
    ) -> Option<(T, bool)> {
        self.secret = Secret::Allowed;
        let value = read(self);
        let used = self.secret == Secret::Used;
        self.secret = Secret::Refused;
        value.map(|value| (value, used))
    }

    /// Does something whose mistakes are not told if they have been already.
    pub(crate) fn quiet<R>(&mut self, quiet: bool, what: impl FnOnce(&mut Reader<'a>) -> R) -> R {
        let was = std::mem::replace(&mut self.quiet, quiet);
        let result = what(self);
        self.quiet = was;
        result
    }

    /// How many errors have been found.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// So many errors that no more are kept: no time need be spent on good advice.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MOST_FOUND
    }

    /// The directory that relative paths in the file being read start from.
    pub(crate) fn directory(&self) -> PathBuf {
        let name = self.sources.get(self.file).map_or("", |source| source.name.as_str());
        let name = bytes::to_os(name);
        Path::new(&name).parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The files of the configuration.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let path = |name: &str| {
            let path = PathBuf::from(bytes::to_os(name).into_owned());
            std::path::absolute(&path).unwrap_or(path)
        };
        self.sources.iter().map(|(_, source)| path(&source.name)).collect()
    }

    pub(crate) fn not_yet(&mut self, name: &str, span: Range<usize>) {
        let message = format!("'{name}'{} is not supported yet", self.place());
        let found = Diagnostic::error(message).help("remove it: this version cannot do it");
        self.report(span, found, None);
    }

    pub(crate) fn unknown(&mut self, name: &str, at: Range<usize>, known: &[&str], later: &[&str]) {
        let what = if self.path.is_empty() { "table" } else { "key" };
        let found = Diagnostic::error(format!("unknown {what} '{name}'{}", self.place()));
        // A slip in one of ours comes before a slip in a foreign one that is as near.
        let ours = known.iter().chain(later).copied();
        let near = nearest(name, ours.chain(foreign::names(&self.path)));
        let meant = |near: &str| foreign::ours(&self.path, near).filter(|_| !known.contains(&near));
        let help = match (foreign::ours(&self.path, name), near) {
            (Some(ours), _) => ours.to_owned(),
            (None, Some(near)) => match meant(near) {
                Some(ours) => format!("instead of '{near}' {ours}"),
                None => format!("did you mean '{near}'?"),
            },
            (None, None) => format!("remove it, or use one of: {}", known.join(" ")),
        };
        self.report(at, found.help(help), None);
    }

    fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!(" in {}", self.path.join(".")) }
    }

    /// A place in the file being read.
    pub(crate) fn here(&self, span: impl Into<Span>) -> Place {
        Place { file: self.file, span: span.into() }
    }

    /// Reports a mistake about the value being read. Always `None`, to be returned at once.
    pub(crate) fn wrong<T>(
        &mut self,
        span: impl Into<Range<usize>>,
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) -> Option<T> {
        let message = format!("{}: {}", self.path.join("."), message.as_ref());
        self.report(span.into(), Diagnostic::error(message).help(help), None);
        None
    }

    /// As [`Reader::wrong`], with another place that has to do with it and what is there.
    pub(crate) fn wrong_beside<T>(
        &mut self,
        span: impl Into<Range<usize>>,
        other: (Place, &str),
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) -> Option<T> {
        let message = format!("{}: {}", self.path.join("."), message.as_ref());
        self.report(span.into(), Diagnostic::error(message).help(help), Some(other));
        None
    }

    /// As [`Reader::wrong`], of something that is not there: a file that cannot be read may hold it.
    pub(crate) fn absent<T>(
        &mut self,
        span: impl Into<Range<usize>>,
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) -> Option<T> {
        let message = format!("{}: {}", self.path.join("."), message.as_ref());
        let found = Diagnostic { absence: true, ..Diagnostic::error(message) };
        self.report(span.into(), found.help(help), None);
        None
    }

    pub(crate) fn warn(
        &mut self,
        span: impl Into<Range<usize>>,
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) {
        let message = format!("{}: {}", self.path.join("."), message.as_ref());
        self.report(span.into(), Diagnostic::warning(message).help(help), None);
    }

    /// Warns of what means something in a fleet only.
    pub(crate) fn lonely(&mut self, span: impl Into<Range<usize>>) {
        self.warn(span, "it does nothing without [fleet]", "add [fleet], or remove it");
    }

    /// As [`Reader::warn`], with another place that has to do with it and what is there.
    pub(crate) fn warn_beside(
        &mut self,
        span: impl Into<Range<usize>>,
        other: (Place, &str),
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) {
        let message = format!("{}: {}", self.path.join("."), message.as_ref());
        self.report(span.into(), Diagnostic::warning(message).help(help), Some(other));
    }

    /// Reports that the text is no TOML here.
    pub(crate) fn syntax(&mut self, outline: &Outline, span: Option<Range<usize>>, message: &str) {
        let text = self.sources.get(self.file).map_or("", |source| source.text.as_str());
        let mistake = outline.mistake(text, span.as_ref());
        let mut span = span.unwrap_or(text.len()..text.len());
        let mut beside = None;
        let found = match mistake {
            Mistake::DuplicateKey { first } => {
                beside = Some((Place { file: self.file, span: first.into() }, "first here"));
                Diagnostic::error("duplicate key").help("remove one of them")
            }
            Mistake::NoValue => {
                Diagnostic::error("a value is missing").help("write one, or remove the key")
            }
            Mistake::UnquotedText => {
                Diagnostic::error("this is not a value").help("put text in quotes")
            }
            Mistake::TooDeep(at) => {
                span = at;
                Diagnostic::error("too many levels inside each other")
                    .help("no configuration needs so many: is this the right file?")
            }
            Mistake::Syntax => Diagnostic::error(message),
        };
        let line = self.sources.get(self.file).map_or(0, |source| source.line(span.start));
        // One line gives one report: the rest of them would be about the recovery from the first.
        if !self.broken.contains(&(self.file, line)) {
            self.report(span, found, beside);
            self.broken.insert((self.file, line));
        }
    }

    /// Whether the file being read is TOML throughout. If not, nothing can be said to be missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.broken.range((self.file, 0)..(self.file + 1, 0)).next().is_none()
    }

    /// Reports that something is missing altogether, unless another mistake may be why.
    pub(crate) fn nothing(&mut self, message: &str, help: &str) {
        let clean = self.found.iter().all(|found| found.severity == Severity::Warning);
        if let Some(source) = self.sources.get(0)
            && clean
        {
            self.errors += 1;
            let found = Diagnostic { absence: true, ..Diagnostic::error(message) };
            self.found.push(found.help(help).file(&source.name));
        }
    }

    fn report(&mut self, span: Range<usize>, mut found: Diagnostic, beside: Option<(Place, &str)>) {
        let Some(source) = self.sources.get(self.file) else { return };
        let line = source.line(span.start);
        // Warnings must not crowd out an error: what has one must not be taken for valid.
        let many = match found.severity {
            Severity::Error => self.errors >= MOST_FOUND,
            Severity::Warning => self.found.len() - self.errors >= MOST_FOUND,
        };
        found.order = (self.file, span.start);
        if self.quiet
            || many
            || self.broken.contains(&(self.file, line))
            || self.found.iter().any(|told| found.repeats(told))
        {
            return;
        }
        self.errors += usize::from(found.severity == Severity::Error);
        found = found.at(source, span);
        if let Some((place, label)) = beside
            && let Some(other) = self.sources.get(place.file)
        {
            found = found.beside(other, place.span.into(), label);
        }
        self.found.push(found);
    }

    /// Where something is, for a message about something else.
    pub(crate) fn position(&self, place: Place) -> String {
        self.sources.get(place.file).map_or_else(String::new, |source| {
            let spot = source.spot(place.span.into());
            format!("{}:{}:{}", source.name, spot.line, spot.column)
        })
    }

    /// The line something is on.
    pub(crate) fn file_line(&self, file: usize, offset: usize) -> String {
        self.sources.get(file).map_or_else(String::new, |source| {
            format!("{}:{}", source.name, source.line(offset) + 1)
        })
    }

    /// The warnings, or the errors if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, Errors> {
        self.found.sort_by_key(|found| found.order);
        let (mut errors, warnings): (Vec<_>, Vec<_>) =
            self.found.into_iter().partition(|found| found.severity == Severity::Error);
        let unread = self.sources.unread();
        if !unread.is_empty() {
            // What is missed may be in what could not be read.
            errors.retain(|found| !found.absence);
            errors.splice(0..0, unread.iter().cloned());
        }
        if errors.is_empty() { Ok(warnings) } else { Err(Errors::new(errors)) }
    }
}
