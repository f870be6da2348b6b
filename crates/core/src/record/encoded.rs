//! A large value on its way into the journal, with its JSON.

use crate::text::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;

/// A value that whoever makes it may have encoded already, outside the loop that journals it.
#[derive(Debug, Clone)]
pub struct Encoded<T> {
    value: Box<T>,
    /// `None`: whoever writes it encodes it.
    json: Option<Json>,
}

impl<T: Serialize> Encoded<T> {
    /// With its JSON from now on.
    #[must_use]
    pub fn encode(self) -> Encoded<T> {
        // What cannot be encoded is an error where it is written.
        let json = self.json.or_else(|| Json::of(&*self.value).ok());
        Encoded { json, ..self }
    }
}

impl<T> Encoded<T> {
    pub(crate) fn new(value: Box<T>, json: Option<Json>) -> Encoded<T> {
        Encoded { value, json }
    }

    pub(crate) fn into_parts(self) -> (T, Option<Json>) {
        (*self.value, self.json)
    }
}

impl<T> From<Box<T>> for Encoded<T> {
    fn from(value: Box<T>) -> Encoded<T> {
        Encoded { value, json: None }
    }
}

impl<T> From<T> for Encoded<T> {
    fn from(value: T) -> Encoded<T> {
        Box::new(value).into()
    }
}

impl<T> Deref for Encoded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Encoded<T> {
    fn eq(&self, other: &Encoded<T>) -> bool {
        self.value == other.value
    }
}

impl<T: Serialize> Serialize for Encoded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.json {
            Some(json) => json.serialize(serializer),
            None => self.value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Encoded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Encoded<T>, D::Error> {
        T::deserialize(deserializer).map(Encoded::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_its_value_is_encoded_or_not() {
        let value = vec!["a \"b\"".to_owned(), "\n".to_owned()];
        let plain = Encoded::from(value.clone());
        let encoded = plain.clone().encode();
        let written = serde_json::to_string(&(1, &encoded)).expect("JSON");
        assert_eq!(written, serde_json::to_string(&(1, &plain)).expect("JSON"));
        assert_eq!(written, serde_json::to_string(&(1, &value)).expect("JSON"));
        let (_, read): (u8, Encoded<Vec<String>>) = serde_json::from_str(&written).expect("JSON");
        assert_eq!(read, encoded);
    }
}
