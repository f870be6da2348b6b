//! Go's regular expressions with the engine at hand. They are nearly the same; where they differ
//! the pattern is rewritten: classes such as `\d` mean ASCII in Go, `[` within a class is a plain
//! character there, and `\Q…\E` quotes.

use regex::{Regex, RegexBuilder};

/// Larger than what people write, smaller than what hurts.
const LARGEST: usize = 1 << 20;

pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&rewritten(pattern)).size_limit(LARGEST).build().map_err(|error| {
        // Its account of a syntax error draws lines; the last one says what it is.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

fn rewritten(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut class = false;
    // Where a `]` would be a member of the class.
    let mut fresh = false;
    while let Some(c) = rest.next() {
        let was_fresh = std::mem::take(&mut fresh);
        match c {
            '\\' => match rest.next() {
                Some('Q') if !class => quoted(&mut rest, &mut out),
                Some(c) => escaped(c, class, &mut out),
                None => out.push('\\'),
            },
            '[' if !class => {
                class = true;
                fresh = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' => match named(&mut rest) {
                Some(name) => out.push_str(&name),
                None => out.push_str("\\["),
            },
            ']' if class && was_fresh => out.push_str("\\]"),
            ']' if class => {
                class = false;
                out.push(']');
            }
            // `&&`, `--` and `~~` would be set operations.
            '&' | '~' if class => out.extend(['\\', c]),
            '-' if class && out.ends_with('-') => out.push_str("\\-"),
            c => out.push(c),
        }
    }
    out
}

/// `[:name:]` within a class, whose first bracket is taken already.
fn named(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let ahead: String = rest.clone().take(12).collect();
    let name = ahead.strip_prefix(':')?.split_once(":]")?.0;
    if !name.chars().all(|c| c.is_ascii_lowercase() || c == '^') {
        return None;
    }
    let whole = format!("[:{name}:]");
    // All of them are one byte each.
    rest.nth(whole.len() - 2);
    Some(whole)
}

fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut text = String::new();
    for c in rest.by_ref() {
        text.push(c);
        if text.ends_with("\\E") {
            text.truncate(text.len() - 2);
            break;
        }
    }
    out.push_str(&regex::escape(&text));
}

fn escaped(c: char, class: bool, out: &mut String) {
    match (c, class) {
        ('d', true) => out.push_str("0-9"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('s', true) => out.push_str("\\t\\n\\x0c\\r "),
        ('d', false) => out.push_str("[0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('s', false) => out.push_str("[\\t\\n\\x0c\\r ]"),
        ('D', _) => out.push_str("[^0-9]"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('S', _) => out.push_str("[^\\t\\n\\x0c\\r ]"),
        ('b', false) => out.push_str("(?-u:\\b)"),
        ('B', false) => out.push_str("(?-u:\\B)"),
        ('<' | '>', _) => out.push(c),
        _ => out.extend(['\\', c]),
    }
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, to, text, expected) in [
            ("a(x*)b", "T", "-ab-axxb-", "-T-T-"),
            ("a(x*)b", "$1", "-ab-axxb-", "--xx-"),
            ("a(x*)b", "$1W", "-ab-axxb-", "---"),
            ("a(x*)b", "${1}W", "-ab-axxb-", "-W-xxW-"),
            ("(?P<n>x+)", "<$n>", "axxb", "a<xx>b"),
            (r"\d+", "N", "a12 ٣b", "aN ٣b"),
            (r"[\d.]+", "V", "go1.9", "goV"),
            (r"[^\w]+", "_", "a-b c", "a_b_c"),
            (r"\W", "_", "aéb", "a_b"),
            ("[[]", "(", "a[b", "a(b"),
            ("[]a]", "x", "a]b", "xxb"),
            ("[[:digit:]]+", "#", "a12", "a#"),
            ("[[:digit:]x]+", "#", "a1x2", "a#"),
            ("[a&&b]", "x", "a&b", "xxx"),
            (r"\Qa.b\E+", "x", "a.bb", "x"),
            (r"\<a\>", "x", "<a>", "x"),
            ("$", "!", "a\n", "a\n!"),
            ("x", "$$", "axb", "a$b"),
            ("(?i)é", "e", "É", "e"),
            (r"\bfoo\b", "x", "foo foos", "x foos"),
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.replace_all(text, to), expected, "{pattern}");
        }
        for pattern in ["(", "[", r"\", "x{100000}", "(?=a)"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
