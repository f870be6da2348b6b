//! JSON5 as a tree that knows where everything stands: keys keep their order, and a key that comes
//! twice stays twice. Depth is bounded; the first mistake ends it.

use std::ops::Range;

/// Deeper than any configuration; far from what the stack bears.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Json5Node {
    pub(super) span: Range<usize>,
    pub(super) value: Json5Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json5Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json5Node>),
    Map(Vec<Member>),
}

/// A key and what it says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) span: Range<usize>,
    pub(super) node: Json5Node,
}

/// The first mistake, and where it is.
#[derive(Debug, PartialEq)]
pub(super) struct Json5Error {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: &'static str,
}

pub(super) fn parse(text: &str) -> Result<Json5Node, Json5Error> {
    let mut parser = Json5Parser { text, at: 0 };
    parser.skip()?;
    let node = parser.value(0)?;
    parser.skip()?;
    match parser.peek() {
        None => Ok(node),
        Some('}' | ']') => Err(parser.here("a bracket closes that was not opened", "remove it")),
        Some(_) => Err(parser.here(
            "there is something after the end of the configuration",
            "a file is one object: { consul: …, jobs: […] }",
        )),
    }
}

struct Json5Parser<'a> {
    text: &'a str,
    at: usize,
}

type Parsed<T> = Result<T, Json5Error>;

