//! What others have said, as a person may see it: in one line, with nothing that a terminal obeys.

use super::bytes::byte_of;
use std::{borrow::Cow, fmt::Write};

/// The text with every character written out that steers a terminal, ends a line, turns the
/// direction of writing, or is no character at all: `\n`, `\x1b`, `\u{202e}`. A tab stays.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let written = match c {
            '\n' => shown.write_str("\\n"),
            '\r' => shown.write_str("\\r"),
            _ if !is_obeyed(c) => shown.write_char(c),
            _ => match byte_of(c).map(u32::from).unwrap_or(u32::from(c)) {
                byte @ ..0x100 => write!(shown, "\\x{byte:02x}"),
                other => write!(shown, "\\u{{{other:x}}}"),
            },
        };
        written.expect("a string takes what it is given");
    }
    Cow::Owned(shown)
}

fn is_obeyed(c: char) -> bool {
    match c {
        '\t' => false,
        // Marks, embeddings, overrides and isolates of direction; separators of lines.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => c.is_control() || byte_of(c).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::bytes::to_text;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        for (text, shown) in [
            ("plain\ttext, 日本 ✓", "plain\ttext, 日本 ✓"),
            ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
            ("one\r\ntwo\n", "one\\r\\ntwo\\n"),
            ("\u{9b}31m\u{7f}\0", "\\x9b31m\\x7f\\x00"),
            ("a\u{202e}b\u{2066}c\u{2028}d", "a\\u{202e}b\\u{2066}c\\u{2028}d"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible(&to_text(b"caf\xe9 \xff")), "caf\\xe9 \\xff");
    }
}
