//! Secrets out of what people read: each value is replaced by its name, also where a filter of a
//! template, or a program that has read the file, has written it in another way.

use serde_json::Value;
use std::fmt::Write as _;

/// Shorter texts are no secrets, and would blacken everything.
const SHORTEST: usize = 3;

/// What to look for, and what to say instead.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// The longest first: one may be a part of another.
    hidden: Vec<(String, String)>,
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
    }

    /// The same text without them.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let found = self.hidden.iter().filter(|(hidden, _)| text.contains(hidden.as_str()));
        found.fold(text.to_owned(), |text, (hidden, shown)| text.replace(hidden, shown))
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
}
