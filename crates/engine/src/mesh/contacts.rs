//! Where datagrams go: for each address the token that it wants to see, and what waits for that.
//!
//! ```text
//!  nothing known ── Hello ─►        ◄─ Welcome(token) ── what waited is sent
//!  its token has changed            ◄─ Welcome(token) ── the last one is sent again
//! ```

use super::{
    datagram::{Token, Versions},
    seal::Sender,
};
use mainstay_core::clock::Mono;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};

/// Addresses that nobody has used for longest make room.
const MOST: usize = 2048;
/// So many wait for a token; later ones replace earlier ones.
const WAITING: usize = 4;

#[derive(Debug)]
pub(crate) struct Contacts {
    versions: Versions,
    /// Nobody is asked more often, and what is older is not sent again.
    patience: Duration,
    contacts: BTreeMap<SocketAddr, Contact>,
}

#[derive(Debug, Default)]
struct Contact {
    token: Option<Token>,
    /// The version to use.
    version: Option<u8>,
    asked: Option<Mono>,
    used: Mono,
    waiting: VecDeque<Vec<u8>>,
    /// The last that was sent, in case that its token was an old one.
    last: Option<(Mono, Vec<u8>)>,
}

/// How to send something now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open {
        version: u8,
        token: Token,
    },
    /// It waits; somebody has to ask.
    Ask,
    /// It waits; somebody has asked.
    Wait,
}

impl Contacts {
    pub(crate) fn new(versions: Versions, patience: Duration) -> Contacts {
        Contacts { versions, patience, contacts: BTreeMap::new() }
    }

    /// Something is to go there.
    pub(crate) fn send(&mut self, now: Mono, to: SocketAddr, content: Vec<u8>) -> Way {
        let patience = self.patience;
        let oldest = self.versions.oldest;
        let contact = self.contact(now, to);
        match contact.token {
            Some(token) => {
                contact.last = Some((now, content));
                Way::Open { version: contact.version.unwrap_or(oldest), token }
            }
            None => {
                if contact.waiting.len() == WAITING {
                    contact.waiting.pop_front();
                }
                contact.waiting.push_back(content);
                match contact.asked.is_some_and(|at| now.since(at) < patience) {
                    true => Way::Wait,
                    false => {
                        contact.asked = Some(now);
                        Way::Ask
                    }
                }
            }
        }
    }

    /// How to send something there at once.
    pub(crate) fn open(&self, to: SocketAddr) -> Option<(u8, Token)> {
        let contact = self.contacts.get(&to)?;
        Some((contact.version?, contact.token?))
    }

    /// The token of an address, from somebody who knows it. What is to be sent there now.
    pub(crate) fn learn(
        &mut self,
        now: Mono,
        from: SocketAddr,
        Sender { token, newest }: Sender,
    ) -> Vec<Vec<u8>> {
        let version = self.versions.with(newest);
        let patience = self.patience;
        let contact = self.contact(now, from);
        contact.version = version;
        let before = contact.token.replace(token);
        if before == Some(token) {
            return Vec::new();
        }
        let recent = contact.last.take().filter(|(at, _)| now.since(*at) < patience);
        let again = recent.map(|(_, content)| content);
        contact.waiting.drain(..).chain(again).collect()
    }

    fn contact(&mut self, now: Mono, at: SocketAddr) -> &mut Contact {
        if self.contacts.len() >= MOST && !self.contacts.contains_key(&at) {
            let idle = self.contacts.iter().min_by_key(|(_, it)| it.used).map(|(at, _)| *at);
            idle.map(|at| self.contacts.remove(&at));
        }
        let contact = self.contacts.entry(at).or_default();
        contact.used = now;
        contact
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7071);
    const TOKEN: Token = Token([1; 8]);

    fn at(milliseconds: u64) -> Mono {
        Mono(0).after(Duration::from_millis(milliseconds))
    }

    fn sender(token: Token, newest: u8) -> Sender {
        Sender { token, newest }
    }

    fn contacts() -> Contacts {
        let versions = Versions { oldest: 1, newest: 2 };
        Contacts::new(versions, Duration::from_millis(200))
    }

    #[test]
    fn what_has_no_token_waits_for_one_and_nobody_is_asked_too_often() {
        let mut contacts = contacts();
        assert_eq!(contacts.send(at(0), AT, vec![1]), Way::Ask);
        assert_eq!(contacts.send(at(100), AT, vec![2]), Way::Wait);
        assert_eq!(contacts.send(at(300), AT, vec![3]), Way::Ask);
        assert_eq!(contacts.learn(at(301), AT, sender(TOKEN, 9)), [[1], [2], [3]]);
        assert_eq!(contacts.send(at(302), AT, vec![4]), Way::Open { version: 2, token: TOKEN });
    }

    #[test]
    fn the_last_one_is_sent_again_when_the_token_was_an_old_one() {
        let mut contacts = contacts();
        contacts.learn(at(0), AT, sender(TOKEN, 1));
        assert_eq!(contacts.send(at(1), AT, vec![1]), Way::Open { version: 1, token: TOKEN });
        assert!(contacts.learn(at(2), AT, sender(TOKEN, 1)).is_empty(), "the same one");
        assert_eq!(contacts.learn(at(3), AT, sender(Token([2; 8]), 1)), [[1]]);
        contacts.send(at(4), AT, vec![2]);
        assert!(contacts.learn(at(300), AT, sender(Token([3; 8]), 1)).is_empty(), "too long ago");
    }

    #[test]
    fn those_that_wait_are_few() {
        let mut contacts = contacts();
        for number in 0..9 {
            contacts.send(at(0), AT, vec![number]);
        }
        assert_eq!(contacts.learn(at(1), AT, sender(TOKEN, 1)), [[5], [6], [7], [8]]);
    }
}
