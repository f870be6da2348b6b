//! Paths in what is stored or sent (`#[serde(with = "…::text::path")]`): a path that is UTF-8 is
//! written as it always was, any other as [`super::bytes`] writes it.

use super::bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::path::PathBuf;

/// A path, or one that may be missing.
pub trait PathText: Sized {
    fn text(&self) -> Option<String>;
    /// `None`: a path has to be there.
    fn read(text: Option<String>) -> Option<Self>;
}

impl PathText for PathBuf {
    fn text(&self) -> Option<String> {
        Some(bytes::from_os(self.as_os_str()))
    }

    fn read(text: Option<String>) -> Option<PathBuf> {
        text.map(|text| PathBuf::from(bytes::to_os(&text).into_owned()))
    }
}

impl PathText for Option<PathBuf> {
    fn text(&self) -> Option<String> {
        self.as_ref().and_then(PathText::text)
    }

    fn read(text: Option<String>) -> Option<Option<PathBuf>> {
        Some(PathText::read(text))
    }
}

/// # Errors
/// As the serializer has them.
pub fn serialize<P: PathText, S: Serializer>(path: &P, to: S) -> Result<S::Ok, S::Error> {
    path.text().serialize(to)
}

/// Any number of them.
pub mod list {
    use super::PathText;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    /// # Errors
    /// As the serializer has them.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(PathText::text))
    }

    /// # Errors
    /// When they are no texts.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Ok(texts.into_iter().filter_map(|text| PathText::read(Some(text))).collect())
    }
}

/// # Errors
/// When it is no text, or there is none.
pub fn deserialize<'de, P: PathText, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    P::read(Option::deserialize(from)?).ok_or_else(|| D::Error::custom("a path is missing"))
}
