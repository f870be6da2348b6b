//! Reading the tree: strict about keys, weak about types, every mistake in one pass, each at its
//! place in the file as it was written.

use super::{
    duration,
    json5::{Json5Node, Json5Value, Member},
    parts::Parts,
};
use mainstay_config::{Diagnostic, Errors, nearest};
use mainstay_core::interface::InterfaceSpec;
use std::{ops::Range, time::Duration};

/// A file with more mistakes is the wrong file.
const MOST_FOUND: usize = 1000;

/// A place in the rendered text.
pub(super) type Span = Range<usize>;

pub(super) struct Reader<'a> {
    parts: &'a Parts<'a>,
    found: Vec<Diagnostic>,
}

/// The keys of an object by their proper names.
pub(super) struct Fields<'n> {
    pub(super) span: Span,
    all: Vec<(&'static str, &'n Member)>,
}

impl<'n> Fields<'n> {
    /// What a key says; `null` says nothing.
    pub(super) fn get(&self, key: &str) -> Option<&'n Json5Node> {
        let (_, entry) = self.all.iter().find(|(name, _)| *name == key)?;
        Some(&entry.node).filter(|node| node.value != Json5Value::Null)
    }

    /// As `get`; empty text says nothing either: to ContainerPilot it is the same as no key.
    pub(super) fn filled(&self, key: &str) -> Option<&'n Json5Node> {
        self.get(key).filter(|node| node.value != Json5Value::Text(String::new()))
    }

    /// Where a key is, or the object if it is not.
    pub(super) fn at(&self, key: &str) -> Span {
        let entry = self.all.iter().find(|(name, _)| *name == key);
        entry.map_or_else(|| self.span.clone(), |(_, entry)| entry.span.clone())
    }
}

/// Whether a key is found in any case: ContainerPilot looks more closely at the top.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Case {
    Exact,
    Any,
}

