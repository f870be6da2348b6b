//! Frames: a length (u32, little endian) and so many bytes of JSON.

use crate::variants;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A frame holds at most this much; a peer that announces more is not one of ours.
pub const MAX: usize = 32 << 20;

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes is longer than {MAX}")]
    TooLong(usize),
    #[error("a frame does not hold the expected message")]
    Content(#[from] serde_json::Error),
}

/// # Errors
/// When the message is too long for a frame.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    match u32::try_from(length) {
        Ok(prefix) if length <= MAX => {
            bytes[..4].copy_from_slice(&prefix.to_le_bytes());
            Ok(bytes)
        }
        _ => Err(FrameError::TooLong(length)),
    }
}

/// A message, or the name of one that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<T> {
    Known(T),
    Unknown(String),
}

/// Takes bytes as they come and gives whole messages.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    bytes: Vec<u8>,
    taken: usize,
}

impl FrameDecoder {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 && self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// The stream cannot be followed any further: close it.
    #[expect(clippy::should_implement_trait, reason = "each call may ask for another type")]
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some(body) = self.body()? else { return Ok(None) };
        Ok(Some(serde_json::from_slice(body)?))
    }

    /// The same for one of several messages, of which a newer version may know more.
    ///
    /// # Errors
    /// The stream cannot be followed any further: close it.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<Message<T>>, FrameError> {
        let Some(body) = self.body()? else { return Ok(None) };
        let error = match serde_json::from_slice(body) {
            Ok(message) => return Ok(Some(Message::Known(message))),
            Err(error) => error,
        };
        match name_of(body).filter(|name| !variants::names::<T>().contains(&name.as_str())) {
            Some(name) => Ok(Some(Message::Unknown(name))),
            None => Err(error.into()),
        }
    }

    /// The next whole frame, if there is one.
    fn body(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((prefix, rest)) = rest.split_first_chunk::<4>() else {
            self.compact();
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > MAX {
            return Err(FrameError::TooLong(length));
        }
        if rest.len() < length {
            self.compact();
            return Ok(None);
        }
        let begin = self.taken + 4;
        self.taken = begin + length;
        Ok(Some(&self.bytes[begin..begin + length]))
    }

    fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > 64 << 10 {
            self.bytes = Vec::new();
        }
    }
}

/// What a message is called: it is its name, or stands under it.
fn name_of(body: &[u8]) -> Option<String> {
    match serde_json::from_slice(body).ok()? {
        Value::String(name) => Some(name),
        Value::Object(fields) if fields.len() == 1 => fields.into_iter().next().map(|it| it.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_survive_any_way_of_being_cut(messages: Vec<String>, cuts in prop::collection::vec(1usize..9, 1..40)) {
            let bytes: Vec<u8> = messages.iter().flat_map(|m| encode(m).expect("short")).collect();
            let mut decoder = FrameDecoder::default();
            let mut seen = Vec::new();
            let mut rest = bytes.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                decoder.push(now);
                rest = later;
                while let Some(message) = decoder.next::<String>().expect("valid") { seen.push(message) }
            }
            prop_assert_eq!(seen, messages);
        }
    }

    #[test]
    fn a_message_that_is_not_known_is_passed_over_and_one_that_is_none_is_not() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        enum Ours {
            Stop,
            Start { job: String },
        }
        let mut decoder = FrameDecoder::default();
        let mut say = |text: &str| {
            let value: Value = serde_json::from_str(text).expect("JSON");
            decoder.push(&encode(&value).expect("short"));
            decoder.next_message::<Ours>()
        };
        let start = Ours::Start { job: "web".to_owned() };
        let known = |text: Result<Option<Message<Ours>>, FrameError>| {
            text.expect("a frame").expect("whole")
        };
        assert_eq!(known(say(r#""Stop""#)), Message::Known(Ours::Stop));
        assert_eq!(known(say(r#"{"Pause":{"job":"web"}}"#)), Message::Unknown("Pause".to_owned()));
        assert_eq!(known(say(r#""Wave""#)), Message::Unknown("Wave".to_owned()));
        let more = r#"{"Start":{"job":"web","gently":true}}"#;
        assert_eq!(known(say(more)), Message::Known(start));
        for none in [r#"{"Start":{"job":5}}"#, "null", "[]", r#"{"Start":{},"Stop":{}}"#] {
            assert!(matches!(say(none), Err(FrameError::Content(_))), "{none}");
        }
    }

    #[test]
    fn a_length_beyond_the_cap_is_refused_before_any_of_it_is_kept() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.next::<String>(), Err(FrameError::TooLong(_))));
    }
}
