//! Paths, arguments and variables in a hand-over: text where they are text, else their bytes.
//!
//! A binary that knows only text can read what is text, and refuses the rest by its own words.

use mainstay_core::task::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OsText {
    Text(String),
    Bytes { bytes: Bytes },
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> OsText {
        match text.to_str() {
            Some(text) => OsText::Text(text.to_owned()),
            None => OsText::Bytes { bytes: Bytes::from(text.as_bytes()) },
        }
    }
}

impl From<OsText> for OsString {
    fn from(text: OsText) -> OsString {
        match text {
            OsText::Text(text) => text.into(),
            OsText::Bytes { bytes } => OsString::from_vec(bytes.into()),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(text: impl AsRef<OsStr>, to: S) -> Result<S::Ok, S::Error> {
    OsText::from(text.as_ref()).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(OsString::from(OsText::deserialize(from)?).into())
}

/// The same for a list.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, OsStr, OsString, OsText, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        texts: &[impl AsRef<OsStr>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        texts.iter().map(|text| OsText::from(text.as_ref())).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
        from: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<OsText>::deserialize(from)?;
        Ok(texts.into_iter().map(|text| OsString::from(text).into()).collect())
    }
}

/// The same for what may not be there.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, OsStr, OsString, OsText, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        text: &Option<impl AsRef<OsStr>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|text| OsText::from(text.as_ref())).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<OsText>::deserialize(from)?;
        Ok(text.map(|text| OsString::from(text).into()))
    }
}

/// Variables that are text, as they always were in a hand-over.
pub(super) fn texts(env: &[(OsString, OsString)]) -> Vec<(String, String)> {
    let text = |text: &OsString| text.to_str().map(str::to_owned);
    env.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}

/// The other ones.
pub(super) fn raw(env: &[(OsString, OsString)]) -> Vec<(Bytes, Bytes)> {
    let raw = env.iter().filter(|(name, value)| name.to_str().zip(value.to_str()).is_none());
    raw.map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

pub(super) fn join(
    texts: Vec<(String, String)>,
    raw: Vec<(Bytes, Bytes)>,
) -> Vec<(OsString, OsString)> {
    let texts = texts.into_iter().map(|(name, value)| (name.into(), value.into()));
    let of = |bytes: Bytes| OsString::from_vec(bytes.into());
    texts.chain(raw.into_iter().map(|(name, value)| (of(name), of(value)))).collect()
}
