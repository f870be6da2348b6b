//! `${NAME}` and `$$` in the text of a file, and `.env`.
//!
//! process-compose replaces them in the whole text before it reads it. Here a mark takes their
//! place, which is no more than a word to YAML; what it stands for is written as `${NAME:-}` again
//! where a string is wanted, and looked up now where a number is. What `.env` says is known, so its
//! value is written.

use crate::yaml::YamlNode;
use mainstay_config::env_file;
use std::{collections::BTreeMap, path::Path};

/// Around the number of a mark; nobody writes these.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// What a mark stands for.
enum Mark {
    /// `$$`
    Dollar,
    Value(String),
    Variable {
        name: String,
        default: String,
    },
}

pub(super) struct Variables<'a> {
    env: &'a BTreeMap<String, String>,
    pub(super) dotenv: Dotenv,
    marks: Vec<Mark>,
}

/// A place that cannot be understood.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// In bytes from the beginning.
    pub(super) at: usize,
    pub(super) why: String,
}

/// The variables of a `.env`.
#[derive(Default)]
pub(super) struct Dotenv {
    pub(super) all: Vec<(String, String)>,
    /// We would read the same in it.
    pub(super) as_it_is: bool,
}

impl Dotenv {
    /// What is there; none if it is not, or cannot be read, as in the original.
    pub(super) fn read(path: &Path) -> Result<Dotenv, usize> {
        let Ok(text) = std::fs::read_to_string(path) else { return Ok(Dotenv::default()) };
        let parsed = env_file::parse(&text).map_err(|bad| bad.first().map_or(1, |it| it.line))?;
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        let mut all: Vec<(String, String)> = Vec::new();
        let mut as_it_is = true;
        for (name, value) in parsed {
            let value = match is_quoted(&text, &name) {
                true => value,
                false => {
                    let expanded = replaced(&value, &known);
                    as_it_is &= expanded == value;
                    expanded
                }
            };
            known.insert(name.clone(), value.clone());
            all.retain(|(other, _)| *other != name);
            all.push((name, value));
        }
        Ok(Dotenv { all, as_it_is })
    }
}

/// Whether the value of this name is in single quotes, in which nothing is replaced.
fn is_quoted(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("export ").trim_start();
        line.strip_prefix(name)
            .and_then(|rest| rest.trim_start().strip_prefix('='))
            .is_some_and(|value| value.trim_start().starts_with('\''))
    })
}

/// `$NAME` and `${NAME}` of earlier lines.
fn replaced(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let inside = after.strip_prefix('{').unwrap_or(after);
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, tail) = inside.split_at(end.unwrap_or(inside.len()));
        if name.is_empty() {
            out.push('$');
            rest = after;
            continue;
        }
        out.push_str(known.get(name).map_or("", String::as_str));
        rest = if after.starts_with('{') { tail.strip_prefix('}').unwrap_or(tail) } else { tail };
    }
    out.push_str(rest);
    out
}

