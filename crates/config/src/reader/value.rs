//! Values: from TOML to the types of a plan, with a diagnostic for each way to be wrong.
//!
//! Every string passes `text`, which expands `${VAR}` and refuses NUL, so that no way around
//! either exists.

use crate::{
    diag::nearest,
    keys::{Key, Kind, Table},
    notation::{
        duration,
        expand::{ExpandError, expand},
        shell_words, size,
    },
    reader::{Reader, Secret},
    source::read_small,
};
use mainstay_core::signal::Signal;
use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};
use std::{ops::Range, ops::RangeInclusive, time::Duration};
use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

/// A value in the file, and the key it is for.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) key: &'static Key,
    pub(crate) span: Span,
    pub(crate) de: &'a DeValue<'a>,
    /// It is one of several in a list or table.
    element: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A span in one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) span: Span,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span { start: range.start, end: range.end }
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Range<usize> {
        span.start..span.end
    }
}

impl<'a> Value<'a> {
    pub(crate) fn new(key: &'static Key, value: &'a Spanned<DeValue<'a>>) -> Value<'a> {
        Value { key, span: value.span().into(), de: value.get_ref(), element: false }
    }

    fn kind(self) -> Kind {
        if self.element { self.key.kind.element() } else { self.key.kind }
    }

    /// One of the values inside this one.
    pub(crate) fn inside(self, inner: &'a Spanned<DeValue<'a>>) -> Value<'a> {
        Value { element: true, ..Value::new(self.key, inner) }
    }
}

/// In one list: nobody has so many conditions or checks.
const MOST_TABLES: usize = 1000;

const DURATION_HELP: &str =
    "write for example \"90s\", \"1h30m\", \"200ms\" or a number of seconds";
const SIZE_HELP: &str = "write for example 4096, \"64K\", \"10M\" or \"1G\"";

