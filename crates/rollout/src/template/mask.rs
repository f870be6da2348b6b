//! Secrets out of what people read: each value is replaced by its name, also where a filter of a
//! template, or a program that has read the file, has written it in another way.

use serde_json::Value;
use std::{collections::HashMap, fmt::Write as _, sync::OnceLock};

/// Shorter texts are no secrets, and would blacken everything.
const SHORTEST: usize = 3;
/// A part of a secret that is so long is hidden as well: whoever quotes a line may cut it.
const PART: usize = 8;

/// What to look for, and what to say instead.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// The longest first: one may be a part of another.
    hidden: Vec<(String, String)>,
    /// Each part of what is hidden, and which that is of; made when it is first wanted.
    parts: OnceLock<HashMap<[u8; PART], usize>>,
}

impl Mask {
    /// Hides a value, each of its lines, and each value below it.
    pub(super) fn hide(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.hide_text(name, text),
            Value::Number(number) => self.hide_text(name, &number.to_string()),
            Value::Array(all) => all.iter().for_each(|it| self.hide(name, it)),
            Value::Object(all) => {
                all.iter().for_each(|(key, it)| self.hide(&format!("{name}.{key}"), it));
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.sort();
    }

    fn hide_text(&mut self, name: &str, text: &str) {
        let shown = shown(name);
        for part in std::iter::once(text).chain(text.lines()).map(str::trim) {
            if part.len() >= SHORTEST {
                let ways = ways_to_write(part).into_iter();
                self.hidden.extend(ways.map(|it| (it, shown.clone())));
            }
        }
    }

    /// Hides what the other one hides as well.
    pub(crate) fn append(&mut self, other: &Mask) {
        self.hidden.extend_from_slice(&other.hidden);
        self.sort();
    }

    fn sort(&mut self) {
        self.hidden.sort_by(|(one, of_one), (other, of_other)| {
            other.len().cmp(&one.len()).then_with(|| (one, of_one).cmp(&(other, of_other)))
        });
        self.hidden.dedup();
        self.parts = OnceLock::new();
    }

    /// The same text without them.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let found = self.hidden.iter().filter(|(hidden, _)| text.contains(hidden.as_str()));
        let whole =
            found.fold(text.to_owned(), |text, (hidden, shown)| text.replace(hidden, shown));
        self.without_parts(&whole)
    }

    /// What begins with a part of one, up to where it goes on otherwise.
    fn without_parts(&self, text: &str) -> String {
        let (mut without, mut rest) = (String::new(), 0);
        while let Some((at, shown)) = self.next_part(text, rest) {
            let mut end = at + PART;
            while self.part(text, end + 1 - PART).is_some() {
                end += 1;
            }
            without.push_str(&text[rest..at]);
            without.push_str(shown);
            rest = text.ceil_char_boundary(end);
        }
        without.push_str(&text[rest..]);
        without
    }

    /// The first one from there on: where it is, and what stands for it.
    fn next_part(&self, text: &str, from: usize) -> Option<(usize, &str)> {
        let mut starts = (from..text.len()).filter(|at| text.is_char_boundary(*at));
        starts.find_map(|at| Some((at, self.part(text, at)?)))
    }

    fn part(&self, text: &str, at: usize) -> Option<&str> {
        let part: &[u8; PART] = text.as_bytes().get(at..at + PART)?.try_into().ok()?;
        let of = self.parts().get(part)?;
        Some(&self.hidden[*of].1)
    }

    fn parts(&self) -> &HashMap<[u8; PART], usize> {
        self.parts.get_or_init(|| {
            let long = self.hidden.iter().enumerate().filter(|(_, (it, _))| it.len() > PART);
            let of = |(number, (hidden, _)): (usize, &(String, String))| {
                let parts = hidden.as_bytes().array_windows().copied();
                parts.map(|part| (part, number)).collect::<Vec<_>>()
            };
            long.flat_map(of).collect()
        })
    }

    /// Bytes that may be no text: what is none is shown as such.
    #[must_use]
    pub fn apply_bytes(&self, bytes: &[u8]) -> String {
        self.apply(&String::from_utf8_lossy(bytes))
    }
}