impl<'a> Variables<'a> {
    pub(super) fn new(env: &'a BTreeMap<String, String>, dotenv: Dotenv) -> Variables<'a> {
        Variables { env, dotenv, marks: Vec::new() }
    }

    /// This process has it: it goes over what `.env` says.
    pub(super) fn is_inherited(&self, name: &str) -> bool {
        self.env.contains_key(name)
    }

    /// The text with marks, or what in it cannot be understood.
    pub(super) fn mark(&mut self, text: &str) -> Result<String, Unreadable> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.extend(rest[..at].chars().filter(|c| ![OPEN, CLOSE].contains(c)));
            let after = &rest[at + 1..];
            let (mark, tail) = if let Some(tail) = after.strip_prefix('$') {
                (Mark::Dollar, tail)
            } else if let Some(inside) = after.strip_prefix('{') {
                let at = text.len() - rest.len() + at;
                self.variable(inside).map_err(|why| Unreadable { at, why })?
            } else {
                out.push('$');
                rest = after;
                continue;
            };
            out.push_str(&format!("{OPEN}{}{CLOSE}", self.marks.len()));
            self.marks.push(mark);
            rest = tail;
        }
        out.extend(rest.chars().filter(|c| ![OPEN, CLOSE].contains(c)));
        Ok(out)
    }

    /// What follows `${`, to its end.
    fn variable<'t>(&self, inside: &'t str) -> Result<(Mark, &'t str), String> {
        let end = closing(inside).ok_or_else(|| format!("'${{{}' is not closed", line(inside)))?;
        let (whole, tail) = (&inside[..end], &inside[end + 1..]);
        let named = whole.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rule) = whole.split_at(named.unwrap_or(whole.len()));
        let default = [":-", ":=", ":+", ":?", "=", "-", "+"]
            .iter()
            .find_map(|rule_name| rule.strip_prefix(rule_name));
        let default = match (rule.is_empty(), default) {
            (true, _) => "",
            (false, Some(default)) => default,
            (false, None) => return Err(format!("'${{{}}}' is not understood", line(whole))),
        };
        if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
            return Err(format!("'${{{}}}' is not understood", line(whole)));
        }
        let default = self.at_once(default)?;
        let said = self.dotenv.all.iter().find(|(known, _)| known == name);
        let value = said.map(|(_, value)| value).or_else(|| self.env.get(name));
        let value = value.filter(|value| !value.is_empty()).cloned();
        let writable = !default.contains(['}', '\n']) && !default.contains("${");
        let mark = match (said, writable) {
            (None, true) => Mark::Variable { name: name.to_owned(), default },
            _ => Mark::Value(value.unwrap_or(default)),
        };
        Ok((mark, tail))
    }

    /// A default may have variables of its own.
    fn at_once(&self, text: &str) -> Result<String, String> {
        if !text.contains('$') {
            return Ok(text.to_owned());
        }
        let mut inner = Variables::new(self.env, Dotenv::default());
        inner.dotenv.all.clone_from(&self.dotenv.all);
        let marked = inner.mark(text).map_err(|found| found.why)?;
        Ok(inner.now(&marked))
    }

    /// The pieces of a text with marks.
    fn pieces<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (&'t str, Option<&'t Mark>)> {
        let mut rest = Some(text);
        std::iter::from_fn(move || {
            let now = rest?;
            let found = now.split_once(OPEN).and_then(|(before, after)| {
                let (number, tail) = after.split_once(CLOSE)?;
                Some((before, self.marks.get(number.parse::<usize>().ok()?)?, tail))
            });
            let Some((before, mark, tail)) = found else {
                rest = None;
                return Some((now, None));
            };
            rest = Some(tail);
            Some((before, Some(mark)))
        })
    }

    /// What the text comes to now.
    pub(super) fn now(&self, text: &str) -> String {
        let mut out = String::new();
        for (before, mark) in self.pieces(text) {
            out.push_str(before);
            match mark {
                None => {}
                Some(Mark::Dollar) => out.push('$'),
                Some(Mark::Value(value)) => out.push_str(value),
                Some(Mark::Variable { name, default }) => {
                    let value = self.env.get(name).filter(|value| !value.is_empty());
                    out.push_str(value.unwrap_or(default));
                }
            }
        }
        out
    }

    /// The text as a string of ours, without its quotes.
    pub(super) fn written(&self, text: &str) -> String {
        let mut out = String::new();
        let mut literal = String::new();
        for (before, mark) in self.pieces(text) {
            literal.push_str(before);
            match mark {
                None => {}
                Some(Mark::Dollar) => literal.push('$'),
                Some(Mark::Value(value)) => literal.push_str(value),
                // A dollar before it would take it for an escaped one.
                Some(Mark::Variable { name, default }) if literal.ends_with('$') => {
                    let value = self.env.get(name).filter(|value| !value.is_empty());
                    literal.push_str(value.unwrap_or(default));
                }
                Some(Mark::Variable { name, default }) => {
                    out.push_str(&literal.replace("${", "$${"));
                    literal.clear();
                    out.push_str(&format!("${{{name}:-{default}}}"));
                }
            }
        }
        out.push_str(&literal.replace("${", "$${"));
        out
    }

    /// A scalar, as it is now.
    pub(super) fn plain(&self, node: &YamlNode) -> Option<String> {
        node.text().map(|text| self.now(text))
    }

    pub(super) fn truth(&self, node: &YamlNode) -> Option<bool> {
        match self.plain(node)?.as_str() {
            "true" | "True" | "TRUE" | "yes" => Some(true),
            "false" | "False" | "FALSE" | "no" => Some(false),
            _ => None,
        }
    }

    pub(super) fn number(&self, node: &YamlNode) -> Option<u32> {
        self.plain(node)?.trim().parse().ok()
    }
}

/// Where the brace that is open closes.
fn closing(inside: &str) -> Option<usize> {
    let mut depth = 0u32;
    let bytes = inside.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_kept_where_they_can_be_and_known_where_they_must_be() {
        let env: BTreeMap<String, String> =
            [("A", "1"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let all = vec![("DOT".to_owned(), "d".to_owned())];
        let mut variables = Variables::new(&env, Dotenv { all, as_it_is: true });
        for (text, written, now) in [
            ("plain $A $ 1", "plain $A $ 1", "plain $A $ 1"),
            ("<${A}>", "<${A:-}>", "<1>"),
            ("${EMPTY:-x}${B:-y z}", "${EMPTY:-x}${B:-y z}", "xy z"),
            ("$${A} $$A", "$${A} $A", "${A} $A"),
            ("$$${A}", "$1", "$1"),
            ("${DOT}/${DOT:-x}", "d/d", "d/d"),
            ("${B:-${A}}", "${B:-1}", "1"),
            ("${B=c}", "${B:-c}", "c"),
        ] {
            let marked = variables.mark(text).expect("understood");
            assert_eq!(variables.written(&marked), written, "{text}");
            assert_eq!(variables.now(&marked), now, "{text}");
        }
        for text in ["${A", "${A^^}", "${}", "${1}"] {
            assert!(variables.mark(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_dotenv_may_use_what_it_has_said() {
        let known = [("HOST".to_owned(), "h".to_owned())].into();
        assert_eq!(replaced("http://$HOST:${HOST}/$", &known), "http://h:h/$");
        assert!(is_quoted("export A = 'x'\n", "A") && !is_quoted("A=\"'x'\"\n", "A"));
    }
}