impl Reader<'_> {
    pub(crate) fn text(&mut self, v: Value<'_>) -> Option<String> {
        match v.de {
            DeValue::String(text) => self.expanded(v, text),
            _ => self.unfit(v),
        }
    }

    fn expanded(&mut self, v: Value<'_>, text: &str) -> Option<String> {
        let numbered = self.instance.map(|n| text.replace("{instance}", &n.to_string()));
        let (directory, mut secret) = (self.directory(), self.secret);
        let mut file = |path: &str| match secret {
            Secret::Refused => Err(ExpandError {
                message: "${file:…} is a secret, and this is shown to others".to_owned(),
                help: "put it into env, or into the headers of a check".to_owned(),
            }),
            Secret::Allowed | Secret::Used => {
                secret = Secret::Used;
                read_small(&directory.join(path)).map(without_line_end).map_err(|why| ExpandError {
                    message: format!("cannot read '{path}': {why}"),
                    help: "check the path and its permissions".to_owned(),
                })
            }
        };
        let expanded = expand(numbered.as_deref().unwrap_or(text), &self.ctx.env, &mut file);
        self.secret = secret;
        let text = match expanded {
            Ok(text) => text,
            Err(problem) => return self.wrong(v.span, problem.message, problem.help),
        };
        if text.contains('\0') {
            return self.wrong(
                v.span,
                "the string holds a NUL character",
                "remove it: no program can be given one",
            );
        }
        Some(text)
    }

    /// A string that says something.
    pub(crate) fn filled(&mut self, v: Value<'_>) -> Option<String> {
        let text = self.text(v)?;
        if text.is_empty() {
            return self.wrong(
                v.span,
                "the string is empty",
                format!("write {}, or remove the key", v.kind().expects()),
            );
        }
        Some(text)
    }

    /// A string, or a number or boolean as its text.
    pub(crate) fn scalar(&mut self, v: Value<'_>) -> Option<String> {
        match v.de {
            DeValue::String(text) => self.expanded(v, text),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            DeValue::Boolean(truth) => Some(truth.to_string()),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => self.wrong(
                v.span,
                format!("expected a string, found {}", found(v.de)),
                "put it in quotes",
            ),
        }
    }

    /// A user or group: a name, or an id.
    pub(crate) fn account(&mut self, v: Value<'_>) -> Option<String> {
        match v.de {
            DeValue::Integer(_) => {
                self.integer(v, 0..=i64::from(u32::MAX) - 1).map(|id| id.to_string())
            }
            _ => self.filled(v),
        }
    }

    pub(crate) fn boolean(&mut self, v: Value<'_>) -> Option<bool> {
        match v.de {
            DeValue::Boolean(truth) => Some(*truth),
            _ => self.unfit(v),
        }
    }

    pub(crate) fn integer(&mut self, v: Value<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let DeValue::Integer(number) = v.de else { return self.unfit(v) };
        match as_i64(number).filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let help = format!("use a number from {} to {}", range.start(), range.end());
                self.wrong(v.span, format!("{number} is out of range"), help)
            }
        }
    }

    pub(crate) fn count(&mut self, v: Value<'_>, least: u32) -> Option<u32> {
        let number = self.integer(v, i64::from(least)..=i64::from(u32::MAX))?;
        u32::try_from(number).ok()
    }

    pub(crate) fn number(&mut self, v: Value<'_>) -> Option<f64> {
        let number = match v.de {
            DeValue::Integer(number) => as_i64(number).map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => return self.unfit(v),
        };
        match number.filter(|number| number.is_finite()) {
            Some(number) => Some(number),
            None => self.wrong(v.span, "not a finite number", "write for example 0.5"),
        }
    }

    /// A number above zero.
    pub(crate) fn positive(&mut self, v: Value<'_>) -> Option<f64> {
        let number = match v.de {
            DeValue::Integer(number) => number.to_string().parse::<f64>(),
            DeValue::Float(number) => number.as_str().parse::<f64>(),
            _ => return self.unfit(v),
        };
        match number {
            Ok(number) if number > 0.0 && number <= 1e6 => Some(number),
            _ => self.wrong(v.span, "out of range", "use a number above 0, for example 1.5"),
        }
    }

    pub(crate) fn duration(&mut self, v: Value<'_>) -> Option<Duration> {
        let (read, shown) = match v.de {
            DeValue::String(text) => {
                let text = self.expanded(v, text)?;
                (duration::parse(&text), format!("'{text}'"))
            }
            DeValue::Integer(number) => {
                let seconds = as_i64(number).and_then(|number| u32::try_from(number).ok());
                (seconds.and_then(|it| duration::seconds(f64::from(it))), number.to_string())
            }
            DeValue::Float(number) => {
                let seconds = number.as_str().parse::<f64>().ok();
                (seconds.and_then(duration::seconds), number.to_string())
            }
            _ => return self.unfit(v),
        };
        match read {
            Some(duration) => Some(duration),
            None => self.wrong(v.span, format!("{shown} is not a duration"), DURATION_HELP),
        }
    }

    /// A duration that something happens in or after: at least a millisecond.
    pub(crate) fn period(&mut self, v: Value<'_>) -> Option<Duration> {
        let period = self.duration(v)?;
        if period < Duration::from_millis(1) {
            return self.wrong(v.span, "too short", "use at least \"1ms\"");
        }
        Some(period)
    }

    pub(crate) fn signal(&mut self, v: Value<'_>) -> Option<Signal> {
        let text = match v.de {
            DeValue::Integer(number) => number.to_string(),
            _ => self.text(v)?,
        };
        match text.parse::<Signal>() {
            Ok(signal) => Some(signal),
            Err(_) => {
                let help = "use for example SIGTERM, HUP, RTMIN+3 or 15";
                self.wrong(v.span, format!("'{text}' is not a signal"), help)
            }
        }
    }

    pub(crate) fn size(&mut self, v: Value<'_>) -> Option<u64> {
        let (read, shown) = match v.de {
            DeValue::String(text) => {
                let text = self.expanded(v, text)?;
                (size::parse(&text), format!("'{text}'"))
            }
            DeValue::Integer(number) => {
                (as_i64(number).and_then(|it| u64::try_from(it).ok()), number.to_string())
            }
            _ => return self.unfit(v),
        };
        match read {
            Some(size) => Some(size),
            None => self.wrong(v.span, format!("{shown} is not a size"), SIZE_HELP),
        }
    }

    /// A size or `"unlimited"`, which is the inner `None`.
    pub(crate) fn limit(&mut self, v: Value<'_>) -> Option<Option<u64>> {
        if let DeValue::String(text) = v.de
            && self.expanded(v, text)? == "unlimited"
        {
            return Some(None);
        }
        self.size(v).map(Some)
    }

    /// One of the words that the registry lists for the key.
    pub(crate) fn word(&mut self, v: Value<'_>) -> Option<String> {
        let text = self.text(v)?;
        let (Kind::OneOf(words) | Kind::OneOfOrTable(words) | Kind::WordsOrTables(words)) =
            v.key.kind
        else {
            return Some(text);
        };
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        let help = match nearest(&text, words.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("use one of: {}", words.join(", ")),
        };
        self.wrong(v.span, format!("'{text}' is not a choice"), help)
    }

    pub(crate) fn one_of<T: DeserializeOwned>(&mut self, v: Value<'_>) -> Option<T> {
        let word = self.word(v)?;
        let plain: StrDeserializer<'_, serde::de::value::Error> = word.as_str().into_deserializer();
        match T::deserialize(plain) {
            Ok(choice) => Some(choice),
            Err(error) => {
                self.wrong(v.span, format!("'{word}' is not a choice"), error.to_string())
            }
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        v: Value<'_>,
        mut one: impl FnMut(&mut Self, Value<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let DeValue::Array(array) = v.de else { return self.unfit(v) };
        // Every element is looked at before the list as a whole is given up.
        let all: Vec<Option<T>> = array.iter().map(|inner| one(self, v.inside(inner))).collect();
        all.into_iter().collect()
    }

    /// A table whose keys the user chooses.
    pub(crate) fn map<T>(
        &mut self,
        v: Value<'_>,
        mut one: impl FnMut(&mut Self, &str, Span, Value<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let table = self.is_table(v)?;
        let all: Vec<Option<T>> = table
            .iter()
            .map(|(name, inner)| {
                let span = name.span().into();
                self.within(name.get_ref(), |r| one(r, name.get_ref(), span, v.inside(inner)))
            })
            .collect();
        all.into_iter().collect()
    }

    pub(crate) fn nested<T>(
        &mut self,
        v: Value<'_>,
        table: &'static Table<T>,
        into: &mut T,
    ) -> Option<()> {
        let from = self.is_table(v)?;
        self.table(table, from, into);
        Some(())
    }

    /// A table, or a list of such tables; each with where it is.
    pub(crate) fn tables<T>(
        &mut self,
        v: Value<'_>,
        table: &'static Table<T>,
        new: fn() -> T,
    ) -> Option<Vec<(T, Span)>> {
        let one = |r: &mut Self, v: Value<'_>| {
            let mut it = new();
            r.nested(v, table, &mut it)?;
            Some((it, v.span))
        };
        match v.de {
            DeValue::Array(array) if array.is_empty() => {
                self.wrong(v.span, "the list is empty", "remove the key, or write a table")
            }
            DeValue::Array(array) if array.len() > MOST_TABLES => {
                let message = format!("more than {MOST_TABLES} tables");
                self.wrong(v.span, message, "write several jobs")
            }
            DeValue::Array(_) => self.list(v, one),
            DeValue::Table(_) => one(self, v).map(|it| vec![it]),
            _ => self.unfit(v),
        }
    }

    pub(crate) fn is_table<'v>(&mut self, v: Value<'v>) -> Option<&'v DeTable<'v>> {
        match v.de {
            DeValue::Table(table) => Some(table),
            _ => self.unfit(v),
        }
    }

    /// Program and arguments.
    pub(crate) fn command(&mut self, v: Value<'_>) -> Option<Vec<String>> {
        let words = match v.de {
            DeValue::String(line) => {
                let words = match shell_words::split(line) {
                    Ok(words) => words,
                    Err(open) => {
                        let help = "close it, or write a list: [\"program\", \"argument\"]";
                        return self.wrong(v.span, open.what(), help);
                    }
                };
                self.suspect(v, &words);
                // Expanded after the split: a value with blanks stays one argument.
                let all: Vec<Option<String>> =
                    words.iter().map(|word| self.expanded(v, &word.text)).collect();
                all.into_iter().collect::<Option<Vec<String>>>()?
            }
            DeValue::Array(_) => self.list(v, |r, inner| match inner.de {
                DeValue::Integer(_) => r.scalar(inner),
                _ => r.text(inner),
            })?,
            _ => return self.unfit(v),
        };
        if words.first().is_none_or(String::is_empty) {
            return self.wrong(
                v.span,
                "no program is named",
                "write the program and its arguments",
            );
        }
        Some(words)
    }

    /// What a shell would have acted upon reaches the program as it is; that is rarely meant.
    fn suspect(&mut self, v: Value<'_>, words: &[shell_words::Word]) {
        const OPERATORS: [&str; 10] = ["&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "2>"];
        for word in words.iter().filter(|word| !word.quoted) {
            let variable = word.text.strip_prefix('$').unwrap_or_default();
            if OPERATORS.contains(&word.text.as_str()) {
                let message =
                    format!("'{}' is passed as an argument: no shell runs this", word.text);
                self.warn(v.span, message, "for a shell: [\"sh\", \"-c\", \"…\"]");
            } else if variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                let message = format!("'{}' is passed as it is: no shell runs this", word.text);
                self.warn(v.span, message, format!("for its value: ${{{variable}}}"));
            }
        }
    }

    /// The value has the wrong type for its key.
    pub(crate) fn unfit<T>(&mut self, v: Value<'_>) -> Option<T> {
        let message = format!("expected {}, found {}", v.kind().expects(), found(v.de));
        let help = match v.kind() {
            Kind::Duration => DURATION_HELP.to_owned(),
            Kind::Size | Kind::Limit => SIZE_HELP.to_owned(),
            Kind::OneOf(words) | Kind::OneOfOrTable(words) | Kind::WordsOrTables(words) => {
                format!("use one of: {}", words.join(", "))
            }
            kind => format!("write {}", kind.expects()),
        };
        self.wrong(v.span, message, help)
    }
}

/// Files of secrets are written with one, and it is not meant.
fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

pub(crate) fn as_i64(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
