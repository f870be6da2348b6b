//! What a datagram looks like, before and after its seal.
//!
//! ```text
//!  2  "mf"                 what it is
//!  1  version              how the rest is to be read
//!  1  newest               the newest version that its sender speaks
//!  1  kind
//! 16  session              of its sender: what its seal is made of
//!  8  token                of its receiver: whoever has another one has not asked for it
//!  8  number               counted by its sender, never twice in one session
//!  …  sealed               with ChaCha20-Poly1305; all of the above is part of the seal.
//!                           In it: 8 bytes, the token of its sender, then what it is about
//! ```

use std::fmt;

pub(crate) const HEAD: usize = 37;
const TOKEN: usize = 8;
/// Of the seal.
pub(crate) const TAG: usize = 16;
/// The longest that goes through any network in one piece.
pub(crate) const LONGEST: usize = 1400;
/// What is left for what is sealed.
pub(crate) const ROOM: usize = LONGEST - HEAD - TAG - TOKEN;
const MAGIC: [u8; 2] = *b"mf";

/// The versions of the protocol that a node speaks: always the one before as well, so that a fleet
/// is upgraded node by node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub oldest: u8,
    pub newest: u8,
}

impl Versions {
    /// Of this program. The first one has none before it.
    pub const SPOKEN: Versions = Versions { oldest: 1, newest: 1 };

    #[must_use]
    pub fn has(self, version: u8) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The one to use with somebody who speaks this one at best. `None`: there is none.
    #[must_use]
    pub fn with(self, newest: u8) -> Option<u8> {
        let version = self.newest.min(newest);
        self.has(version).then_some(version)
    }

    /// Whether there is one for somebody who speaks this one at best, and so the one before as well.
    #[must_use]
    pub fn meets(self, newest: u8) -> bool {
        (self.oldest..=self.newest.saturating_add(1)).contains(&newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "{}", self.newest),
            false => write!(f, "{} to {}", self.oldest, self.newest),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// Who are you? Answered with `Welcome`.
    Hello,
    /// This is who I am, and my token.
    Welcome,
    /// Of the membership protocol.
    Swim,
    /// I am about to go, on purpose.
    Leave,
}

impl DatagramKind {
    fn code(self) -> u8 {
        match self {
            DatagramKind::Hello => 1,
            DatagramKind::Welcome => 2,
            DatagramKind::Swim => 3,
            DatagramKind::Leave => 4,
        }
    }

    pub(crate) fn of(code: u8) -> Option<DatagramKind> {
        match code {
            1 => Some(DatagramKind::Hello),
            2 => Some(DatagramKind::Welcome),
            3 => Some(DatagramKind::Swim),
            4 => Some(DatagramKind::Leave),
            _ => None,
        }
    }
}

/// One start of one node: random, so that no two are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub(crate) [u8; 16]);

/// Random, and known only to whom its owner has sent it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) [u8; TOKEN]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramHead {
    pub(crate) version: u8,
    pub(crate) newest: u8,
    pub(crate) kind: DatagramKind,
    pub(crate) session: SessionId,
    pub(crate) token: Token,
    pub(crate) number: u64,
}

/// Why a datagram is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// Longer than any of ours.
    Oversized,
    /// Shorter than any of ours, or it ends too soon.
    Cut,
    /// It is none of ours, or of another fleet or key.
    Foreign,
    /// We do not speak its version; its sender speaks this one at best.
    Version { theirs: u8 },
    /// It was there before.
    Replayed,
}

impl DatagramHead {
    pub(crate) fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = self.version;
        bytes[3] = self.newest;
        bytes[4] = self.kind.code();
        bytes[5..21].copy_from_slice(&self.session.0);
        bytes[21..29].copy_from_slice(&self.token.0);
        bytes[29..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// The head of a datagram, and what is sealed in it.
    pub(crate) fn read(
        datagram: &[u8],
        versions: Versions,
    ) -> Result<(DatagramHead, &[u8; HEAD], &[u8]), Dropped> {
        if datagram.len() > LONGEST {
            return Err(Dropped::Oversized);
        }
        // Others may be shorter than any of ours.
        if datagram.len() >= 2 && datagram[..2] != MAGIC {
            return Err(Dropped::Foreign);
        }
        let (head, sealed) = datagram.split_first_chunk::<HEAD>().ok_or(Dropped::Cut)?;
        let [_, _, version, newest, kind, ..] = *head;
        if !versions.has(version) {
            return Err(Dropped::Version { theirs: newest.max(version) });
        }
        if sealed.len() < TAG {
            return Err(Dropped::Cut);
        }
        let kind = DatagramKind::of(kind).ok_or(Dropped::Foreign)?;
        let read = DatagramHead {
            version,
            newest,
            kind,
            session: SessionId(part(head, 5)),
            token: Token(part(head, 21)),
            number: u64::from_be_bytes(part(head, 29)),
        };
        Ok((read, head, sealed))
    }
}

fn part<const N: usize>(head: &[u8; HEAD], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&head[at..at + N]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> DatagramHead {
        DatagramHead {
            version: 1,
            newest: 2,
            kind: DatagramKind::Swim,
            session: SessionId([7; 16]),
            token: Token([9; 8]),
            number: 0x0102_0304_0506_0708,
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let datagram = [&head().bytes()[..], &[0; 20]].concat();
        let (read, _, sealed) =
            DatagramHead::read(&datagram, Versions::SPOKEN).expect("one of ours");
        assert_eq!((read, sealed.len()), (head(), 20));
    }

    #[test]
    fn each_kind_of_bad_datagram_has_its_name() {
        let read = |bytes: &[u8]| DatagramHead::read(bytes, Versions::SPOKEN).map(drop);
        let datagram = [&head().bytes()[..], &[0; 20]].concat();
        assert_eq!(read(&[0; LONGEST + 1]), Err(Dropped::Oversized));
        assert_eq!(read(b""), Err(Dropped::Cut));
        assert_eq!(read(b"GET / HTTP/1.1"), Err(Dropped::Foreign));
        assert_eq!(read(&datagram[..HEAD + TAG - 1]), Err(Dropped::Cut));
        let other = [&datagram[..2], &[3], &datagram[3..]].concat();
        assert_eq!(read(&other), Err(Dropped::Version { theirs: 3 }));
        let other = [&datagram[..4], &[99], &datagram[5..]].concat();
        assert_eq!(read(&other), Err(Dropped::Foreign));
    }

    #[test]
    fn two_nodes_use_the_newest_version_that_both_speak() {
        let (before, now) = (Versions { oldest: 1, newest: 2 }, Versions { oldest: 2, newest: 3 });
        assert_eq!((before.with(3), now.with(2)), (Some(2), Some(2)));
        assert_eq!(now.with(1), None);
        assert_eq!((before.meets(3), now.meets(2), now.meets(1)), (true, true, false));
        assert!(!Versions::SPOKEN.meets(Versions::SPOKEN.newest + 2));
        assert_eq!(
            (before.to_string(), Versions::SPOKEN.to_string()),
            ("1 to 2".into(), "1".into())
        );
    }
}
