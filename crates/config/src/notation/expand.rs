//! `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}` in strings; `$${` stands for a
//! literal `${`.
//!
//! As in a shell, `:-` and `:?` take an empty variable for an unset one. A `$` before anything else
//! is an ordinary character.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpandError {
    pub(crate) message: String,
    pub(crate) help: String,
}

fn problem<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, ExpandError> {
    Err(ExpandError { message: message.into(), help: help.into() })
}

/// `file` gives what `${file:…}` stands for.
pub(crate) fn expand(
    text: &str,
    env: &BTreeMap<String, String>,
    file: &mut dyn FnMut(&str) -> Result<String, ExpandError>,
) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let after = &from[2..];
        if let Some(literal) = before.strip_suffix('$') {
            out.push_str(literal);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            return problem(
                format!("'{from}' has no closing '}}'"),
                "close it, put a word with blanks in quotes, or write $${ for a literal ${",
            );
        };
        match inside.strip_prefix("file:") {
            Some(path) => out.push_str(&file(path)?),
            None => out.push_str(&look_up(inside, env)?),
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn look_up(inside: &str, env: &BTreeMap<String, String>) -> Result<String, ExpandError> {
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (name, rule) = inside.split_at(end);
    let value = env.get(name);
    let filled = value.filter(|value| !value.is_empty());
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || rule.contains("${") {
        return not_understood(inside);
    }
    if rule.is_empty() {
        return value.cloned().map_or_else(
            || {
                problem(
                    format!("the environment variable {name} is not set"),
                    format!("set it, or give a default: ${{{name}:-default}}"),
                )
            },
            Ok,
        );
    }
    if let Some(default) = rule.strip_prefix(":-") {
        return Ok(filled.map_or(default, String::as_str).to_owned());
    }
    if let Some(message) = rule.strip_prefix(":?") {
        let message = if message.is_empty() { "it is required" } else { message };
        return filled.cloned().map_or_else(
            || {
                problem(
                    format!("the environment variable {name} is not set: {message}"),
                    "set it before starting mainstay",
                )
            },
            Ok,
        );
    }
    not_understood(inside)
}

fn not_understood(inside: &str) -> Result<String, ExpandError> {
    problem(
        format!("'${{{inside}}}' is not understood"),
        "write ${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:/path}, or $${ for a literal ${",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<String, String> {
        let env = [("A", "1"), ("EMPTY", ""), ("NEST", "${A}")];
        let env = env.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let mut file = |path: &str| match path {
            "/secret" => Ok("s3cret".to_owned()),
            _ => problem("cannot read it", ""),
        };
        expand(text, &env, &mut file).map_err(|problem| problem.message)
    }

    #[test]
    fn variables_are_replaced_once_and_the_rest_is_kept() {
        for (text, expected) in [
            ("", ""),
            ("plain $A $ $$ }", "plain $A $ $$ }"),
            ("${A}", "1"),
            ("<${A}${A}>", "<11>"),
            ("${NEST}", "${A}"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${B:-}", ""),
            ("${B:-a b:-c}", "a b:-c"),
            ("${A:-x}", "1"),
            ("${A:?needed}", "1"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("${B:-é}ü", "éü"),
            ("<${file:/secret}>", "<s3cret>"),
        ] {
            assert_eq!(with(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_says_why() {
        for (text, expected) in [
            ("${B}", "the environment variable B is not set"),
            ("${B:?say hello}", "the environment variable B is not set: say hello"),
            ("${EMPTY:?}", "the environment variable EMPTY is not set: it is required"),
            ("${A", "'${A' has no closing '}'"),
            ("${}", "'${}' is not understood"),
            ("${1}", "'${1}' is not understood"),
            ("${A-b}", "'${A-b}' is not understood"),
            ("${A:-${B}}", "'${A:-${B}' is not understood"),
            ("${file:/gone}", "cannot read it"),
        ] {
            assert_eq!(with(text).as_ref().map_err(String::as_str), Err(expected), "{text}");
        }
    }
}
