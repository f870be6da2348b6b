//! Who a member of the mesh is, and how that is written in datagrams.

use bytes::{Buf, BufMut};
use foca::{Codec, Header, Identity, Member, Message, State};
use mainstay_core::{
    fleet::RunId,
    name::{Name, NameError},
};
use std::net::{IpAddr, SocketAddr};

/// Run ids of ours have 16.
const LONGEST_RUN: usize = 64;

/// One run of one node. When it was given up by mistake it comes back as the next generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeshId {
    pub(crate) node: Name,
    pub(crate) run: RunId,
    /// Where it is reached.
    pub(crate) at: SocketAddr,
    pub(crate) generation: u16,
}

impl MeshId {
    pub(crate) fn is_same_run(&self, other: &MeshId) -> bool {
        self.node == other.node && self.run == other.run
    }
}

impl Identity for MeshId {
    type Addr = (Name, RunId);

    fn renew(&self) -> Option<MeshId> {
        Some(MeshId { generation: self.generation.wrapping_add(1), ..self.clone() })
    }

    fn addr(&self) -> (Name, RunId) {
        (self.node.clone(), self.run.clone())
    }

    fn win_addr_conflict(&self, other: &MeshId) -> bool {
        // The later one, also when the count begins anew.
        let ahead = self.generation.wrapping_sub(other.generation);
        match ahead {
            0 => self.at > other.at,
            1..=0x7fff => true,
            0x8000.. => false,
        }
    }
}

/// What is in a datagram and is not to be understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("there is no room left in the datagram")]
    Full,
    #[error("it ends too soon")]
    Cut,
    #[error("there is no {what} number {code}")]
    Unknown { what: &'static str, code: u8 },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("a text is not UTF-8 or too long")]
    Text,
}

/// Writes whole items or nothing.
pub(crate) fn put_id(id: &MeshId, buf: &mut impl BufMut) -> Result<(), CodecError> {
    let mut bytes = Vec::with_capacity(64);
    put_text(id.node.as_str(), &mut bytes)?;
    put_text(&id.run.to_string(), &mut bytes)?;
    match id.at.ip() {
        IpAddr::V4(ip) => {
            bytes.push(4);
            bytes.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(6);
            bytes.extend(ip.octets());
        }
    }
    bytes.extend(id.at.port().to_be_bytes());
    bytes.extend(id.generation.to_be_bytes());
    put(&bytes, buf)
}

fn put_text(text: &str, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    let length = u8::try_from(text.len()).map_err(|_| CodecError::Text)?;
    bytes.push(length);
    bytes.extend(text.as_bytes());
    Ok(())
}

fn put(bytes: &[u8], buf: &mut impl BufMut) -> Result<(), CodecError> {
    if buf.remaining_mut() < bytes.len() {
        return Err(CodecError::Full);
    }
    buf.put_slice(bytes);
    Ok(())
}

pub(crate) fn get_id(buf: &mut impl Buf) -> Result<MeshId, CodecError> {
    let node = Name::new(&get_text(buf, 63)?)?;
    let run = RunId::new(&get_text(buf, LONGEST_RUN)?);
    let ip = match get_u8(buf)? {
        4 => IpAddr::from(get_array::<4>(buf)?),
        6 => IpAddr::from(get_array::<16>(buf)?),
        code => return Err(CodecError::Unknown { what: "address family", code }),
    };
    let at = SocketAddr::new(ip, get_u16(buf)?);
    Ok(MeshId { node, run, at, generation: get_u16(buf)? })
}

fn get_text(buf: &mut impl Buf, longest: usize) -> Result<String, CodecError> {
    let length = usize::from(get_u8(buf)?);
    if length > longest {
        return Err(CodecError::Text);
    }
    if buf.remaining() < length {
        return Err(CodecError::Cut);
    }
    let mut bytes = vec![0; length];
    buf.copy_to_slice(&mut bytes);
    String::from_utf8(bytes).map_err(|_| CodecError::Text)
}

fn get_array<const N: usize>(buf: &mut impl Buf) -> Result<[u8; N], CodecError> {
    let mut bytes = [0; N];
    buf.try_copy_to_slice(&mut bytes).map_err(|_| CodecError::Cut)?;
    Ok(bytes)
}

fn get_u8(buf: &mut impl Buf) -> Result<u8, CodecError> {
    buf.try_get_u8().map_err(|_| CodecError::Cut)
}

fn get_u16(buf: &mut impl Buf) -> Result<u16, CodecError> {
    buf.try_get_u16().map_err(|_| CodecError::Cut)
}

/// How the membership protocol is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeshCodec;

impl Codec<MeshId> for MeshCodec {
    type Error = CodecError;

    fn encode_header(
        &mut self,
        header: &Header<MeshId>,
        mut buf: impl BufMut,
    ) -> Result<(), CodecError> {
        put_id(&header.src, &mut buf)?;
        put(&header.src_incarnation.to_be_bytes(), &mut buf)?;
        put_id(&header.dst, &mut buf)?;
        let (code, number, id) = match &header.message {
            Message::Ping(number) => (1, Some(number), None),
            Message::Ack(number) => (2, Some(number), None),
            Message::PingReq { target, probe_number } => (3, Some(probe_number), Some(target)),
            Message::IndirectPing { origin, probe_number } => (4, Some(probe_number), Some(origin)),
            Message::IndirectAck { target, probe_number } => (5, Some(probe_number), Some(target)),
            Message::ForwardedAck { origin, probe_number } => (6, Some(probe_number), Some(origin)),
            Message::Announce => (7, None, None),
            Message::Feed => (8, None, None),
            Message::Gossip => (9, None, None),
            Message::Broadcast => (10, None, None),
            Message::TurnUndead => (11, None, None),
        };
        put(&[code], &mut buf)?;
        number.map_or(Ok(()), |number| put(&[*number], &mut buf))?;
        id.map_or(Ok(()), |id| put_id(id, &mut buf))
    }

