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
    /// Which set of secrets of this content it is, in the order in which this node, or the one that
    /// asks for its fleet, has read them. Tells versions apart whose secrets alone differ.
    #[serde(default, skip_serializing_if = "is_first")]
    pub rotation: u32,
}

fn is_first(rotation: &u32) -> bool {
    *rotation == 0
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

    /// Whether somebody may mean it by this: its label or the beginning of its digest, with `+N` behind
    /// it if it is to be that set of secrets.
    #[must_use]
    pub fn is_meant_by(&self, text: &str) -> bool {
        let is_named = |name: &str| {
            let is_digest = !name.is_empty() && self.digest.to_string().starts_with(name);
            is_digest || self.label.as_deref() == Some(name)
        };
        let is_rotation = |(name, number): (&str, &str)| {
            number.parse().is_ok_and(|it: u32| it == self.rotation) && is_named(name)
        };
        is_named(text) || text.rsplit_once('+').is_some_and(is_rotation)
    }
}

/// For people: its label and the beginning of its digest. Once secrets have been rotated, how often.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest.to_string();
        let digest = &digest[..12];
        let rotation = match self.rotation {
            0 => String::new(),
            number => format!("+{number}"),
        };
        match &self.label {
            Some(label) => write!(f, "{label} ({digest}{rotation})"),
            None => write!(f, "{digest}{rotation}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_whose_secrets_alone_differ_have_names_of_their_own() {
        let version = |label: Option<&str>, rotation| Version {
            label: label.map(ToOwned::to_owned),
            digest: Digest([0xab; 32]),
            secrets: None,
            rotation,
        };
        let names = [0, 1, 2].map(|rotation| version(None, rotation).to_string());
        assert_eq!(names, ["abababababab", "abababababab+1", "abababababab+2"]);
        assert_eq!(version(Some("v3"), 2).to_string(), "v3 (abababababab+2)");
        for meant in ["v3", "v3+2", "abab", "abab+2", "abababababab+2"] {
            assert!(version(Some("v3"), 2).is_meant_by(meant), "{meant}");
        }
        for not_meant in ["", "+2", "v3+1", "v3+0", "abab+", "v", "v3+2+2", "abac"] {
            assert!(!version(Some("v3"), 2).is_meant_by(not_meant), "{not_meant}");
        }
        assert!(version(Some("1.0+5"), 0).is_meant_by("1.0+5"), "a label may look like it");
        assert!(version(None, 0).is_meant_by("abab+0"));
    }
}
