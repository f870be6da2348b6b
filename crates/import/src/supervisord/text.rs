//! Values of supervisord: `%(…)s` expansions, lists of variables, sizes and truths.

use mainstay_config::shell_words::Unclosed;
use std::fmt::Write as _;

/// Why a value cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    #[error("a '%' that is neither %% nor %(name)s")]
    Percent,
    #[error("%({0}) is not followed by s or d")]
    NoFormat(String),
    #[error("%({0})s is not known")]
    UnknownName(String),
    #[error("a variable without '='")]
    NoEquals,
    #[error("the value of '{0}' has an open quote")]
    OpenQuote(String),
    #[error("its command is empty")]
    EmptyCommand,
    #[error("in its command {}", .0.what())]
    OpenCommand(Unclosed),
}

/// What expansions stand for in one process.
pub(super) struct Scope<'a> {
    pub(super) program: &'a str,
    pub(super) group: &'a str,
    pub(super) number: Number,
    pub(super) count: u32,
}

/// The number of a process among those of its program.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Number {
    Known(u32),
    /// It becomes `{instance}`.
    Instance,
}

/// The value as a string of ours: what was a variable of the environment is `${…}` again, and what
/// looked like one is escaped.
pub(super) fn expand(value: &str, scope: &Scope<'_>) -> Result<String, ValueError> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at].replace("${", "$${"));
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        let inside = after.strip_prefix('(').and_then(|it| it.split_once(')'));
        let Some((name, tail)) = inside else {
            return Err(ValueError::Percent);
        };
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (format, tail) = tail.split_at(digits);
        let Some(tail) = tail.strip_prefix(['s', 'd']) else {
            return Err(ValueError::NoFormat(name.to_owned()));
        };
        named(name, format, scope, &mut out)?;
        rest = tail;
    }
    out.push_str(&rest.replace("${", "$${"));
    Ok(out)
}

fn named(name: &str, format: &str, scope: &Scope<'_>, out: &mut String) -> Result<(), ValueError> {
    match name {
        "program_name" => out.push_str(scope.program),
        "group_name" => out.push_str(scope.group),
        "host_node_name" => out.push_str("${HOSTNAME}"),
        "numprocs" => {
            let _ = write!(out, "{}", scope.count);
        }
        "process_num" => match scope.number {
            Number::Instance => out.push_str("{instance}"),
            Number::Known(number) => {
                let width = format.parse::<usize>().unwrap_or_default().min(20);
                let _ = if format.starts_with('0') {
                    write!(out, "{number:0width$}")
                } else {
                    write!(out, "{number:width$}")
                };
            }
        },
        other => match other.strip_prefix("ENV_") {
            Some(name) if is_name(name) => {
                let _ = write!(out, "${{{name}}}");
            }
            _ => return Err(ValueError::UnknownName(other.to_owned())),
        },
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `KEY="value",KEY2=value`.
pub(super) fn variables(text: &str) -> Result<Vec<(String, String)>, ValueError> {
    let mut all = Vec::new();
    let separators = |c: char| c == ',' || c.is_whitespace();
    let mut rest = text.trim_start_matches(separators);
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or(ValueError::NoEquals)?;
        let key = key.trim().trim_matches(['"', '\'']);
        let after = after.trim_start_matches([' ', '\t']);
        let mut value = String::new();
        let mut tail = after;
        // Quoted and bare pieces may follow each other without a gap.
        loop {
            match tail.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let (inside, more) = tail[1..]
                        .split_once(quote)
                        .ok_or_else(|| ValueError::OpenQuote(key.to_owned()))?;
                    value.push_str(inside);
                    tail = more;
                }
                Some(c) if !separators(c) => {
                    value.push(c);
                    tail = &tail[c.len_utf8()..];
                }
                _ => break,
            }
        }
        all.push((key.to_owned(), value));
        rest = tail.trim_start_matches(separators);
    }
    Ok(all)
}

pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "t" | "y" => Some(true),
        "false" | "no" | "off" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// `50MB` and the like, as we write it.
pub(super) fn size(text: &str) -> Option<String> {
    let text = text.to_ascii_uppercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().ok().filter(|number| (1..1 << 30).contains(number))?;
    match &text[digits.len()..] {
        "" => Some(number.max(1024).to_string()),
        "KB" => Some(format!("\"{number}K\"")),
        "MB" => Some(format!("\"{number}M\"")),
        "GB" => Some(format!("\"{number}G\"")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_become_what_they_stand_for() {
        let number = Number::Known(3);
        let scope = Scope { program: "web", group: "g", number, count: 4 };
        for (text, expected) in [
            ("%(program_name)s_%(process_num)02d", "web_03"),
            ("100%% ${x} %(ENV_HOME)s/x", "100% $${x} ${HOME}/x"),
            ("%(group_name)s/%(numprocs)d", "g/4"),
        ] {
            assert_eq!(expand(text, &scope).as_deref(), Ok(expected));
        }
        for text in ["%", "%x", "%(nope)s", "%(program_name)", "%(process_num"] {
            assert!(expand(text, &scope).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_are_read_with_and_without_quotes() {
        let read = variables("A=\"1,2\",B='x y',C=3,\n D=a\"b c\"d,").expect("valid");
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, [("A", "1,2"), ("B", "x y"), ("C", "3"), ("D", "ab cd")]);
        assert!(variables("A").is_err());
        assert!(variables("A=\"").is_err());
    }
}