    fn decode_header(&mut self, mut buf: impl Buf) -> Result<Header<MeshId>, CodecError> {
        let src = get_id(&mut buf)?;
        let src_incarnation = get_u16(&mut buf)?;
        let dst = get_id(&mut buf)?;
        let code = get_u8(&mut buf)?;
        let probe_number = if code <= 6 { get_u8(&mut buf)? } else { 0 };
        let message = match code {
            1 => Message::Ping(probe_number),
            2 => Message::Ack(probe_number),
            3 => Message::PingReq { target: get_id(&mut buf)?, probe_number },
            4 => Message::IndirectPing { origin: get_id(&mut buf)?, probe_number },
            5 => Message::IndirectAck { target: get_id(&mut buf)?, probe_number },
            6 => Message::ForwardedAck { origin: get_id(&mut buf)?, probe_number },
            7 => Message::Announce,
            8 => Message::Feed,
            9 => Message::Gossip,
            10 => Message::Broadcast,
            11 => Message::TurnUndead,
            code => return Err(CodecError::Unknown { what: "message", code }),
        };
        Ok(Header { src, src_incarnation, dst, message })
    }

    fn encode_member(
        &mut self,
        member: &Member<MeshId>,
        mut buf: impl BufMut,
    ) -> Result<(), CodecError> {
        let mut bytes = Vec::with_capacity(64);
        put_id(member.id(), &mut bytes)?;
        bytes.extend(member.incarnation().to_be_bytes());
        bytes.push(match member.state() {
            State::Alive => 1,
            State::Suspect => 2,
            State::Down => 3,
        });
        put(&bytes, &mut buf)
    }

    fn decode_member(&mut self, mut buf: impl Buf) -> Result<Member<MeshId>, CodecError> {
        let id = get_id(&mut buf)?;
        let incarnation = get_u16(&mut buf)?;
        let state = match get_u8(&mut buf)? {
            1 => State::Alive,
            2 => State::Suspect,
            3 => State::Down,
            code => return Err(CodecError::Unknown { what: "state", code }),
        };
        Ok(Member::new(id, incarnation, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids() -> impl Strategy<Value = MeshId> {
        let names = "[A-Za-z0-9][A-Za-z0-9_-]{0,62}"
            .prop_filter_map("reserved", |text| Name::new(&text).ok());
        let runs = "[a-f0-9]{1,16}".prop_map(|text| RunId::new(&text));
        (names, runs, any::<SocketAddr>(), any::<u16>()).prop_map(|(node, run, at, generation)| {
            // A scope is known to one machine alone.
            let at = SocketAddr::new(at.ip(), at.port());
            MeshId { node, run, at, generation }
        })
    }

    fn messages() -> impl Strategy<Value = Message<MeshId>> {
        let number = any::<u8>();
        prop_oneof![
            number.prop_map(Message::Ping),
            number.prop_map(Message::Ack),
            (ids(), number)
                .prop_map(|(target, probe_number)| Message::PingReq { target, probe_number }),
            (ids(), number)
                .prop_map(|(origin, probe_number)| Message::IndirectPing { origin, probe_number }),
            (ids(), number)
                .prop_map(|(target, probe_number)| Message::IndirectAck { target, probe_number }),
            (ids(), number)
                .prop_map(|(origin, probe_number)| Message::ForwardedAck { origin, probe_number }),
            Just(Message::Announce),
            Just(Message::Feed),
            Just(Message::Gossip),
            Just(Message::Broadcast),
            Just(Message::TurnUndead),
        ]
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(src in ids(), dst in ids(), src_incarnation in any::<u16>(), message in messages()) {
            let header = Header { src, src_incarnation, dst, message };
            let mut bytes = Vec::new();
            MeshCodec.encode_header(&header, &mut bytes).expect("written");
            let mut rest = &bytes[..];
            let read = MeshCodec.decode_header(&mut rest).expect("read");
            prop_assert_eq!((read, rest.len()), (header, 0));
        }

        #[test]
        fn a_member_is_read_as_it_was_written_or_not_written_at_all(id in ids(), incarnation in any::<u16>(), room in 0..90usize) {
            let member = Member::new(id, incarnation, State::Suspect);
            let mut bytes = Vec::new().limit(room);
            let written = MeshCodec.encode_member(&member, &mut bytes);
            let bytes = bytes.into_inner();
            match written {
                Ok(()) => prop_assert_eq!(MeshCodec.decode_member(&bytes[..]).expect("read"), member),
                Err(_) => prop_assert!(bytes.is_empty()),
            }
        }

        #[test]
        fn whatever_is_read_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = MeshCodec.decode_header(&bytes[..]);
            let _ = MeshCodec.decode_member(&bytes[..]);
        }
    }

    #[test]
    fn the_next_generation_wins_however_often_it_has_come_back() {
        let one = MeshId {
            node: Name::new("a").expect("a name"),
            run: RunId::new("1"),
            at: ([127, 0, 0, 1], 1).into(),
            generation: u16::MAX,
        };
        let next = one.renew().expect("another");
        assert!(next.win_addr_conflict(&one) && !one.win_addr_conflict(&next));
        assert_eq!(next.generation, 0);
    }
}