/// As it is, in capitals and without, and as JSON, lists, HTML, URLs and shells have it.
fn ways_to_write(text: &str) -> [String; 11] {
    let quoted = |text: String| {
        let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        inner.map(ToOwned::to_owned).unwrap_or(text)
    };
    let json = quoted(Value::from(text).to_string());
    let replaced = |text: &str, pairs: &[(char, &str)]| {
        let of = |it: char| pairs.iter().find(|(from, _)| *from == it).map(|(_, to)| *to);
        let mut written = String::new();
        for it in text.chars() {
            match of(it) {
                Some(to) => written.push_str(to),
                None => written.push(it),
            }
        }
        written
    };
    // A list quotes with one or the other.
    let list = [('\\', "\\\\"), ('\n', "\\n"), ('\r', "\\r"), ('\t', "\\t"), ('\'', "\\'")];
    let in_html = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\'', "\\u0027")];
    let html = [
        ('<', "&lt;"),
        ('>', "&gt;"),
        ('&', "&amp;"),
        ('"', "&quot;"),
        ('\'', "&#x27;"),
        ('/', "&#x2f;"),
    ];
    [
        text.to_owned(),
        text.to_uppercase(),
        text.to_lowercase(),
        replaced(&json, &in_html),
        json,
        quoted(format!("{text:?}")),
        replaced(text, &list),
        replaced(text, &list[..4]),
        replaced(text, &html),
        percent_encoded(text),
        text.replace('\'', r"'\''"),
    ]
}

fn percent_encoded(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => written.push(char::from(byte)),
            // Into memory.
            false => drop(write!(written, "%{byte:02X}")),
        }
    }
    written
}

/// What stands for a secret.
pub(super) fn shown(name: &str) -> String {
    format!("<secrets.{name}>")
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} texts)", self.hidden.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_their_parts_and_their_lines_are_hidden_and_the_longest_first() {
        let mut mask = Mask::default();
        mask.hide("short", &json!("pass"));
        mask.hide("long", &json!("password\nsecond line"));
        mask.hide("db", &json!({"user": "bob", "port": 54321, "on": true, "x": "a"}));
        let masked = mask.apply("password pass second line bob 54321 true a");
        let names = "<secrets.long> <secrets.short> <secrets.long> <secrets.db.user>";
        assert_eq!(masked, format!("{names} <secrets.db.port> true a"));
        assert!(!format!("{mask:?}").contains("pass"));
    }

    #[test]
    fn a_secret_that_is_written_in_another_way_is_hidden_as_well() {
        let secret = "p@ss\"w/o<r>d\\HUNTER & 'co";
        let mut mask = Mask::default();
        mask.hide("db", &json!(format!("{secret}\nsecond \"line\"")));
        let env = minijinja::Environment::new();
        let all = "{{ s }} {{ s|tojson }} {{ [s] }} {{ s|upper }} {{ s|lower }} {{ s|escape }}";
        let scope = minijinja::context! { s => secret };
        let written = env.render_str(all, scope).expect("rendered");
        let masked = mask.apply(&written);
        let told = |text: &str| masked.to_lowercase().contains(text);
        assert!(!told("hunter") && !told("p@ss"), "{masked}");
        assert_eq!(masked.matches("<secrets.db>").count(), 6, "{masked}");
        let masked = mask.apply("mysql://x:p%40ss%22w%2Fo%3Cr%3Ed%5CHUNTER%20%26%20%27co@db");
        assert_eq!(masked, "mysql://x:<secrets.db>@db");
        let whole = serde_json::to_string(&format!("{secret}\nsecond \"line\"")).expect("JSON");
        assert_eq!(mask.apply(&whole), "\"<secrets.db>\"");
    }

    #[test]
    fn a_part_of_a_secret_is_hidden_where_a_program_has_cut_it() {
        let mut mask = Mask::default();
        mask.hide("db", &json!("Zx9quuxSecret-ö-7788"));
        mask.hide("pin", &json!(421));
        let masked = mask.apply("port=2 pw=Zx9quuxSec; …xSecret-ö-77ä Zx9quux 421 ecret-ö-7788.");
        let shown = "port=2 pw=<secrets.db>; …<secrets.db>ä Zx9quux <secrets.pin> <secrets.db>.";
        assert_eq!(masked, shown);
    }
}
