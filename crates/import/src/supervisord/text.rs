//! Values of supervisord: `%(…)s` expansions, lists of variables, sizes and truths.

use mainstay_config::shell_words::Unclosed;
use std::{collections::BTreeMap, fmt::Write as _};

/// Why a value cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("a '%' that is neither %% nor %(name)s")]
    Percent,
    #[error("%({0}) is not followed by s or d")]
    NoFormat(String),
    #[error("%({0})s is not known")]
    UnknownName(String),
    #[error("the environment variable {0} is not set here, and has to be")]
    Unset(String),
    #[error("'{0}' is not {1}")]
    Unfit(String, &'static str),
    #[error("a variable without '='")]
    NoEquals,
    #[error("the value of '{0}' has an open quote")]
    OpenQuote(String),
    #[error("it is empty")]
    Empty,
    #[error("in it {}", .0.what())]
    OpenCommand(Unclosed),
}

/// What expansions stand for in one process.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub(crate) program: &'a str,
    pub(crate) group: &'a str,
    pub(crate) number: u32,
    pub(crate) count: u32,
    pub(crate) host: &'a str,
    /// Of this process, in which the file is read.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// What `environment` has set so far.
    pub(crate) set: BTreeMap<String, Variable>,
}

/// A variable that the file sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// As a string of ours.
    pub(crate) written: String,
    /// What that comes to now; `None`: it needs one that is not set here.
    pub(crate) now: Option<String>,
}

/// What becomes of a variable of the environment.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// It is `${…}` again, and what looked like one is escaped.
    Written,
    /// It is its value, now.
    Now,
}

impl Scope<'_> {
    /// The value as a string of ours.
    pub(crate) fn written(&self, value: &str) -> Result<String, ValueError> {
        self.expand(value, Mode::Written)
    }

    /// What the value comes to now.
    pub(crate) fn now(&self, value: &str) -> Result<String, ValueError> {
        self.expand(value, Mode::Now)
    }

    fn expand(&self, value: &str, mode: Mode) -> Result<String, ValueError> {
        let mut out = String::new();
        let mut rest = value;
        let literal = |text: &str| match mode {
            Mode::Written => text.replace("${", "$${"),
            Mode::Now => text.to_owned(),
        };
        while let Some(at) = rest.find('%') {
            out.push_str(&literal(&rest[..at]));
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
            self.named(name, format, mode, &mut out)?;
            rest = tail;
        }
        out.push_str(&literal(rest));
        Ok(out)
    }

    fn named(
        &self,
        name: &str,
        format: &str,
        mode: Mode,
        out: &mut String,
    ) -> Result<(), ValueError> {
        match name {
            "program_name" => out.push_str(self.program),
            "group_name" => out.push_str(self.group),
            "host_node_name" => out.push_str(self.host),
            "numprocs" => number(self.count, format, out),
            "process_num" => number(self.number, format, out),
            other => match other.strip_prefix("ENV_") {
                Some(name) if is_name(name) => out.push_str(&self.variable(name, mode)?),
                _ => return Err(ValueError::UnknownName(other.to_owned())),
            },
        }
        Ok(())
    }

    fn variable(&self, name: &str, mode: Mode) -> Result<String, ValueError> {
        let now = || self.env.get(name).cloned();
        match (mode, self.set.get(name)) {
            (Mode::Written, Some(set)) => Ok(set.written.clone()),
            (Mode::Written, None) => Ok(format!("${{{name}}}")),
            (Mode::Now, Some(set)) => Ok(set.now.clone().unwrap_or_default()),
            (Mode::Now, None) => now().ok_or_else(|| ValueError::Unset(name.to_owned())),
        }
    }
}

fn number(number: u32, format: &str, out: &mut String) {
    let width = format.parse::<usize>().unwrap_or_default().min(20);
    let _ = if format.starts_with('0') {
        write!(out, "{number:0width$}")
    } else {
        write!(out, "{number:width$}")
    };
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `KEY="value",KEY2=value`.
pub(crate) fn variables(text: &str) -> Result<Vec<(String, String)>, ValueError> {
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

pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "t" | "y" => Some(true),
        "false" | "no" | "off" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// `50MB` and the like, as we write it; none: 0, which is no limit.
pub(crate) fn size(text: &str) -> Result<Option<String>, ValueError> {
    let upper = text.to_ascii_uppercase();
    let digits = upper.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unfit = || ValueError::Unfit(text.to_owned(), "a size");
    let number: u64 = digits.trim().parse().map_err(|_| unfit())?;
    match (number, &upper[digits.len()..]) {
        (0, _) => Ok(None),
        (number, _) if number >= 1 << 30 => Err(unfit()),
        (number, "") => Ok(Some(number.max(1024).to_string())),
        (number, "KB") => Ok(Some(format!("\"{number}K\""))),
        (number, "MB") => Ok(Some(format!("\"{number}M\""))),
        (number, "GB") => Ok(Some(format!("\"{number}G\""))),
        _ => Err(unfit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(env: &BTreeMap<String, String>) -> Scope<'_> {
        let set = Variable { written: "${HOME}/lib".to_owned(), now: Some("/h/lib".to_owned()) };
        let set = [("LIB".to_owned(), set)].into();
        Scope { program: "web", group: "g", number: 3, count: 4, host: "box", env, set }
    }

    #[test]
    fn expansions_become_what_they_stand_for() {
        let env = [("HOME".to_owned(), "/h".to_owned())].into();
        let scope = scope(&env);
        for (text, written, now) in [
            ("%(program_name)s_%(process_num)02d", "web_03", "web_03"),
            ("100%% ${x} %(ENV_HOME)s/x", "100% $${x} ${HOME}/x", "100% ${x} /h/x"),
            ("%(group_name)s/%(numprocs)d@%(host_node_name)s", "g/4@box", "g/4@box"),
            ("%(ENV_LIB)s", "${HOME}/lib", "/h/lib"),
        ] {
            assert_eq!(scope.written(text).as_deref(), Ok(written));
            assert_eq!(scope.now(text).as_deref(), Ok(now));
        }
        for text in ["%", "%USER%", "%(nope)s", "%(program_name)", "%(process_num"] {
            assert!(scope.written(text).is_err(), "{text}");
        }
        assert_eq!(scope.now("%(ENV_GONE)s"), Err(ValueError::Unset("GONE".to_owned())));
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