impl<'a> Reader<'a> {
    pub(super) fn new(parts: &'a Parts<'a>) -> Reader<'a> {
        Reader { parts, found: Vec::new() }
    }

    /// Reports a mistake.
    pub(super) fn wrong<T>(
        &mut self,
        span: &Span,
        message: impl AsRef<str>,
        help: impl AsRef<str>,
    ) -> Option<T> {
        if self.found.len() >= MOST_FOUND {
            return None;
        }
        let at = self.parts.locate(span)?;
        let mut help = help.as_ref().to_owned();
        if let Some((line, made)) = at.made {
            let made: String = made.lines().next().unwrap_or_default().chars().take(40).collect();
            help = format!("{help} (in the rendered file, line {line}: {made})");
        }
        let found = Diagnostic::error(message).help(help).at(at.source, at.span);
        if !self.found.iter().any(|told| found.repeats(told)) {
            self.found.push(found);
        }
        None
    }

    /// The line of its file that something is on, counted from 1.
    pub(super) fn line(&self, span: &Span) -> usize {
        self.parts.locate(span).map_or(1, |at| at.source.line(at.span.start) + 1)
    }

    /// The file that something is in.
    pub(super) fn file(&self, span: &Span) -> &str {
        self.parts.locate(span).map_or("", |at| at.source.name.as_str())
    }

    /// Where something is in its file, for a message about something else.
    fn position(&self, span: &Span) -> String {
        let Some(at) = self.parts.locate(span) else { return String::new() };
        let spot = at.source.spot(at.span);
        format!("{}:{}", spot.line, spot.column)
    }

    /// Variables whose value 3.8.0 cut short.
    pub(super) fn cut(&self) -> impl Iterator<Item = &String> {
        self.parts.cut()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn finish(self) -> Result<(), Errors> {
        if self.found.is_empty() { Ok(()) } else { Err(Errors::of_file(self.found)) }
    }

    /// The keys of an object; those that are unknown or there twice are mistakes.
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Json5Node,
        what: &str,
        known: &'static [&'static str],
        case: Case,
    ) -> Option<Fields<'n>> {
        let Json5Value::Map(entries) = &node.value else {
            let message = format!("{what} is {}, and must be an object", kind(&node.value));
            return self.wrong(&node.span, message, "write { key: value, … }");
        };
        let mut fields = Fields { span: node.span.clone(), all: Vec::new() };
        for entry in entries {
            let same = |name: &&&str| match case {
                Case::Exact => **name == entry.key,
                Case::Any => name.eq_ignore_ascii_case(&entry.key),
            };
            let Some(name) = known.iter().find(same) else {
                let help = match (old(&entry.key), nearest(&entry.key, known.iter().copied())) {
                    (Some(old), _) => old.to_owned(),
                    (None, Some(near)) => format!("did you mean '{near}'?"),
                    (None, None) => format!("remove it; the keys are: {}", known.join(" ")),
                };
                self.wrong::<()>(
                    &entry.span,
                    format!("unknown key '{}' in {what}", entry.key),
                    help,
                );
                continue;
            };
            if let Some((_, first)) = fields.all.iter().find(|(other, _)| other == name) {
                let message =
                    format!("'{name}' in {what} is already set at {}", self.position(&first.span));
                self.wrong::<()>(&entry.span, message, "remove one of them");
                continue;
            }
            fields.all.push((name, entry));
        }
        Some(fields)
    }

    fn unfit<T>(&mut self, node: &Json5Node, what: &str, wanted: &str, help: &str) -> Option<T> {
        let message = format!("{what} is {}, and must be {wanted}", shown(&node.value));
        self.wrong(&node.span, message, help)
    }

    pub(super) fn text(&mut self, node: &Json5Node, what: &str) -> Option<String> {
        match scalar(&node.value, "1", "0") {
            Some(text) => self.whole_text(node, what, text),
            None => self.unfit(node, what, "text", "write it in quotes"),
        }
    }

    /// Neither a program nor Consul can be given a zero byte: it would end the text, or be lost.
    fn whole_text(&mut self, node: &Json5Node, what: &str, text: String) -> Option<String> {
        if text.contains('\0') {
            let message = format!("{what} has a zero byte in it");
            return self.wrong(&node.span, message, "remove \\0, \\x00 or \\u0000");
        }
        Some(text)
    }

    /// Text as it stands in a command or a list.
    fn word(&mut self, node: &Json5Node, what: &str) -> Option<String> {
        match scalar(&node.value, "true", "false") {
            Some(text) => self.whole_text(node, what, text),
            None => self.unfit(node, what, "text", "write it in quotes"),
        }
    }

    /// A list of texts; one text is a list of one.
    pub(super) fn texts(&mut self, node: &Json5Node, what: &str) -> Option<Vec<String>> {
        match &node.value {
            Json5Value::List(all) => {
                let all: Vec<Option<String>> =
                    all.iter().map(|one| self.word(one, &format!("an item of {what}"))).collect();
                all.into_iter().collect()
            }
            _ => match scalar(&node.value, "true", "false") {
                Some(one) => Some(vec![self.whole_text(node, what, one)?]),
                None => self.unfit(node, what, "a list of texts", "write [\"…\", \"…\"]"),
            },
        }
    }

    /// Which address is meant: a list of wishes.
    pub(super) fn interfaces(&mut self, node: &Json5Node, what: &str) -> Option<Vec<String>> {
        let texts = self.texts(node, what)?;
        let places = match &node.value {
            Json5Value::List(all) => all.iter().map(|one| one.span.clone()).collect(),
            _ => vec![node.span.clone()],
        };
        for (text, span) in texts.iter().zip(&places) {
            if let Err(error) = text.parse::<InterfaceSpec>() {
                let message = format!("'{text}' in {what} does not say which address to take");
                self.wrong::<()>(span, message, error.hint);
            }
        }
        Some(texts)
    }

    pub(super) fn integer(&mut self, node: &Json5Node, what: &str) -> Option<i64> {
        let found = match &node.value {
            Json5Value::Bool(it) => Some(i64::from(*it)),
            Json5Value::Text(text) => whole(text),
            Json5Value::Number(number) if number.is_finite() =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "as there: cut off")]
                Some(*number as i64)
            }
            Json5Value::Number(_) | Json5Value::Null | Json5Value::List(_) | Json5Value::Map(_) => {
                None
            }
        };
        match found {
            Some(number) => Some(number),
            None => self.unfit(node, what, "a whole number", "write digits only, without a unit"),
        }
    }

    /// Seconds, at least one.
    pub(super) fn seconds(&mut self, node: &Json5Node, what: &str) -> Option<Duration> {
        let seconds = self.integer(node, what)?;
        match u64::try_from(seconds) {
            Ok(seconds @ 1..=1_000_000_000) => Some(Duration::from_secs(seconds)),
            _ => {
                let message = format!("{what} is {seconds}, and must be at least 1");
                self.wrong(&node.span, message, "write a number of seconds")
            }
        }
    }

    pub(super) fn boolean(&mut self, node: &Json5Node, what: &str) -> Option<bool> {
        let found = match &node.value {
            Json5Value::Bool(it) => Some(*it),
            Json5Value::Number(number) => Some(*number != 0.0),
            Json5Value::Text(text) => truth(text),
            Json5Value::Null | Json5Value::List(_) | Json5Value::Map(_) => None,
        };
        match found {
            Some(it) => Some(it),
            None => self.unfit(node, what, "true or false", "write true or false"),
        }
    }

    /// A duration, in nanoseconds, with its sign.
    fn nanos(&mut self, node: &Json5Node, what: &str) -> Option<f64> {
        let found = match &node.value {
            Json5Value::Number(seconds) => Some(seconds * 1e9),
            Json5Value::Text(text) => match text.trim().parse::<i64>() {
                #[expect(clippy::cast_precision_loss, reason = "beyond any duration")]
                Ok(seconds) => Some(seconds as f64 * 1e9),
                Err(_) => duration::parse(text.trim()),
            },
            Json5Value::Null | Json5Value::Bool(_) | Json5Value::List(_) | Json5Value::Map(_) => {
                None
            }
        };
        match found {
            Some(nanos) => Some(nanos),
            None => self.unfit(
                node,
                what,
                "a duration",
                "write \"10s\", \"1h30m\", \"500ms\" or a number of seconds",
            ),
        }
    }

    /// A duration of at least a millisecond.
    pub(super) fn duration(&mut self, node: &Json5Node, what: &str) -> Option<Duration> {
        let nanos = self.nanos(node, what)?;
        match duration::from_nanos(nanos).filter(|_| nanos >= 1e6) {
            Some(duration) => Some(duration),
            None if nanos < 1e6 => {
                let message = format!("{what} is {}, and must be at least 1ms", shown(&node.value));
                self.wrong(&node.span, message, "make it longer, or remove it")
            }
            None => {
                let message = format!("{what} is {}, which is too long", shown(&node.value));
                self.wrong(&node.span, message, "write less than a century")
            }
        }
    }

    /// A command: text is cut at every single blank, as there.
    pub(super) fn command(&mut self, node: &Json5Node, what: &str) -> Option<Vec<String>> {
        let words = match &node.value {
            Json5Value::List(_) | Json5Value::Map(_) => self.texts(node, what)?,
            _ => {
                let text = self.word(node, what)?;
                text.trim().split(' ').map(str::to_owned).collect()
            }
        };
        if words.first().is_none_or(|first| first.trim().is_empty()) {
            let message = format!("{what} names no program");
            return self.wrong(&node.span, message, "write the program and its arguments");
        }
        Some(words)
    }
}

