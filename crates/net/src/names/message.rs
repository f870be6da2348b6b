//! Messages of the domain name system (RFC 1035): a question, and the addresses in an answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HEADER: usize = 12;
const INTERNET: u16 = 1;
const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;

/// Which addresses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn record(self) -> u16 {
        match self {
            Family::V4 => 1,
            Family::V6 => 28,
        }
    }
}

/// What a server says to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// None: the name is there, and has none of this family.
    Addresses(Vec<IpAddr>),
    NoSuchName,
    /// It is to be asked again over TCP.
    Truncated,
    /// The server cannot, or does not want to.
    Failed,
}

/// A question that can be sent; `None`: no host has such a name.
pub(super) fn question(id: u16, name: &str, family: Family) -> Option<Vec<u8>> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return None;
    }
    // One question, and recursion is wanted.
    let mut message = [id.to_be_bytes(), [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]].concat();
    for label in name.split('.') {
        if label.is_empty() || label.len() > LONGEST_LABEL {
            return None;
        }
        message.push(u8::try_from(label.len()).ok()?);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(family.record().to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    Some(message)
}

/// What an answer says; `None`: it is not one to this question.
pub(super) fn reply(message: &[u8], question: &[u8]) -> Option<Reply> {
    let asked = question.get(HEADER..)?;
    let said = message.get(HEADER..HEADER + asked.len())?;
    let is_answer = message[2] & 0x80 != 0 && message[..2] == question[..2];
    if !is_answer || number(message, 4)? != 1 || !said.eq_ignore_ascii_case(asked) {
        return None;
    }
    match message[3] & 0x0f {
        _ if message[2] & 0x02 != 0 => Some(Reply::Truncated),
        0 => {
            let family = number(asked, asked.len().checked_sub(4)?)?;
            Some(
                addresses(message, HEADER + asked.len(), family)
                    .map_or(Reply::Failed, Reply::Addresses),
            )
        }
        3 => Some(Reply::NoSuchName),
        _ => Some(Reply::Failed),
    }
}

/// The records of an answer, whatever names lie between them and the question; `None`: torn.
fn addresses(message: &[u8], mut at: usize, family: u16) -> Option<Vec<IpAddr>> {
    let mut found = Vec::new();
    for _ in 0..number(message, 6)? {
        at = after_name(message, at)?;
        let (record, class) = (number(message, at)?, number(message, at + 2)?);
        let length = usize::from(number(message, at + 8)?);
        let data = message.get(at + 10..at + 10 + length)?;
        if class == INTERNET && record == family {
            found.extend(address(data));
        }
        at += 10 + length;
    }
    Some(found)
}

fn address(data: &[u8]) -> Option<IpAddr> {
    match data.len() {
        4 => <[u8; 4]>::try_from(data).ok().map(|it| Ipv4Addr::from(it).into()),
        16 => <[u8; 16]>::try_from(data).ok().map(|it| Ipv6Addr::from(it).into()),
        _ => None,
    }
}

/// Where a name ends: with an empty label, or by pointing to where it goes on.
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => return Some(at + 2),
            64..192 => return None,
        }
    }
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with a detour by another name, as servers send it.
    fn answer(question: &[u8]) -> Vec<u8> {
        let mut answer = question.to_vec();
        (answer[2], answer[7]) = (0x81, 2);
        answer.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03www\xc0\x10");
        answer.extend(b"\xc0\x2d\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x07");
        answer
    }

    #[test]
    fn the_addresses_behind_another_name_are_found() {
        let question = question(7, "web.example", Family::V4).expect("a name");
        let found = Reply::Addresses(vec![IpAddr::from([10, 0, 0, 7])]);
        assert_eq!(reply(&answer(&question), &question), Some(found));
    }

    #[test]
    fn what_answers_another_question_is_no_answer() {
        let asked = question(7, "web.example", Family::V4).expect("a name");
        for other in [
            question(8, "web.example", Family::V4),
            question(7, "web.example", Family::V6),
            question(7, "dbs.example", Family::V4),
        ] {
            assert_eq!(reply(&answer(&other.expect("a name")), &asked), None);
        }
        assert_eq!(reply(&asked, &asked), None, "a question is no answer");
    }

    #[test]
    fn whatever_is_torn_or_changed_is_read_without_harm() {
        let question = question(7, "web.example", Family::V4).expect("a name");
        let answer = answer(&question);
        for length in 0..answer.len() {
            assert_ne!(reply(&answer[..length], &question), Some(Reply::Addresses(vec![])));
        }
        for at in 0..answer.len() {
            for byte in 0..=255 {
                let mut changed = answer.clone();
                changed[at] = byte;
                let _ = reply(&changed, &question);
            }
        }
    }

    #[test]
    fn what_no_host_can_be_called_is_not_asked_for() {
        for name in ["", "a..b", ".a", &"a".repeat(64), &"a.".repeat(130)] {
            assert_eq!(question(1, name, Family::V4), None, "{name}");
        }
    }
}
