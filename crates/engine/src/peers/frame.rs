//! What peers say to each other over TLS: JSON with its length before it.
//!
//! Every frame says its version and has one thing in it. What a later version adds is passed over:
//! fields are not known, or the whole frame has nothing in it. So is what cannot be understood: the
//! next frame begins where this one ends, and a connection that is given up for it would only bring
//! the same again.

use crate::{mesh::Versions, next};
use mainstay_core::{
    fleet::{Message, NodeFacts, RunId},
    name::Name,
};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// Facts of thousands of jobs have a few megabytes.
pub(crate) const LONGEST_FRAME: usize = 32 << 20;
/// Before anybody has said who it is.
pub(crate) const LONGEST_HELLO: usize = 4 << 10;

/// Who calls, or is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PeerKey {
    pub(crate) node: Name,
    pub(crate) run: RunId,
}

/// The first frame of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    #[serde(flatten)]
    pub(crate) peer: PeerKey,
    pub(crate) oldest: u8,
    pub(crate) newest: u8,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Hello(Hello),
    Facts {
        facts: Arc<NodeFacts>,
        hash: u64,
    },
    /// Say your facts again.
    Pull,
    Sent(Message),
    /// Something that a later version may say.
    Unknown,
    /// As [`Said::Unknown`], of a kind that is known: why it is not to be understood.
    NotUnderstood(String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame has {length} bytes, more than {longest}")]
    TooLong { length: usize, longest: usize },
    #[error("a frame is not to be understood: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it speaks version {theirs} of the protocol of peers, and this node {ours}")]
    Version { theirs: u8, ours: Versions },
}

#[derive(Debug, Default, Serialize)]
struct Written<'a> {
    v: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    hello: Option<&'a Hello>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pull: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<&'a Message>,
}

#[derive(Debug, Deserialize)]
struct Read<'a> {
    v: u8,
    #[serde(default)]
    hello: Option<Hello>,
    #[serde(default)]
    hash: Option<u64>,
    #[serde(default, borrow)]
    facts: Option<&'a RawValue>,
    #[serde(default)]
    pull: Option<bool>,
    #[serde(default, borrow)]
    sent: Option<&'a RawValue>,
}

/// A frame with its length, as it goes over.
pub(crate) type FrameBytes = Arc<[u8]>;

/// Facts as text, made once for all peers.
#[derive(Debug, Clone)]
pub(crate) struct FactsText {
    pub(crate) version: u64,
    pub(crate) hash: u64,
    text: Arc<RawValue>,
}

impl FactsText {
    pub(crate) fn new(facts: &NodeFacts, versions: Versions) -> FactsText {
        let text = to_raw_value(facts).expect("the keys of all maps are text");
        let text = next::add_fields(versions, text);
        FactsText { version: facts.version, hash: hash(text.get().as_bytes()), text: text.into() }
    }

    /// In this version of the protocol.
    pub(crate) fn frame(&self, version: u8) -> FrameBytes {
        let (hash, facts) = (Some(self.hash), Some(&*self.text));
        write(&Written { v: version, hash, facts, ..Written::default() })
    }
}

pub(crate) fn hello(peer: &PeerKey, versions: Versions) -> FrameBytes {
    let hello = Hello { peer: peer.clone(), oldest: versions.oldest, newest: versions.newest };
    let written = Written { v: versions.oldest, hello: Some(&hello), ..Written::default() };
    // All can read this one, whatever else they speak.
    framed(Versions::SPOKEN.oldest, &written)
}

pub(crate) fn pull(version: u8) -> FrameBytes {
    write(&Written { v: version, pull: Some(true), ..Written::default() })
}

pub(crate) fn sent(version: u8, message: &Message) -> FrameBytes {
    write(&Written { v: version, sent: Some(message), ..Written::default() })
}

fn write(written: &Written<'_>) -> FrameBytes {
    framed(written.v, written)
}

/// As this version has it.
pub(crate) fn framed(version: u8, written: &impl Serialize) -> FrameBytes {
    let (begin, end) = next::around(version);
    let mut bytes = [&[0; 4], begin].concat();
    serde_json::to_writer(&mut bytes, written).expect("a vector takes whatever is written to it");
    bytes.extend(end);
    // Longer ones are refused by whoever reads them; no length makes another one of them.
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes.into()
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = digest(&SHA256, bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_be_bytes(first)
}

/// How long the frame is that begins so.
pub(crate) fn length(begin: [u8; 4], longest: usize) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(begin)).unwrap_or(usize::MAX);
    match length > longest {
        true => Err(FrameError::TooLong { length, longest }),
        false => Ok(length),
    }
}

