//! The half of the peers' exchange that knows no socket: who is called, what is said to whom, what
//! is taken.
//!
//! ```text
//!  members ─► the smaller name calls ─► Up ─► own facts at once, then whenever they change
//!  a digest that differs ─► pull                 orders after the facts that explain them
//!  facts ─► Said, as soon as their node is a member ─► Leadership ─► Leader
//! ```
//!
//! A pair of nodes has one connection. Facts are all that a node has to say: of those that wait to
//! be sent only the last counts.

use super::{
    frame::{FactsText, PeerKey, Said},
    leadership::Leadership,
};
use crate::mesh::{Digest, Reached};
use mainstay_core::{
    clock::Mono,
    fleet::{EngineCommand, EngineEvent, Message, NodeFacts, RunId, Term},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

/// The first time to wait before a call is tried again, which then doubles.
const CALL_AGAIN: Duration = Duration::from_millis(50);
const CALL_AGAIN_AT_MOST: Duration = Duration::from_secs(1);
/// A pull that nothing came of is tried again.
const PULL_AGAIN: Duration = Duration::from_secs(2);

/// One connection, numbered by whoever holds it.
pub(crate) type ConnectionId = u64;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PeerAction {
    Call {
        peer: PeerKey,
        at: SocketAddr,
    },
    HangUp(ConnectionId),
    /// In place of facts that still wait.
    PushFacts(ConnectionId),
    Pull(ConnectionId),
    Send(ConnectionId, Message),
    Tell(EngineEvent),
}

#[derive(Debug)]
enum Line {
    /// Not before then.
    Idle {
        call_at: Mono,
        wait: Duration,
    },
    Calling {
        wait: Duration,
    },
    Up {
        connection: ConnectionId,
        pulled: Option<Mono>,
    },
}

/// What another node has said last.
#[derive(Debug, Clone)]
struct Heard {
    facts: Arc<NodeFacts>,
    hash: u64,
}

#[derive(Debug)]
pub(crate) struct Exchange {
    me: PeerKey,
    tick: Duration,
    members: Vec<Reached>,
    lines: BTreeMap<PeerKey, Line>,
    heard: BTreeMap<PeerKey, Heard>,
    said: Option<FactsText>,
    leadership: Leadership,
    say_again: Mono,
    actions: Vec<PeerAction>,
}

impl Exchange {
    pub(crate) fn new(
        me: PeerKey,
        tick: Duration,
        core: BTreeSet<Name>,
        highest: Option<Term>,
    ) -> Exchange {
        Exchange {
            leadership: Leadership::new(me.node.clone(), core, highest),
            me,
            tick,
            members: Vec::new(),
            lines: BTreeMap::new(),
            heard: BTreeMap::new(),
            said: None,
            say_again: Mono(0),
            actions: Vec::new(),
        }
    }

    pub(crate) fn take_actions(&mut self) -> Vec<PeerAction> {
        std::mem::take(&mut self.actions)
    }

    pub(crate) fn set_core(&mut self, core: BTreeSet<Name>) {
        let event = self.leadership.set_core(core);
        self.tell(event);
    }

    /// The mesh reaches these.
    pub(crate) fn members_are(&mut self, now: Mono, members: Vec<Reached>) {
        let before = std::mem::replace(&mut self.members, members);
        let event = EngineEvent::Members(self.members.iter().map(|it| it.member.clone()).collect());
        self.tell(Some(event));
        let is_member = |peer: &PeerKey| self.members.iter().any(|it| is_run(it, peer));
        let gone: Vec<PeerKey> = self.lines.keys().filter(|it| !is_member(it)).cloned().collect();
        self.heard.retain(|peer, _| is_member(peer));
        for peer in gone {
            if let Some(Line::Up { connection, .. }) = self.lines.remove(&peer) {
                self.actions.push(PeerAction::HangUp(connection));
            }
        }
        let members = &self.members;
        self.leadership.retain(|node| members.iter().any(|it| it.member.node == *node));
        let peers: Vec<PeerKey> = self.members.iter().map(key).collect();
        for peer in peers {
            if self.me.node < peer.node && !self.lines.contains_key(&peer) {
                let line = Line::Idle { call_at: now, wait: CALL_AGAIN };
                self.lines.insert(peer.clone(), line);
            }
            if !before.iter().any(|it| is_run(it, &peer)) {
                self.say_heard(&peer);
            }
        }
        self.pass(now);
    }

    /// Another node has these facts now, as others say.
    pub(crate) fn digest(&mut self, now: Mono, digest: &Digest) {
        let peer = PeerKey { node: digest.node.clone(), run: digest.run.clone() };
        let known = self.heard.get(&peer).map(|it| (it.facts.version, it.hash));
        let is_new = known.is_none_or(|(version, hash)| {
            version < digest.version || (version == digest.version && hash != digest.hash)
        });
        if let Some(Line::Up { connection, pulled }) = self.lines.get_mut(&peer)
            && is_new
            && pulled.is_none_or(|at| now.since(at) >= PULL_AGAIN)
        {
            *pulled = Some(now);
            self.actions.push(PeerAction::Pull(*connection));
        }
    }

    /// A call was answered, or somebody has called.
    pub(crate) fn connected(&mut self, connection: ConnectionId, peer: PeerKey) {
        let line = Line::Up { connection, pulled: None };
        if let Some(Line::Up { connection: before, .. }) = self.lines.insert(peer, line) {
            self.actions.push(PeerAction::HangUp(before));
        }
        if self.said.is_some() {
            self.actions.push(PeerAction::PushFacts(connection));
        }
    }

    /// Nobody has answered.
    pub(crate) fn call_failed(&mut self, now: Mono, peer: &PeerKey) {
        if let Some(line @ Line::Calling { .. }) = self.lines.get_mut(peer) {
            let Line::Calling { wait } = *line else { return };
            let next = (wait * 2).min(CALL_AGAIN_AT_MOST);
            *line = Line::Idle { call_at: now.after(wait), wait: next };
        }
    }

    pub(crate) fn closed(&mut self, now: Mono, connection: ConnectionId) {
        let Some(peer) = self.peer_of(connection) else { return };
        self.lines.remove(&peer);
        // Facts of a run that is no member are kept with its connection alone.
        if !self.members.iter().any(|it| is_run(it, &peer)) {
            self.heard.remove(&peer);
        } else if self.me.node < peer.node {
            let line = Line::Idle { call_at: now, wait: CALL_AGAIN };
            self.lines.insert(peer, line);
        }
    }

    pub(crate) fn received(&mut self, connection: ConnectionId, said: Said) {
        let Some(peer) = self.peer_of(connection) else { return };
        match said {
            Said::Facts { facts, hash } => self.take_facts(connection, &peer, facts, hash),
            Said::Pull => self.actions.push(PeerAction::PushFacts(connection)),
            Said::Sent(message) => {
                if self.is_accepted(&peer) {
                    self.tell(Some(EngineEvent::Sent { from: peer.node, message }));
                }
            }
            Said::Hello(_) | Said::Unknown | Said::NotUnderstood(_) => {}
        }
    }

    fn take_facts(
        &mut self,
        connection: ConnectionId,
        peer: &PeerKey,
        facts: Arc<NodeFacts>,
        hash: u64,
    ) {
        if facts.run != peer.run {
            self.actions.push(PeerAction::HangUp(connection));
            return;
        }
        if let Some(Line::Up { pulled, .. }) = self.lines.get_mut(peer) {
            *pulled = None;
        }
        self.heard.insert(peer.clone(), Heard { facts, hash });
        self.say_heard(peer);
    }

    /// What core wants; facts are given as they go over, too.
    pub(crate) fn command(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::Campaign { among, .. } => {
                let event = self.leadership.campaign(among);
                self.tell(event);
            }
            EngineCommand::Say(_) => {}
            EngineCommand::Send { to, message } if to == self.me.node => {
                self.tell(Some(EngineEvent::Sent { from: to, message }));
            }
            EngineCommand::Send { to, message } => {
                let run = self.members.iter().find(|it| it.member.node == to).map(key);
                if let Some(Line::Up { connection, .. }) = run.and_then(|it| self.lines.get(&it)) {
                    self.actions.push(PeerAction::Send(*connection, message));
                }
            }
        }
    }

    /// This node says these facts from now on.
    pub(crate) fn say(&mut self, facts: FactsText) {
        self.said = Some(facts);
        let up = self.lines.values().filter_map(|line| match line {
            Line::Up { connection, .. } => Some(*connection),
            Line::Idle { .. } | Line::Calling { .. } => None,
        });
        self.actions.extend(up.map(PeerAction::PushFacts));
    }

    pub(crate) fn said(&self) -> Option<&FactsText> {
        self.said.as_ref()
    }

    /// Time has passed: those are called that are to be.
    pub(crate) fn pass(&mut self, now: Mono) {
        for (peer, line) in &mut self.lines {
            let Line::Idle { call_at, wait } = *line else { continue };
            let at = self.members.iter().find(|it| is_run(it, peer)).map(|it| it.at);
            if let Some(at) = at.filter(|_| call_at <= now) {
                *line = Line::Calling { wait };
                self.actions.push(PeerAction::Call { peer: peer.clone(), at });
            }
        }
        if now >= self.say_again {
            self.say_again = now.after(self.tick);
            let aside = |peer: &&PeerKey| !self.leadership.is_among(&peer.node);
            let aside: Vec<PeerKey> = self.heard.keys().filter(aside).cloned().collect();
            aside.iter().for_each(|peer| self.say_heard(peer));
        }
    }

    /// When something is to be done though nothing has come.
    pub(crate) fn next_due(&self) -> Mono {
        let calls = self.lines.values().filter_map(|line| match line {
            Line::Idle { call_at, .. } => Some(*call_at),
            Line::Calling { .. } | Line::Up { .. } => None,
        });
        calls.chain([self.say_again]).min().unwrap_or(self.say_again)
    }

    /// Says what a member has said last.
    fn say_heard(&mut self, peer: &PeerKey) {
        let is_member = self.members.iter().any(|it| is_run(it, peer));
        let Some(heard) = self.heard.get(peer).filter(|_| is_member) else { return };
        let (node, facts) = (peer.node.clone(), heard.facts.clone());
        let event = self.is_accepted(peer).then(|| self.leadership.claimed(&node, &facts));
        self.tell(Some(EngineEvent::Said { node, facts }));
        self.tell(event.flatten());
    }

    /// Of one name the earliest run counts.
    fn is_accepted(&self, peer: &PeerKey) -> bool {
        let first = self.members.iter().find(|it| it.member.node == peer.node);
        first.is_some_and(|it| it.member.run == peer.run)
    }

    fn peer_of(&self, connection: ConnectionId) -> Option<PeerKey> {
        let of = |line: &Line| matches!(line, Line::Up { connection: it, .. } if *it == connection);
        self.lines.iter().find(|(_, line)| of(line)).map(|(peer, _)| peer.clone())
    }

    fn tell(&mut self, event: Option<EngineEvent>) {
        self.actions.extend(event.map(PeerAction::Tell));
    }
}

fn key(it: &Reached) -> PeerKey {
    PeerKey { node: it.member.node.clone(), run: it.member.run.clone() }
}

fn is_run(it: &Reached, peer: &PeerKey) -> bool {
    let (node, run): (&Name, &RunId) = (&it.member.node, &it.member.run);
    *node == peer.node && *run == peer.run
}
