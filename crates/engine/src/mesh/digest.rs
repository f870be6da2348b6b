//! Which facts each node has: their version and hash, passed on from node to node in datagrams.

use super::identity::{CodecError, MeshId};
use foca::{BroadcastHandler, Invalidates};
use mainstay_core::{fleet::RunId, name::Name};
use std::{
    collections::BTreeMap,
    sync::mpsc::{self, Receiver, Sender},
};

/// What a node has said last, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    pub node: Name,
    pub run: RunId,
    pub version: u64,
    pub hash: u64,
}

impl Digest {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.hash.to_be_bytes());
        bytes.push(u8::try_from(self.node.as_str().len()).unwrap_or(u8::MAX));
        bytes.extend(self.node.as_str().as_bytes());
        let run = self.run.to_string();
        bytes.push(u8::try_from(run.len()).unwrap_or(u8::MAX));
        bytes.extend(run.as_bytes());
        bytes
    }

    /// What follows is of a later version, and is passed on with the rest.
    fn read(bytes: &[u8]) -> Result<Digest, CodecError> {
        let (version, rest) = bytes.split_first_chunk().ok_or(CodecError::Cut)?;
        let (hash, rest) = rest.split_first_chunk().ok_or(CodecError::Cut)?;
        let (node, rest) = get_text(rest)?;
        let (run, _) = get_text(rest)?;
        Ok(Digest {
            node: Name::new(node)?,
            run: RunId::new(run),
            version: u64::from_be_bytes(*version),
            hash: u64::from_be_bytes(*hash),
        })
    }
}

/// A text with its length before it, and what follows.
fn get_text(bytes: &[u8]) -> Result<(&str, &[u8]), CodecError> {
    let (length, rest) = bytes.split_first().ok_or(CodecError::Cut)?;
    let (text, rest) = rest.split_at_checked((*length).into()).ok_or(CodecError::Cut)?;
    Ok((std::str::from_utf8(text).map_err(|_| CodecError::Text)?, rest))
}

/// What replaces what: a later version of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DigestKey {
    node: Name,
    run: RunId,
    version: u64,
}

impl Invalidates for DigestKey {
    fn invalidates(&self, other: &DigestKey) -> bool {
        (&self.node, &self.run) == (&other.node, &other.run) && self.version >= other.version
    }
}

/// The latest of each run.
#[derive(Debug)]
pub(crate) struct Digests {
    known: BTreeMap<(Name, RunId), u64>,
    news: Sender<Digest>,
}

/// So many at most: runs that are long over make room.
const MOST: usize = 4096;

impl Digests {
    /// Where those of others come out.
    pub(crate) fn new() -> (Digests, Receiver<Digest>) {
        let (news, receiver) = mpsc::channel();
        (Digests { known: BTreeMap::new(), news }, receiver)
    }
}

impl BroadcastHandler<MeshId> for Digests {
    type Key = DigestKey;
    type Error = CodecError;

    fn receive_item(
        &mut self,
        data: &[u8],
        sender: Option<&MeshId>,
    ) -> Result<Option<DigestKey>, CodecError> {
        let digest = Digest::read(data)?;
        let key = (digest.node.clone(), digest.run.clone());
        if self.known.get(&key).is_some_and(|known| *known >= digest.version) {
            return Ok(None);
        }
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            self.known.pop_first();
        }
        self.known.insert(key, digest.version);
        let Digest { node, run, version, .. } = digest.clone();
        // Those of this node are no news.
        if sender.is_some() {
            let _ = self.news.send(digest);
        }
        Ok(Some(DigestKey { node, run, version }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(node: &str, version: u64) -> Digest {
        let (node, run) = (Name::new(node).expect("a name"), RunId::new("1"));
        Digest { node, run, version, hash: !version }
    }

    #[test]
    fn only_what_is_later_is_news_and_is_passed_on() {
        let (mut digests, news) = Digests::new();
        let sender = MeshId {
            node: Name::new("b").expect("a name"),
            run: RunId::new("2"),
            at: ([127, 0, 0, 1], 1).into(),
            generation: 0,
        };
        let mut take = |it: &Digest| digests.receive_item(&it.bytes(), Some(&sender));
        for (version, is_news) in [(3, true), (3, false), (2, false), (4, true)] {
            let taken = take(&digest("a", version)).expect("a digest").is_some();
            assert_eq!(taken, is_news, "{version}");
        }
        assert_eq!(news.try_iter().collect::<Vec<_>>(), [digest("a", 3), digest("a", 4)]);
        let whole = digest("a", 1).bytes();
        for length in 0..whole.len() {
            assert!(Digest::read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let more = [&digest("a", 1).bytes()[..], b"more"].concat();
        assert_eq!(Digest::read(&more).expect("a digest"), digest("a", 1));
    }
}
