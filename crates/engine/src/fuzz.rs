//! Whatever comes from the network, for `fuzz/`.

use crate::{
    mesh::{Mesh, MeshSettings, Seed, Versions},
    peers::frame,
};
use mainstay_core::{clock::Mono, fleet::RunId, name::Name};
use std::{net::SocketAddr, path::Path, time::Duration};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const AT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7071);

fn mesh(seed: u8) -> Mesh {
    let settings = MeshSettings {
        fleet: "shop".to_owned(),
        me: Name::new("a").expect("a name"),
        run: RunId::new("1"),
        at: AT,
        tick: Duration::from_secs(1),
        versions: Versions::SPOKEN,
        keys: crate::FleetKeys::parse(KEY, Path::new("key")).expect("a key"),
        seed: Seed([seed; 32]),
    };
    Mesh::new(settings, Mono(0))
}

/// Something comes by UDP.
pub fn datagram(input: &[u8]) {
    let mut mesh = mesh(1);
    mesh.take(AT, input);
    // Only who has the key is answered, and with no more than it has said.
    let answered: usize = mesh.take_sends().iter().map(|(_, answer)| answer.len()).sum();
    assert!(answered <= input.len(), "{answered} bytes for {}", input.len());
}

/// Somebody who has the key sends what is not to be understood: its first byte says of which kind.
pub fn sealed(input: &[u8]) {
    let Some((kind, content)) = input.split_first() else { return };
    let mut mesh = mesh(1);
    for (number, piece) in content.chunks(1200).take(50).enumerate() {
        let sender = Seed([number as u8 + 2; 32]);
        let datagram = mesh.sealed_by(sender, kind % 4 + 1, piece).expect("one of the kinds");
        mesh.take(AT, &datagram);
        mesh.pass(Mono(0).after(Duration::from_secs(number as u64)));
    }
    assert!(mesh.take_sends().len() < 1000);
}

/// What two nodes that look for each other say first.
#[must_use]
pub fn sample_datagrams() -> Vec<Vec<u8>> {
    let mut mesh = mesh(2);
    mesh.set_addresses(vec![([127, 0, 0, 1], 7072).into()]);
    mesh.pass(Mono(1));
    mesh.take_sends().into_iter().map(|(_, datagram)| datagram).collect()
}

/// A kind, and what is in datagrams of it.
#[must_use]
pub fn sample_contents() -> Vec<Vec<u8>> {
    let id = b"\x01b\x011\x04\x7f\0\0\x01\x1b\x9f\0\0";
    let me = b"\x01a\x011\x04\x7f\0\0\x01\x1b\x9f\0\0";
    let announce = [&id[..], b"\0\0", me, b"\x07"].concat();
    let ping = [&id[..], b"\0\0", me, b"\x01\x05\0\x01", id, b"\0\0\x01"].concat();
    let contents = [(0, &id[..]), (1, id), (2, &announce), (2, &ping), (3, id)];
    contents.into_iter().map(|(kind, content)| [&[kind], content].concat()).collect()
}

/// A peer says something over TLS.
pub fn peer_frame(input: &[u8]) {
    let _ = frame::read(input, Versions::SPOKEN);
    let _ = frame::read_hello(input);
}
