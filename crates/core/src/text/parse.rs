//! Values that stand as text in what is stored or sent.

use serde::{
    Deserializer,
    de::{Error, Visitor},
};
use std::fmt;

/// Reads a value by its own rules, without a copy of its text. `expected`: what else is told that
/// it was not.
pub(crate) fn parse<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor { expected, parse })
}

struct TextVisitor<P> {
    expected: &'static str,
    parse: P,
}

impl<T, E: fmt::Display, P: FnOnce(&str) -> Result<T, E>> Visitor<'_> for TextVisitor<P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<F: Error>(self, text: &str) -> Result<T, F> {
        (self.parse)(text).map_err(F::custom)
    }
}