/// Text of what is not a list or an object; Go and its decoder write a bool in two ways.
fn scalar(value: &Json5Value, yes: &str, no: &str) -> Option<String> {
    match value {
        Json5Value::Text(text) => Some(text.clone()),
        Json5Value::Number(number) => Some(number.to_string()),
        Json5Value::Bool(it) => Some(if *it { yes.to_owned() } else { no.to_owned() }),
        Json5Value::Null | Json5Value::List(_) | Json5Value::Map(_) => None,
    }
}

/// An integer as Go reads one whose base is in its prefix.
fn whole(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then(|| i64::from_str_radix(digits, base).ok()).flatten()?.checked_mul(sign)
}

/// Text as Go reads a bool; no text is false.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn kind(value: &Json5Value) -> &'static str {
    match value {
        Json5Value::Null => "null",
        Json5Value::Bool(_) => "true or false",
        Json5Value::Number(_) => "a number",
        Json5Value::Text(_) => "text",
        Json5Value::List(_) => "a list",
        Json5Value::Map(_) => "an object",
    }
}

fn shown(value: &Json5Value) -> String {
    match value {
        Json5Value::Text(text) => {
            let short: String = text.chars().take(60).collect();
            format!("'{short}'")
        }
        Json5Value::Number(number) => number.to_string(),
        Json5Value::Bool(it) => it.to_string(),
        Json5Value::Null | Json5Value::List(_) | Json5Value::Map(_) => kind(value).to_owned(),
    }
}

/// Keys of ContainerPilot 2, and what has become of them.
fn old(key: &str) -> Option<&'static str> {
    match key {
        "services" | "coprocesses" | "tasks" => {
            Some("this is ContainerPilot 2: each of them is an item of jobs")
        }
        "backends" => {
            Some("this is ContainerPilot 2: use watches, and a job for what is to be run")
        }
        "preStart" | "preStop" | "postStop" => {
            Some("this is ContainerPilot 2: make it a job with a 'when'")
        }
        "onChange" => Some(
            "this is ContainerPilot 2: make it a job with when: { source: \"watch.NAME\", each: \"changed\" }",
        ),
        "poll" => Some("this is ContainerPilot 2: use interval"),
        "sensors" => Some("this is ContainerPilot 2: use metrics, and a job that sends them"),
        _ => None,
    }
}
