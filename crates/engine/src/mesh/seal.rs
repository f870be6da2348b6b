//! Sealing and opening datagrams.
//!
//! Whoever starts chooses a session at random. What it sends is sealed with a key that is derived
//! from the fleet key and that session, under a number that only ever grows: no number is used twice
//! with one key, whatever is restarted.
//!
//! Nothing is taken twice. Of each session that has sent something the numbers are remembered; and
//! nothing counts that does not bear the token of its receiver, which that has chosen at random when
//! it started. So what was recorded before this start, or was meant for somebody else, is nothing
//! here. There is room for so many sessions: when it is used up this node takes another token, and
//! all that was recorded until then is worth nothing.

use super::{
    datagram::{DatagramHead, DatagramKind, Dropped, HEAD, SessionId, Token, Versions},
    key::{FleetKey, FleetKeys},
    replay::Window,
};
use crate::next;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use std::collections::BTreeMap;

/// So many starts of other nodes are remembered: a thousand nodes, or one that starts often.
const SESSIONS: usize = 1024;

/// Random bytes of one start, from which all that is random in it comes.
#[derive(Clone, Copy)]
pub struct Seed(pub [u8; 32]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(…)")
    }
}

impl Seed {
    /// The first bytes of what this seed gives for a purpose, the number-th time.
    pub(crate) fn give<const N: usize>(&self, purpose: &str, number: u64) -> [u8; N] {
        const { assert!(N <= 32) };
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let given = FleetKey::new(&text).derive(purpose, "", &number.to_be_bytes());
        let mut first = [0; N];
        first.copy_from_slice(&given[..N]);
        first
    }
}

/// Something that was in a datagram, and what its head says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) kind: DatagramKind,
    pub(crate) sender: Sender,
    pub(crate) content: Vec<u8>,
}

/// What whoever answers has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) token: Token,
    /// The newest version that it speaks.
    pub(crate) newest: u8,
}

/// What became of a datagram that is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    Dropped(Dropped),
    /// By this very start.
    Own,
    /// A true one for an earlier start or token of this node, of now or long ago: its sender is to be
    /// told the new one.
    Stale(Sender),
}

/// What a node seals and opens with, from its start to its end.
#[derive(Debug)]
pub(crate) struct Seal {
    fleet: String,
    keys: FleetKeys,
    versions: Versions,
    seed: Seed,
    session: SessionId,
    key: LessSafeKey,
    /// The next number.
    next: u64,
    token: Token,
    /// How many tokens there were.
    tokens: u64,
    sessions: BTreeMap<SessionId, Session>,
}

#[derive(Debug)]
struct Session {
    key: LessSafeKey,
    window: Window,
}

impl Seal {
    pub(crate) fn new(fleet: &str, keys: FleetKeys, versions: Versions, seed: Seed) -> Seal {
        let session = SessionId(seed.give("session", 0));
        Seal {
            key: session_key(keys.used(), fleet, session),
            fleet: fleet.to_owned(),
            keys,
            versions,
            seed,
            session,
            next: 0,
            token: Token(seed.give("token", 0)),
            tokens: 1,
            sessions: BTreeMap::new(),
        }
    }

    /// What others have to put on whatever is for this node.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn seal(
        &mut self,
        kind: DatagramKind,
        version: u8,
        token: Token,
        content: &[u8],
    ) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        let (session, newest) = (self.session, self.versions.newest);
        let head = DatagramHead { version, newest, kind, session, token, number }.bytes();
        let mut sealed = [&self.token.0[..], content].concat();
        next::flip(version, &mut sealed);
        self.key
            .seal_in_place_append_tag(nonce(number), Aad::from(&head), &mut sealed)
            .expect("a datagram is not too long for the cipher");
        [&head[..], &sealed].concat()
    }

    pub(crate) fn open(&mut self, datagram: &[u8]) -> Result<Opened, Unopened> {
        let (head, bytes, sealed) =
            DatagramHead::read(datagram, self.versions).map_err(Unopened::Dropped)?;
        if head.session == self.session {
            return Err(Unopened::Own);
        }
        if let Some(session) = self.sessions.get_mut(&head.session) {
            let opened = open_with(&session.key, &head, bytes, sealed)?;
            let is_new = opened.is_for(&head, self.token)? && session.window.take(head.number);
            return match is_new || head.kind == DatagramKind::Hello {
                true => Ok(opened),
                false => Err(Unopened::Dropped(Dropped::Replayed)),
            };
        }
        let found = self.open_new(&head, bytes, sealed);
        let (key, opened) = found.ok_or(Unopened::Dropped(Dropped::Foreign))?;
        if !opened.is_for(&head, self.token)? {
            return Ok(opened);
        }
        if self.sessions.len() >= SESSIONS {
            self.change_token();
            return Err(Unopened::Stale(opened.sender));
        }
        let mut window = Window::default();
        window.take(head.number);
        self.sessions.insert(head.session, Session { key, window });
        Ok(opened)
    }

    /// With the key of a session that nothing is known of.
    fn open_new(
        &self,
        head: &DatagramHead,
        bytes: &[u8; HEAD],
        sealed: &[u8],
    ) -> Option<(LessSafeKey, Opened)> {
        self.keys.accepted().find_map(|key| {
            let key = session_key(key, &self.fleet, head.session);
            let opened = open_with(&key, head, bytes, sealed).ok()?;
            Some((key, opened))
        })
    }

    fn change_token(&mut self) {
        self.token = Token(self.seed.give("token", self.tokens));
        self.tokens += 1;
        self.sessions.clear();
    }
}

