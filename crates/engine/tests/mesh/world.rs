//! Nodes that have nothing but the half without I/O, their clocks, and the network between them.

use mainstay_core::{clock::Mono, fleet::RunId, name::Name};
use mainstay_engine::mesh::{
    Digest, FleetKeys, Mesh, MeshEvent, MeshSettings, Reached, Seed, Versions,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::Path,
    time::Duration,
};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const TICK: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(5);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

pub(crate) struct Node {
    pub(crate) mesh: Mesh,
    pub(crate) members: Vec<Reached>,
    pub(crate) digests: Vec<Digest>,
    pub(crate) other_versions: Vec<(u8, Versions)>,
    /// It takes part in nothing, and time passes.
    pub(crate) frozen: bool,
}

/// How one node is started.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) name: &'static str,
    pub(crate) run: &'static str,
    pub(crate) port: u16,
    pub(crate) roster: Vec<u16>,
    pub(crate) keys: String,
    pub(crate) versions: Versions,
}

impl Start {
    pub(crate) fn of(name: &'static str, run: &'static str, port: u16, roster: &[u16]) -> Start {
        let (roster, keys) = (roster.to_vec(), KEY.to_owned());
        Start { name, run, port, roster, keys, versions: Versions::SPOKEN }
    }
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) now: Mono,
    pub(crate) nodes: BTreeMap<u16, Node>,
    /// From one port to another, nothing goes.
    pub(crate) cuts: BTreeSet<(u16, u16)>,
    /// Of a hundred so many are lost, by turns.
    pub(crate) loss: u64,
    pub(crate) delay: Duration,
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    /// All that ever went from one to another.
    pub(crate) recorded: Vec<(u16, u16, Vec<u8>)>,
    pub(crate) records: bool,
    starts: u64,
    under_way: BTreeMap<(Mono, u64), (u16, u16, Vec<u8>)>,
}

impl World {
    pub(crate) fn start(&mut self, start: &Start) {
        self.starts += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.starts.to_be_bytes());
        let settings = MeshSettings {
            fleet: "shop".to_owned(),
            me: name(start.name),
            run: RunId::new(start.run),
            at: address(start.port),
            tick: TICK,
            versions: start.versions,
            keys: FleetKeys::parse(&start.keys, Path::new("key")).expect("keys"),
            seed: Seed(seed),
        };
        let mut mesh = Mesh::new(settings, self.now);
        mesh.set_addresses(start.roster.iter().map(|port| address(*port)).collect());
        let node = Node {
            mesh,
            members: Vec::new(),
            digests: Vec::new(),
            other_versions: Vec::new(),
            frozen: false,
        };
        self.nodes.insert(start.port, node);
    }

    /// Nodes of these names at ports from 1 on, each of which knows all others.
    pub(crate) fn of(names: &[&'static str]) -> World {
        let ports: Vec<u16> = (1..).take(names.len()).collect();
        let mut world = World::default();
        for (name, port) in names.iter().zip(&ports) {
            world.start(&Start::of(name, "1", *port, &ports));
        }
        world
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now.after(time);
        while self.now < end {
            self.step();
        }
    }

    /// Lets time pass until this is so; how long that took.
    pub(crate) fn run_until(&mut self, what: &str, is_so: impl Fn(&World) -> bool) -> Duration {
        let begin = self.now;
        while !is_so(self) {
            assert!(self.now.since(begin) < Duration::from_secs(60), "never: {what}");
            self.step();
        }
        self.now.since(begin)
    }

    fn step(&mut self) {
        self.now = self.now.after(STEP);
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let (from, to, datagram) = entry.remove();
            if let Some(node) = self.nodes.get_mut(&to).filter(|it| !it.frozen) {
                node.mesh.take(address(from), &datagram);
            }
        }
        for port in self.nodes.keys().copied().collect::<Vec<_>>() {
            let Some(node) = self.nodes.get_mut(&port).filter(|it| !it.frozen) else { continue };
            node.mesh.pass(self.now);
            for event in node.mesh.take_events() {
                match event {
                    MeshEvent::Members(members) => node.members = members,
                    MeshEvent::Digest(digest) => node.digests.push(digest),
                    MeshEvent::OtherVersion { theirs, ours, .. } => {
                        node.other_versions.push((theirs, ours));
                    }
                }
            }
            let sends = node.mesh.take_sends();
            sends.into_iter().for_each(|(to, datagram)| self.send(port, to.port(), datagram));
        }
    }

    pub(crate) fn send(&mut self, from: u16, to: u16, datagram: Vec<u8>) {
        self.sent += 1;
        self.bytes += datagram.len() as u64 + 28;
        if self.records {
            self.recorded.push((from, to, datagram.clone()));
        }
        // A cheap dice that any number of datagrams does not fall into step with.
        let dice = self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        if self.cuts.contains(&(from, to)) || dice % 100 < self.loss {
            return;
        }
        let at = self.now.after(self.delay);
        self.under_way.insert((at, self.sent), (from, to, datagram));
    }

    pub(crate) fn cut(&mut self, one: &[u16], other: &[u16]) {
        for one in one {
            for other in other {
                self.cuts.extend([(*one, *other), (*other, *one)]);
            }
        }
    }

    /// The names that a node sees, with their runs.
    pub(crate) fn seen(&self, port: u16) -> Vec<String> {
        let Some(node) = self.nodes.get(&port) else { return Vec::new() };
        let mut seen: Vec<String> =
            node.members.iter().map(|it| format!("{}.{}", it.member.node, it.member.run)).collect();
        seen.sort();
        seen
    }

    pub(crate) fn all_see(&self, expected: &[&str]) -> bool {
        self.nodes.keys().all(|port| self.seen(*port) == expected)
    }
}
