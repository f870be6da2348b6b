//! Secrets out of what people read: each value is replaced by its name.

use serde_json::Value;

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
                self.hidden.push((part.to_owned(), shown.clone()));
            }
        }
    }

    /// Hides what the other one hides as well.
    pub(crate) fn append(&mut self, other: &Mask) {
        self.hidden.extend_from_slice(&other.hidden);
        self.sort();
    }

    fn sort(&mut self) {
        self.hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
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
}