impl Json5Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, what: char) -> bool {
        let there = self.peek() == Some(what);
        if there {
            self.at += what.len_utf8();
        }
        there
    }

    fn bad(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: &'static str,
    ) -> Json5Error {
        Json5Error { span, message: message.into(), help }
    }

    /// About the character that comes next.
    fn here(&self, message: impl Into<String>, help: &'static str) -> Json5Error {
        let width = self.peek().map_or(0, char::len_utf8);
        self.bad(self.at..self.at + width, message, help)
    }

    /// What comes next, in words.
    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(c) => format!("'{c}'"),
        }
    }

    /// White space and comments.
    fn skip(&mut self) -> Parsed<()> {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                let end = rest.find(['\n', '\r', '\u{2028}', '\u{2029}']);
                self.at += end.unwrap_or(rest.len());
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return Err(self.bad(
                        self.at..self.at + 2,
                        "a comment begins here and does not end",
                        "close it with */",
                    ));
                };
                self.at += end + 4;
            } else if let Some(c) = rest.chars().next().filter(|c| is_blank(*c)) {
                self.at += c.len_utf8();
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Json5Node> {
        let start = self.at;
        let value = match self.peek() {
            Some('{') => Json5Value::Map(self.map(depth)?),
            Some('[') => Json5Value::List(self.list(depth)?),
            Some(quote @ ('"' | '\'')) => Json5Value::Text(self.string(quote)?),
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') => {
                Json5Value::Number(self.number()?)
            }
            Some(c) if is_name_start(c) => self.word()?,
            _ => {
                let message = format!("expected a value, found {}", self.found());
                let help = match self.peek() {
                    Some(',') => "there is a comma too many, or a value is missing before it",
                    Some('{' | '}' | ']') => "a value is missing before it",
                    _ => "write text in quotes, a number, true, false, null, […] or {…}",
                };
                return Err(self.here(message, help));
            }
        };
        Ok(Json5Node { span: start..self.at, value })
    }

    fn deeper(&self, depth: usize) -> Parsed<usize> {
        if depth < DEEPEST {
            return Ok(depth + 1);
        }
        let message = format!("nested more than {DEEPEST} deep");
        Err(self.here(message, "this is no configuration: check the brackets"))
    }

    fn map(&mut self, depth: usize) -> Parsed<Vec<Member>> {
        let depth = self.deeper(depth)?;
        let open = self.at;
        self.take('{');
        let mut entries = Vec::new();
        loop {
            self.skip()?;
            if self.take('}') {
                return Ok(entries);
            }
            self.not_the_end(open, "{")?;
            let start = self.at;
            let key = self.key()?;
            let span = start..self.at;
            self.skip()?;
            if !self.take(':') {
                let message = format!("expected ':' after '{key}', found {}", self.found());
                return Err(self.here(message, "write key: value"));
            }
            self.skip()?;
            let node = self.value(depth)?;
            entries.push(Member { key, span, node });
            self.skip()?;
            if !self.take(',') && self.peek() != Some('}') {
                self.not_the_end(open, "{")?;
                let message = format!("expected ',' or '}}', found {}", self.found());
                return Err(self.here(message, "put a comma before it"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<Vec<Json5Node>> {
        let depth = self.deeper(depth)?;
        let open = self.at;
        self.take('[');
        let mut nodes = Vec::new();
        loop {
            self.skip()?;
            if self.take(']') {
                return Ok(nodes);
            }
            self.not_the_end(open, "[")?;
            nodes.push(self.value(depth)?);
            self.skip()?;
            if !self.take(',') && self.peek() != Some(']') {
                self.not_the_end(open, "[")?;
                let message = format!("expected ',' or ']', found {}", self.found());
                return Err(self.here(message, "put a comma before it"));
            }
        }
    }

    fn not_the_end(&self, open: usize, bracket: &str) -> Parsed<()> {
        if self.peek().is_some() {
            return Ok(());
        }
        let message = format!("'{bracket}' is opened here and never closed");
        Err(self.bad(open..open + 1, message, "close it"))
    }

    fn key(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some(c) if is_name_start(c) || c == '\\' => self.name(),
            _ => {
                let message = format!("expected a key, found {}", self.found());
                let help = match self.peek() {
                    Some(',') => "there is a comma too many",
                    Some('{' | '[') => "give it a key, or close the object before it",
                    _ => "put it in quotes if it is a key",
                };
                Err(self.here(message, help))
            }
        }
    }

    fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            if c == '\\' {
                let start = self.at;
                self.next();
                let escaped =
                    if self.take('u') { self.code(4)?.and_then(char::from_u32) } else { None };
                match escaped.filter(|c| is_name_start(*c) || is_name_part(*c)) {
                    Some(c) => name.push(c),
                    None => {
                        let message = "not an escape that can be in a key";
                        return Err(self.bad(start..self.at, message, "put the key in quotes"));
                    }
                }
            } else if is_name_start(c) || is_name_part(c) {
                name.push(c);
                self.next();
            } else {
                break;
            }
        }
        Ok(name)
    }

    /// `true`, `false`, `null`, `Infinity`, `NaN`; anything else should have been in quotes.
    fn word(&mut self) -> Parsed<Json5Value> {
        let start = self.at;
        let name = self.name()?;
        match name.as_str() {
            "true" => Ok(Json5Value::Bool(true)),
            "false" => Ok(Json5Value::Bool(false)),
            "null" => Ok(Json5Value::Null),
            "Infinity" => Ok(Json5Value::Number(f64::INFINITY)),
            "NaN" => Ok(Json5Value::Number(f64::NAN)),
            _ => {
                let message = format!("'{name}' is not a value");
                Err(self.bad(start..self.at, message, "put text in quotes"))
            }
        }
    }

    fn number(&mut self) -> Parsed<f64> {
        let start = self.at;
        let sign = match self.peek() {
            Some('-') => -1.0,
            _ => 1.0,
        };
        if matches!(self.peek(), Some('+' | '-')) {
            self.next();
        }
        let rest = self.rest();
        let end = rest
            .char_indices()
            .find(|(at, c)| {
                // An exponent has a sign of its own.
                let signed = matches!(c, '+' | '-')
                    && rest.get(..*at).is_some_and(|it| it.ends_with(['e', 'E']))
                    && !rest.starts_with("0x");
                !(c.is_ascii_alphanumeric() || *c == '.' || *c == '_' || signed)
            })
            .map_or(rest.len(), |(at, _)| at);
        let text = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end;
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
            && text.bytes().any(|b| b.is_ascii_digit())
            && !(text.len() > 1 && text.starts_with('0') && text.as_bytes()[1].is_ascii_digit());
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let number = match (text.as_str(), hex) {
            ("Infinity", _) => Some(f64::INFINITY),
            ("NaN", _) => Some(f64::NAN),
            #[expect(clippy::cast_precision_loss, reason = "JSON5 numbers are of this kind")]
            (_, Some(hex)) => u64::from_str_radix(hex, 16).ok().map(|number| number as f64),
            (text, None) if plain => text.parse().ok(),
            _ => None,
        };
        number.map(|number| sign * number).ok_or_else(|| {
            let whole = self.text.get(start..self.at).unwrap_or_default();
            let message = format!("'{whole}' is not a number");
            self.bad(start..self.at.max(start + 1), message, "put it in quotes if it is text")
        })
    }

    fn string(&mut self, quote: char) -> Parsed<String> {
        let open = self.at;
        self.next();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.next() {
                Some(c) if c == quote => return Ok(text),
                Some('\\') => self.escape(at, &mut text)?,
                None | Some('\n' | '\r') => {
                    let message = "text begins here and does not end on its line";
                    let help = "close the quote; a line that goes on ends in a backslash";
                    return Err(self.bad(open..at, message, help));
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, start: usize, text: &mut String) -> Parsed<()> {
        let unknown = |it: &Self, message: &str| {
            Err(it.bad(start..it.at, message, "write a backslash as two"))
        };
        match self.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('v') => text.push('\u{b}'),
            Some('0') if !self.peek().is_some_and(|c| c.is_ascii_digit()) => text.push('\0'),
            Some('\r') => {
                self.take('\n');
            }
            Some('\n' | '\u{2028}' | '\u{2029}') => {}
            Some('x') => match self.code(2)?.and_then(char::from_u32) {
                Some(c) => text.push(c),
                None => return unknown(self, "\\x is followed by two hexadecimal digits"),
            },
            Some('u') => match self.unicode()? {
                Some(c) => text.push(c),
                None => return unknown(self, "\\u is followed by four hexadecimal digits"),
            },
            Some(c) if c.is_ascii_digit() => return unknown(self, "not an escape"),
            Some(c) => text.push(c),
            None => return unknown(self, "text ends in a backslash"),
        }
        Ok(())
    }

    /// After `\u`: one unit, or two that make a pair.
    fn unicode(&mut self) -> Parsed<Option<char>> {
        let Some(first) = self.code(4)? else { return Ok(None) };
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        let back = self.at;
        if self.take('\\')
            && self.take('u')
            && let Some(second) = self.code(4)?.filter(|it| (0xdc00..0xe000).contains(it))
        {
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code));
        }
        self.at = back;
        Ok(Some(char::REPLACEMENT_CHARACTER))
    }

    fn code(&mut self, digits: usize) -> Parsed<Option<u32>> {
        let found =
            self.rest().get(..digits).filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = found.and_then(|it| u32::from_str_radix(it, 16).ok());
        if code.is_some() {
            self.at += digits;
        }
        Ok(code)
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
#[path = "json5_tests.rs"]
mod tests;
