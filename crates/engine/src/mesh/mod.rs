//! The half of the mesh that knows no socket and no clock: datagrams and time go in, datagrams and
//! news come out.
//!
//! ```text
//!                 ┌ Seal: is it ours, new, and for us? ┐
//!  datagram ─────►│                                    ├─► Swim (foca): who can be reached ─► members
//!                 └ Contacts: where to, with which token┘      │        └─ digests of facts
//!  time ─────────► Search: who is missing? Hello ─► Welcome ───┘ announce
//! ```
//!
//! Being late is not the passing of time: a node that was frozen, or had no processor, does not take
//! the others for dead because their answers wait in its own socket. What has come is taken before
//! any time passes, and of a long sleep only a moment counts.

mod contacts;
mod datagram;
mod digest;
mod identity;
pub(crate) mod key;
mod members;
mod replay;
mod seal;
mod search;
mod swim;

pub use datagram::{Dropped, Versions};
pub use digest::Digest;
pub use key::{FleetKey, FleetKeys, KeyError};
pub use members::Reached;
pub use seal::Seed;

use crate::next;
use contacts::{Contacts, Way};
use datagram::{DatagramKind, Token};
use foca::Codec;
use identity::{MeshCodec, MeshId, get_id, put_id};
use mainstay_core::{clock::Mono, fleet::RunId, name::Name};
use members::Members;
use seal::{Opened, Seal, Sender, Unopened};
use search::Search;
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use swim::{Swim, SwimEvent};

/// So many strangers are answered in a tick.
const WELCOMES: u32 = 256;
/// Another version is told so often.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// How often a farewell is said to each: one may be lost.
const FAREWELLS: usize = 2;

#[derive(Debug, Clone)]
pub struct MeshSettings {
    pub fleet: String,
    pub me: Name,
    pub run: RunId,
    /// Where this node is reached.
    pub at: SocketAddr,
    pub tick: Duration,
    pub versions: Versions,
    pub keys: FleetKeys,
    pub seed: Seed,
}

/// What the mesh has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeshEvent {
    /// All that can be reached, this node among them.
    Members(Vec<Reached>),
    /// Another node has these facts.
    Digest(Digest),
    /// Somebody speaks a version that this node does not.
    OtherVersion { from: SocketAddr, theirs: u8, ours: Versions },
}

/// How many datagrams were dropped, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropCounts {
    pub oversized: u64,
    pub cut: u64,
    pub foreign: u64,
    pub version: u64,
    pub replayed: u64,
    pub stale: u64,
    pub malformed: u64,
}

#[derive(Debug)]
pub struct Mesh {
    settings: MeshSettings,
    seal: Seal,
    contacts: Contacts,
    swim: Swim,
    search: Search,
    members: Members,
    /// The time by which this half lives, and the clock outside when it was last told.
    now: Mono,
    outside: Mono,
    drops: DropCounts,
    /// Strangers answered in this tick, and when it ends.
    welcomes: (u32, Mono),
    told_versions: BTreeMap<u8, Mono>,
    has_left: bool,
    sends: Vec<(SocketAddr, Vec<u8>)>,
    events: Vec<MeshEvent>,
}

impl Mesh {
    #[must_use]
    pub fn new(settings: MeshSettings, outside: Mono) -> Mesh {
        let MeshSettings { me, run, at, tick, versions, seed, .. } = &settings;
        let id = MeshId { node: me.clone(), run: run.clone(), at: *at, generation: 0 };
        let mut mesh = Mesh {
            seal: Seal::new(&settings.fleet, settings.keys.clone(), *versions, *seed),
            contacts: Contacts::new(*versions, *tick / 5),
            swim: Swim::new(id, *tick, *seed),
            search: Search::new(*at, *tick),
            members: Members::default(),
            now: Mono(0),
            outside,
            drops: DropCounts::default(),
            welcomes: (0, Mono(0)),
            told_versions: BTreeMap::new(),
            has_left: false,
            sends: Vec::new(),
            events: Vec::new(),
            settings,
        };
        mesh.follow();
        mesh
    }

