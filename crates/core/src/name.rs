//! Names of jobs, as a person writes them in the file: `[A-Za-z0-9][A-Za-z0-9_-]{0,62}`.

use crate::text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Borrow, fmt, sync::Arc};

/// A valid name. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Words that other parts of a configuration use as sources; `mainstay` is our own log.
pub const RESERVED: [&str; 5] = ["watch", "template", "profile", "global", "mainstay"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "'{0}' is not a name: use 1 to 63 letters, digits, '_' or '-', starting with a letter or digit"
    )]
    Shape(String),
    #[error("'{0}' is a reserved word (reserved: watch, template, profile, global, mainstay)")]
    Reserved(String),
}

impl Name {
    pub fn new(text: &str) -> Result<Name, NameError> {
        let shaped = text.len() <= 63
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if !shaped {
            return Err(NameError::Shape(text.to_owned()));
        }
        if RESERVED.contains(&text) {
            return Err(NameError::Reserved(text.to_owned()));
        }
        Ok(Name(text.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As a part of the name of a variable: in capitals, whatever is neither letter nor digit as
    /// one `_`.
    #[must_use]
    pub fn in_variables(&self) -> String {
        let mut word = String::new();
        for c in self.0.chars() {
            match c.is_ascii_alphanumeric() {
                true => word.push(c.to_ascii_uppercase()),
                false if word.ends_with('_') => {}
                false => word.push('_'),
            }
        }
        word
    }
}

/// Whether a name in a command means this job: its own, or that of the job it is an instance of.
#[must_use]
pub fn stands_for(name: &str, job: &str) -> bool {
    let rest = job.strip_prefix(name);
    let number = rest.and_then(|rest| rest.strip_prefix('-'));
    rest == Some("") || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        text::parse(deserializer, "a name", Name::new)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
