//! Versions of profiles: what is compared, and what belongs to one.

use crate::text::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{collections::BTreeMap, fmt};

/// SHA-256 of something; written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// Which content a profile has, and what people call it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// What its source calls it, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Of content type and content.
    pub digest: Digest,
    /// Of the secrets that were read with it: compared and never shown, as a short secret could be
    /// guessed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Digest>,
}

/// What a source has served: all that a template needs of a profile.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// `application/json`, `application/yaml`, `application/toml` or `text/plain`.
    pub content_type: String,
    pub body: Vec<u8>,
    /// By the names that templates use.
    pub secrets: BTreeMap<String, SecretValue>,
}

/// A secret that a profile refers to, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretValue {
    pub value: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// It was asked for by this id, under which it never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
}

impl Version {
    /// Both have the same content, whatever they are called.
    #[must_use]
    pub fn is_same_content(&self, other: &Version) -> bool {
        self.digest == other.digest && self.secrets == other.secrets
    }
}

/// For people: its label and the beginning of its digest.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest.to_string();
        match &self.label {
            Some(label) => write!(f, "{label} ({})", &digest[..12]),
            None => f.write_str(&digest[..12]),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes of {})", self.body.len(), self.content_type)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Digest {
    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digest> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| D::Error::custom("not a SHA-256 in hexadecimal"))
    }
}