    /// The addresses of nodes and seeds, as they are known now.
    pub fn set_addresses(&mut self, addresses: Vec<SocketAddr>) {
        self.search.set(self.now, addresses);
    }

    /// This node has said something new.
    pub fn say(&mut self, version: u64, hash: u64) {
        let (node, run) = (self.settings.me.clone(), self.settings.run.clone());
        self.swim.spread(&Digest { node, run, version, hash });
    }

    /// Something has come. All that has is to be taken before [`Mesh::pass`].
    pub fn take(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.has_left {
            return;
        }
        match self.seal.open(datagram) {
            Ok(opened) => self.opened(from, opened),
            Err(Unopened::Own) => self.search.is_own(from),
            Err(Unopened::Stale(sender)) => {
                self.drops.stale += 1;
                self.welcome(from, sender);
            }
            Err(Unopened::Dropped(why)) => self.dropped(from, why),
        }
        self.follow();
    }

    /// Time has passed.
    pub fn pass(&mut self, outside: Mono) {
        let passed = outside.since(self.outside);
        self.outside = outside;
        let latest = self.next_due().max(self.now).after(self.settings.tick / 5);
        self.now = self.now.after(passed).min(latest);
        if self.has_left {
            return;
        }
        self.swim.pass(self.now);
        let swim = &self.swim;
        let missing = self.search.due(self.now, |at| swim.members().any(|it| it.at == *at));
        for at in missing {
            self.hello(at);
        }
        self.follow();
    }

    /// How long nothing has to be done, unless something comes.
    #[must_use]
    pub fn idle_for(&self) -> Duration {
        self.next_due().since(self.now)
    }

    /// This node is about to end, on purpose: all are told.
    pub fn leave(&mut self) {
        let content = self.me_as_bytes();
        let members: Vec<SocketAddr> = self.swim.members().map(|it| it.at).collect();
        for _ in 0..FAREWELLS {
            for at in &members {
                if let Some((version, token)) = self.contacts.open(*at) {
                    let kind = DatagramKind::Leave;
                    self.sends.push((*at, self.seal.seal(kind, version, token, &content)));
                }
            }
        }
        self.has_left = true;
    }

