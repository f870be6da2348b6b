//! Ruby in pieces.

use std::fmt;

/// Why a piece of Ruby is not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Untranslatable(String);

impl Untranslatable {
    pub(super) fn new(why: impl Into<String>) -> Untranslatable {
        Untranslatable(why.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lexeme {
    Word(String),
    /// `:name`, `:"na me"`
    Symbol(String),
    Text(String),
    Number(String),
    Sign(&'static str),
}

const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "&&", "||", "&.", "[", "]", "(", ")", ".", ",", "!", "<", ">", "?",
    ":", "=", "{", "}", "|",
];
/// Methods that ask.
const ASKING: [&str; 5] = ["nil", "empty", "key", "has_key", "include"];

pub(super) fn lexemes(code: &str) -> Result<Vec<Lexeme>, Untranslatable> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let (lexeme, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => word(rest),
            '0'..='9' | '-' => number(rest)?,
            '\'' | '"' => {
                let (text, length) = quoted(rest)?;
                (Lexeme::Text(text), length)
            }
            ':' => symbol(rest)?,
            _ => sign(rest)?,
        };
        found.push(lexeme);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn word(text: &str) -> (Lexeme, usize) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    match ASKING.contains(&&text[..end]) && text[end..].starts_with('?') {
        true => (Lexeme::Word(text[..=end].to_owned()), end + 1),
        false => (Lexeme::Word(text[..end].to_owned()), end),
    }
}

fn number(text: &str) -> Result<(Lexeme, usize), Untranslatable> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - digits.len();
    let whole = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    // 1_000, 0x10 and 010 mean something else here.
    let odd = digits[whole..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || (whole > 1 && digits.starts_with('0'));
    if whole == 0 || whole > 15 || odd {
        return Err(Untranslatable::new("a number or a '-' that is not understood"));
    }
    let after = &digits[whole..];
    let part = match after.strip_prefix('.') {
        Some(more) if more.starts_with(|c: char| c.is_ascii_digit()) => {
            1 + more.find(|c: char| !c.is_ascii_digit()).unwrap_or(more.len())
        }
        _ => 0,
    };
    let length = sign + whole + part;
    Ok((Lexeme::Number(text[..length].to_owned()), length))
}

fn symbol(text: &str) -> Result<(Lexeme, usize), Untranslatable> {
    let name = &text[1..];
    match name.chars().next() {
        Some('\'' | '"') => {
            let (name, length) = quoted(name)?;
            Ok((Lexeme::Symbol(name), 1 + length))
        }
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let end = end.unwrap_or(name.len());
            Ok((Lexeme::Symbol(name[..end].to_owned()), 1 + end))
        }
        _ => sign(text),
    }
}

/// A text without anything computed in it, and how much of the code it is.
fn quoted(code: &str) -> Result<(String, usize), Untranslatable> {
    let mut chars = code.char_indices();
    let Some((_, quote)) = chars.next() else {
        return Err(Untranslatable::new("a text is missing"));
    };
    let mut text = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((text, at + c.len_utf8())),
            '\\' => match (quote, chars.next().map(|it| it.1)) {
                (_, Some(c)) if c == quote || c == '\\' => text.push(c),
                ('"', Some('n')) => text.push('\n'),
                ('"', Some('t')) => text.push('\t'),
                ('\'', Some(c)) => text.extend(['\\', c]),
                _ => return Err(Untranslatable::new("a text with a '\\' that is not understood")),
            },
            '#' if quote == '"'
                && matches!(code[at + 1..].chars().next(), Some('{' | '$' | '@')) =>
            {
                return Err(Untranslatable::new("a text with '#{}'"));
            }
            c => text.push(c),
        }
    }
    Err(Untranslatable::new("a text that does not end"))
}

fn sign(text: &str) -> Result<(Lexeme, usize), Untranslatable> {
    let found = SIGNS.into_iter().find(|it| text.starts_with(it));
    match (found, text.chars().next()) {
        (Some(sign), _) => Ok((Lexeme::Sign(sign), sign.len())),
        (None, Some(c)) => Err(Untranslatable::new(format!("'{c}' is not understood"))),
        (None, None) => Err(Untranslatable::new("it ends too early")),
    }
}

impl fmt::Display for Lexeme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lexeme::Word(it) | Lexeme::Number(it) => write!(f, "'{it}'"),
            Lexeme::Symbol(it) => write!(f, "':{it}'"),
            Lexeme::Text(_) => f.write_str("a text"),
            Lexeme::Sign(it) => write!(f, "'{it}'"),
        }
    }
}