pub(crate) fn read(bytes: &[u8], versions: Versions) -> Result<Said, FrameError> {
    let read: Read<'_> = serde_json::from_slice(next::inside(versions, bytes))?;
    if !versions.has(read.v) {
        return Err(FrameError::Version { theirs: read.v, ours: versions });
    }
    Ok(said(read))
}

/// The first frame of a connection: it says which versions are spoken, and all can read it.
pub(crate) fn read_hello(bytes: &[u8]) -> Result<Said, FrameError> {
    Ok(said(serde_json::from_slice(bytes)?))
}

fn said(read: Read<'_>) -> Said {
    match read {
        Read { hello: Some(hello), .. } => Said::Hello(hello),
        Read { facts: Some(facts), hash, .. } => {
            understood(facts, |facts| Said::Facts { facts, hash: hash.unwrap_or_default() })
        }
        Read { sent: Some(message), .. } => understood(message, Said::Sent),
        Read { pull: Some(true), .. } => Said::Pull,
        Read { .. } => Said::Unknown,
    }
}

fn understood<'a, T: Deserialize<'a>>(text: &'a RawValue, said: impl FnOnce(T) -> Said) -> Said {
    match serde_json::from_str(text.get()) {
        Ok(content) => said(content),
        Err(error) => Said::NotUnderstood(error.to_string()),
    }
}

impl Hello {
    /// The version that both speak.
    pub(crate) fn version(&self, ours: Versions) -> Result<u8, FrameError> {
        let version = ours.with(self.newest).filter(|it| *it >= self.oldest);
        version.ok_or(FrameError::Version { theirs: self.newest, ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::fleet::{JobOrder, Number, OrderKind, Term};

    const NOW: Versions = Versions { oldest: 1, newest: 2 };

    fn peer() -> PeerKey {
        PeerKey { node: Name::new("a").expect("a name"), run: RunId::new("1") }
    }

    fn read_back(frame: &[u8]) -> Said {
        let (begin, rest) = frame.split_first_chunk().expect("a length");
        assert_eq!(length(*begin, LONGEST_FRAME).expect("short"), rest.len());
        read(rest, NOW).expect("one of ours")
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let said = Hello { peer: peer(), oldest: 1, newest: 2 };
        assert_eq!(read_back(&hello(&peer(), NOW)), Said::Hello(said));
        assert_eq!(read_back(&pull(1)), Said::Pull);
        let master = Name::new("a").expect("a name");
        let number = Number { term: Term { number: 3, master: master.clone() }, counter: 9 };
        let message = Message::Order(JobOrder { number, job: master, what: OrderKind::Stop });
        assert_eq!(read_back(&sent(2, &message)), Said::Sent(message));
    }

    #[test]
    fn what_a_later_version_says_is_passed_over_and_another_version_told() {
        assert_eq!(read(br#"{"v":1,"wish":{"x":1}}"#, NOW).expect("read"), Said::Unknown);
        assert_eq!(read(br#"{"v":1,"pull":true,"why":"x"}"#, NOW).expect("read"), Said::Pull);
        // Also what is of a known kind and cannot be understood: the connection goes on.
        for frame in
            [&br#"{"v":1,"sent":{"greet":{}}}"#[..], br#"{"v":1,"hash":1,"facts":{"x":1}}"#]
        {
            let said = read(frame, NOW).expect("read");
            assert!(matches!(said, Said::NotUnderstood(_)), "{said:?}");
        }
        let told = read(br#"{"v":3,"pull":true}"#, NOW).expect_err("another version").to_string();
        assert_eq!(told, "it speaks version 3 of the protocol of peers, and this node 1 to 2");
        let other = Hello { peer: peer(), oldest: 3, newest: 4 };
        assert!(other.version(NOW).is_err());
        assert_eq!(Hello { oldest: 2, ..other.clone() }.version(NOW).expect("both"), 2);
        assert_eq!(Hello { oldest: 1, newest: 1, ..other }.version(NOW).expect("both"), 1);
    }

    #[test]
    fn one_that_is_too_long_is_refused_before_it_is_read() {
        let told = length([0, 0, 16, 1], LONGEST_HELLO).expect_err("too long").to_string();
        assert_eq!(told, "a frame has 4097 bytes, more than 4096");
    }
}
