//! Files of variables: `KEY=VALUE` lines, as shells and containers have them.
//!
//! Blank lines and lines that begin with `#` are skipped, `export` before a name is allowed. A value
//! in single quotes is taken as it is; in double quotes `\n`, `\t`, `\"`, `\\` and `\$` are
//! understood; without quotes it ends before ` #` and has no blanks around it. Nothing is expanded.

/// A line that cannot be used, counted from 1. It says nothing of the line itself: that may be a
/// secret.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    pub line: usize,
    pub why: &'static str,
}

/// The variables in the order of their lines.
///
/// # Errors
/// All lines that cannot be used.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, Vec<BadLine>> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut bad = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match assignment(text) {
            Ok(pair) => all.push(pair),
            Err(why) => bad.push(BadLine { line, why }),
        }
    }
    if bad.is_empty() { Ok(all) } else { Err(bad) }
}

fn assignment(text: &str) -> Result<(String, String), &'static str> {
    let text = match text.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => text,
    };
    let (name, value) = text.split_once('=').ok_or("there is no '=': write NAME=value")?;
    let name = name.trim_end();
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    if name.is_empty() || !name.bytes().all(valid) || name.as_bytes()[0].is_ascii_digit() {
        return Err("what is before '=' is no name: use letters, digits and '_'");
    }
    Ok((name.to_owned(), unquoted(value.trim_start())?))
}

fn unquoted(value: &str) -> Result<String, &'static str> {
    if value.contains('\0') {
        return Err("the value holds a NUL character");
    }
    if let Some(rest) = value.strip_prefix('\'') {
        let (inside, tail) = rest.split_once('\'').ok_or("a single quote is not closed")?;
        return ended(tail).map(|()| inside.to_owned());
    }
    if let Some(rest) = value.strip_prefix('"') {
        return double(rest);
    }
    let end = value
        .char_indices()
        .find(|(at, c)| *c == '#' && (*at == 0 || value[..*at].ends_with([' ', '\t'])))
        .map_or(value.len(), |(at, _)| at);
    Ok(value[..end].trim_end().to_owned())
}

fn double(rest: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return ended(chars.as_str()).map(|()| out),
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(kept @ ('"' | '\\' | '$' | '`')) => out.push(kept),
                Some(other) => out.extend(['\\', other]),
                None => break,
            },
            kept => out.push(kept),
        }
    }
    Err("a double quote is not closed")
}

fn ended(tail: &str) -> Result<(), &'static str> {
    let tail = tail.trim_start();
    if tail.is_empty() || tail.starts_with('#') {
        return Ok(());
    }
    Err("there is something after the closing quote")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_a_shell_would_have_them() {
        let text = "\u{feff}# comment\n\nA=1\nexport B = two words \nC='a # b' # c\nD=\"x\\n\\\"y\\\"\"\n\
                    E=a#b # c\nF=\nG=#\nH=${A}\nexporter=1\nK='x\\n'\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b"),
            ("D", "x\n\"y\""),
            ("E", "a#b"),
            ("F", ""),
            ("G", ""),
            ("H", "${A}"),
            ("exporter", "1"),
            ("K", "x\\n"),
        ];
        let read = parse(text).expect("valid");
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn every_bad_line_is_told_by_its_number_and_not_by_what_it_holds() {
        let bad = parse("A=1\nsecret\n=x\nB='x\nC=\"x\nD='x'y\n9A=1").expect_err("bad");
        let lines: Vec<usize> = bad.iter().map(|it| it.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
    }
}