fn session_key(key: &FleetKey, fleet: &str, session: SessionId) -> LessSafeKey {
    let bytes = key.derive("datagrams", fleet, &session.0);
    let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
    LessSafeKey::new(key.expect("a key of this cipher has 32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn open_with(
    key: &LessSafeKey,
    head: &DatagramHead,
    bytes: &[u8; HEAD],
    sealed: &[u8],
) -> Result<Opened, Unopened> {
    let mut opened = sealed.to_vec();
    let opened = key.open_in_place(nonce(head.number), Aad::from(bytes), &mut opened);
    let opened = opened.map_err(|_| Unopened::Dropped(Dropped::Foreign))?;
    next::flip(head.version, opened);
    let (token, content) = opened.split_first_chunk().ok_or(Unopened::Dropped(Dropped::Cut))?;
    let sender = Sender { token: Token(*token), newest: head.newest };
    Ok(Opened { kind: head.kind, sender, content: content.to_vec() })
}

impl Opened {
    /// Whether it bears this token. Whoever says hello cannot know it: that may be an old one, and
    /// nothing is remembered of it.
    fn is_for(&self, head: &DatagramHead, token: Token) -> Result<bool, Unopened> {
        match (head.kind, head.token == token) {
            (DatagramKind::Hello, _) => Ok(false),
            (DatagramKind::Welcome | DatagramKind::Swim | DatagramKind::Leave, true) => Ok(true),
            (DatagramKind::Welcome | DatagramKind::Swim | DatagramKind::Leave, false) => {
                Err(Unopened::Stale(self.sender))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn seal(seed: u8, fleet: &str, keys: &str) -> Seal {
        let keys = FleetKeys::parse(keys, Path::new("key")).expect("keys");
        Seal::new(fleet, keys, Versions::SPOKEN, Seed([seed; 32]))
    }

    fn foreign<T>() -> Result<T, Unopened> {
        Err(Unopened::Dropped(Dropped::Foreign))
    }

    #[test]
    fn what_is_sealed_is_opened_once_by_whom_it_is_for() {
        let (mut a, mut b) = (seal(1, "shop", ONE), seal(2, "shop", ONE));
        let datagram = a.seal(DatagramKind::Swim, 1, b.token(), b"hello");
        let opened = b.open(&datagram).expect("it is for b");
        assert_eq!((opened.kind, &opened.content[..]), (DatagramKind::Swim, &b"hello"[..]));
        assert_eq!(b.open(&datagram), Err(Unopened::Dropped(Dropped::Replayed)));
        assert_eq!(a.open(&datagram), Err(Unopened::Own));
        let stale = Sender { token: a.token(), newest: 1 };
        let mut c = seal(3, "shop", ONE);
        assert_eq!(c.open(&datagram), Err(Unopened::Stale(stale)), "it is for another");
        let mut again = seal(4, "shop", ONE);
        assert_eq!(again.open(&datagram), Err(Unopened::Stale(stale)), "b, once more");
    }

    #[test]
    fn another_key_or_fleet_or_a_changed_bit_is_foreign() {
        let (mut a, mut b) = (seal(1, "shop", ONE), seal(2, "shop", ONE));
        let datagram = a.seal(DatagramKind::Swim, 1, b.token(), b"hello");
        for mut other in [seal(2, "shop", OTHER), seal(2, "mail", ONE)] {
            assert_eq!(other.open(&datagram), foreign());
        }
        for at in 3..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(b.open(&changed).map(drop), foreign(), "at {at}");
        }
    }

    #[test]
    fn during_a_rotation_both_keys_are_accepted() {
        let both = format!("{ONE}\n{OTHER}");
        let (mut old, mut new) = (seal(1, "shop", ONE), seal(2, "shop", OTHER));
        let mut between = seal(3, "shop", &both);
        for it in [&mut old, &mut new] {
            let datagram = it.seal(DatagramKind::Swim, 1, between.token(), b"x");
            assert!(between.open(&datagram).is_ok());
        }
        let datagram = between.seal(DatagramKind::Swim, 1, old.token(), b"x");
        assert!(old.open(&datagram).is_ok());
        assert_eq!(new.open(&datagram), foreign());
    }

    #[test]
    fn a_restart_never_uses_a_number_with_a_key_twice() {
        let (mut a, mut again) = (seal(1, "shop", ONE), seal(2, "shop", ONE));
        let one = a.seal(DatagramKind::Swim, 1, Token::default(), b"x");
        let other = again.seal(DatagramKind::Swim, 1, Token::default(), b"x");
        assert_ne!(one[5..21], other[5..21], "another session, and so another key");
        assert_eq!(one[29..37], other[29..37]);
        assert_ne!(one[37..], other[37..]);
    }

    #[test]
    fn when_too_many_sessions_are_known_all_of_them_have_to_ask_again() {
        let mut b = seal(0, "shop", ONE);
        let token = b.token();
        let keys = FleetKeys::parse(ONE, Path::new("key")).expect("keys");
        let mut sent = Vec::new();
        for number in 0..=SESSIONS {
            let mut seed = [9; 32];
            seed[..8].copy_from_slice(&number.to_be_bytes());
            let mut a = Seal::new("shop", keys.clone(), Versions::SPOKEN, Seed(seed));
            sent.push(a.seal(DatagramKind::Swim, 1, token, b"x"));
        }
        let taken = sent.iter().filter(|it| b.open(it).is_ok()).count();
        assert_eq!(taken, SESSIONS);
        assert_ne!(b.token(), token);
        assert!(sent.iter().all(|it| matches!(b.open(it), Err(Unopened::Stale(_)))));
    }
}
