//! Readers of single values, for fuzzing: they are reached through a whole file otherwise.

use crate::notation::{address, env_file, expand, shell_words, size};
use std::collections::BTreeMap;

/// The text with its variables replaced; every `${file:…}` stands for `secret`.
#[must_use]
pub fn expand(text: &str, env: &BTreeMap<String, String>) -> Option<String> {
    expand::expand(text, env, &mut |_| Ok("secret".to_owned())).ok()
}

#[must_use]
pub fn size(text: &str) -> Option<u64> {
    size::parse(text)
}

/// How many words a command has.
#[must_use]
pub fn shell_words(text: &str) -> Option<usize> {
    shell_words::split(text).ok().map(|words| words.len())
}

#[must_use]
pub fn env_file(text: &str) -> Option<Vec<(String, String)>> {
    env_file::parse(text).ok()
}

#[must_use]
pub fn address(text: &str) -> Option<String> {
    address::parse(text).ok()
}