    pub fn take_sends(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.sends)
    }

    pub fn take_events(&mut self) -> Vec<MeshEvent> {
        std::mem::take(&mut self.events)
    }

    #[must_use]
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    fn next_due(&self) -> Mono {
        let search = self.search.next_due();
        self.swim.next_due().map_or(search, |swim| swim.min(search))
    }

    fn opened(&mut self, from: SocketAddr, Opened { kind, sender, content }: Opened) {
        let understood = match kind {
            DatagramKind::Hello => {
                self.welcome(from, sender);
                true
            }
            DatagramKind::Welcome => self.welcomed(from, sender, &content).is_some(),
            DatagramKind::Swim => self.told(from, sender, &content).is_some(),
            DatagramKind::Leave => match get_id(&mut &content[..]) {
                Ok(id) => {
                    let at = id.at;
                    self.swim.bury(self.now, id);
                    self.follow();
                    self.search.forget(at);
                    true
                }
                Err(_) => false,
            },
        };
        self.drops.malformed += u64::from(!understood);
    }

    /// Somebody has said who it is.
    fn welcomed(&mut self, from: SocketAddr, sender: Sender, mut content: &[u8]) -> Option<()> {
        let id = get_id(&mut content).ok()?;
        self.learn(from, sender);
        if id.at != from {
            self.learn(id.at, sender);
        }
        if id.is_same_run(self.swim.me()) {
            self.search.is_own(from);
            return Some(());
        }
        self.hold(from, &id);
        if !self.swim.has(&id) {
            self.swim.announce(self.now, id);
        }
        Some(())
    }

    /// Something of the membership protocol.
    fn told(&mut self, from: SocketAddr, sender: Sender, data: &[u8]) -> Option<()> {
        self.learn(from, sender);
        let header = MeshCodec.decode_header(data).ok()?;
        self.hold(from, &header.src);
        self.swim.take(self.now, data).then_some(())
    }

    /// Whoever speaks at an address now has it: another run that was there is gone.
    fn hold(&mut self, from: SocketAddr, id: &MeshId) {
        if from != id.at {
            return;
        }
        let earlier = self.swim.members().filter(|it| it.at == from && !it.is_same_run(id));
        for gone in earlier.cloned().collect::<Vec<_>>() {
            self.swim.bury(self.now, gone);
        }
    }

    fn learn(&mut self, at: SocketAddr, sender: Sender) {
        for data in self.contacts.learn(self.now, at, sender) {
            self.send(at, data);
        }
    }

    fn hello(&mut self, at: SocketAddr) {
        let version = self.settings.versions.oldest;
        let content = self.me_as_bytes();
        let sealed = self.seal.seal(DatagramKind::Hello, version, Token::default(), &content);
        self.sends.push((at, sealed));
    }

    /// Answers a stranger, unless there are too many.
    fn welcome(&mut self, to: SocketAddr, Sender { token, newest }: Sender) {
        let (count, until) = &mut self.welcomes;
        if self.now >= *until {
            (*count, *until) = (0, self.now.after(self.settings.tick));
        }
        *count += 1;
        if *count > WELCOMES {
            return;
        }
        let versions = self.settings.versions;
        let version = versions.with(newest).unwrap_or(versions.oldest);
        let content = self.me_as_bytes();
        // It may have asked long ago: then it wants to see another token now, and drops this.
        self.sends.push((to, self.seal.seal(DatagramKind::Welcome, version, token, &content)));
    }

    fn me_as_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_id(self.swim.me(), &mut bytes).expect("a name and a run id are short");
        // Whoever reads it passes over what follows.
        bytes.extend(next::later_bytes(self.settings.versions));
        bytes
    }

    fn send(&mut self, to: SocketAddr, data: Vec<u8>) {
        match self.contacts.send(self.now, to, data.clone()) {
            Way::Open { version, token } => {
                let sealed = self.seal.seal(DatagramKind::Swim, version, token, &data);
                self.sends.push((to, sealed));
            }
            Way::Ask => self.hello(to),
            Way::Wait => {}
        }
    }

    /// Whatever follows from what the membership protocol wants and knows now.
    fn follow(&mut self) {
        for event in self.swim.take_events() {
            match event {
                SwimEvent::Down(id) => self.search.lost(self.now, id.at),
                SwimEvent::Alone | SwimEvent::Rejoined => self.search.begin(self.now),
                SwimEvent::Up(_) => {}
            }
        }
        for (to, data) in self.swim.take_sends() {
            self.send(to.at, data);
        }
        let me = [self.swim.me()].into_iter();
        let members = self.members.update(me.chain(self.swim.members()));
        self.events.extend(members.map(MeshEvent::Members));
        self.events.extend(self.swim.take_digests().into_iter().map(MeshEvent::Digest));
    }

    fn dropped(&mut self, from: SocketAddr, why: Dropped) {
        let DropCounts { oversized, cut, foreign, version, replayed, .. } = &mut self.drops;
        *match why {
            Dropped::Oversized => oversized,
            Dropped::Cut => cut,
            Dropped::Foreign => foreign,
            Dropped::Version { .. } => version,
            Dropped::Replayed => replayed,
        } += 1;
        // Whoever can speak with this node as well will do so once it has heard of it.
        if let Dropped::Version { theirs } = why
            && !self.settings.versions.meets(theirs)
        {
            let told = self.told_versions.get(&theirs);
            if told.is_none_or(|at| self.now.since(*at) >= TELL_AGAIN) {
                self.told_versions.insert(theirs, self.now);
                let ours = self.settings.versions;
                self.events.push(MeshEvent::OtherVersion { from, theirs, ours });
            }
        }
    }
}

/// What somebody else who has the key would send to this node.
#[cfg(feature = "fuzz")]
impl Mesh {
    pub(crate) fn sealed_by(&self, sender: Seed, kind: u8, content: &[u8]) -> Option<Vec<u8>> {
        let MeshSettings { fleet, keys, versions, .. } = &self.settings;
        let mut seal = Seal::new(fleet, keys.clone(), *versions, sender);
        let kind = DatagramKind::of(kind)?;
        Some(seal.seal(kind, versions.newest, self.seal.token(), content))
    }
}
