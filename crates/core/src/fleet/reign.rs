//! How a reign begins, and how a master decides.
//!
//! A node that becomes master does nothing before all that take part follow it, or have had the time
//! to: in that time a second one that has claimed at the same moment yields. Until it begins it says
//! no work, and whoever follows it says the last that it knows: so it goes on where the one before
//! was, also if it has joined late or its own agent was replaced.

use super::{
    Catalogue, EngineCommand, Fleet, FleetOutcome, FleetRequest, Master, Message, NodeFacts,
    PeerState, RESUME, RequestId, RunId, Work, master::MasterCtx,
};
use crate::{clock::Mono, name::Name};
use std::{cmp::Reverse, sync::Arc, time::Duration};

/// All that take part follow a new master in this time.
const GATHER: Duration = Duration::from_secs(1);
/// Those that the others take part with are met in this time, or given up by them.
const MEET: Duration = Duration::from_secs(3);
/// Of two masters the one that is to yield does so in this time.
const YIELD: Duration = Duration::from_secs(2);

impl Fleet {
    /// Until then this agent meets whoever is there already: they may have a master, and what this
    /// node would start. The one that it has met first may be gone the next moment, and all that it
    /// has told of the others with it.
    pub(super) fn meets_until(&self, now: Mono) -> Option<Mono> {
        let mut expected = self.rules.nodes.iter().filter(|node| **node != self.me.name);
        let is_met = |node: &Name| match self.peers.state(node) {
            PeerState::Running | PeerState::Isolated => true,
            PeerState::Unknown | PeerState::Checking | PeerState::Silent => false,
        };
        if self.met_all || (!self.rules.nodes.is_empty() && expected.all(is_met)) {
            return None;
        }
        let until = self.began.after(if self.is_meeting() { MEET } else { RESUME });
        Some(until).filter(|until| now < *until)
    }

    /// Whether this node has become master and does not act yet.
    pub(super) fn gathers(&mut self, now: Mono) -> bool {
        let Some(since) = self.gathers_since else { return false };
        let all = self.peers.running().all(|(_, facts)| facts.term == self.term);
        let over = now >= since.after(self.gather_time());
        if !(over || all && self.knows_all()) {
            return true;
        }
        self.gathers_since = None;
        // By now it has heard what the others know.
        let begin = |term| Master::new(term, self.last_work.as_deref(), now);
        self.master = self.term.clone().map(begin);
        false
    }

    pub(super) fn gathers_until(&self) -> Option<Mono> {
        self.gathers_since.map(|since| since.after(self.gather_time()))
    }

    /// An agent that takes over may lead before it has met all that are there, and any node before it
    /// has met one that has just come: of those it knows nothing yet, and they are not lost. The
    /// master before may have given them something to do.
    fn gather_time(&self) -> Duration {
        if self.has_met_all() && !self.is_meeting() { GATHER } else { MEET }
    }

    /// It has met whoever it can reach, and whoever the others take part with.
    fn knows_all(&mut self) -> bool {
        self.look_for_unmet();
        self.has_met_all() && self.unmet.is_none() && !self.is_meeting()
    }

    /// Somebody whom it can reach has not answered yet.
    pub(super) fn is_meeting(&self) -> bool {
        self.peers.iter().any(|(_, state)| state == PeerState::Checking)
    }

    /// Another master has had its time to yield by then.
    /// It is master and acts, or another node is master.
    pub(super) fn is_followed(&self, now: Mono) -> bool {
        self.term.is_some() && self.gathers_since.is_none() && self.yields_until(now).is_none()
    }

    pub(super) fn yields_until(&self, now: Mono) -> Option<Mono> {
        let until = self.rival_since?.after(YIELD);
        Some(until).filter(|until| self.master.is_some() && now < *until)
    }

    /// What a master has in hand; or what the one before had, for a master that says nothing of it.
    pub(super) fn work_to_say(&mut self, now: Mono) -> Option<Arc<Work>> {
        match &mut self.master {
            Some(_) if self.gathers_since.is_some() => None,
            Some(master) => Some(master.work(now)),
            None => {
                let facts = self.peers.facts(&self.term.as_ref()?.master)?;
                self.last_work.clone().filter(|_| facts.work.is_none())
            }
        }
    }

    /// The end of a fleet is over with the last of the runs that were to end: whoever came too late
    /// for it does not hand it to the next fleet.
    pub(super) fn forget_end(&mut self) {
        let Some(work) = self.last_work.as_ref().filter(|work| work.stage.is_ending()) else {
            return;
        };
        let is_there = |(node, run): (&Name, &RunId)| match *node == self.me.name {
            true => *run == self.me.run,
            false => self.peers.facts(node).is_some_and(|facts| facts.run == *run),
        };
        // A master of an earlier version does not name them.
        if self.master.is_none() && !work.ends.is_empty() && !work.ends.iter().any(is_there) {
            self.last_work = None;
        }
    }

    /// After a cut: neither master does anything before nobody follows the other any more, or it has
    /// had its time to yield.
    fn awaits_rival(&mut self, now: Mono) -> bool {
        let another = |(_, facts): (&Name, &Arc<NodeFacts>)| {
            facts.term.as_ref().is_some_and(|term| term.master != self.me.name)
        };
        if !self.peers.running().any(another) {
            self.rival_since = None;
            return false;
        }
        now.since(*self.rival_since.get_or_insert(now)) < YIELD
    }

    pub(super) fn lead(&mut self, now: Mono, out: &mut FleetOutcome) {
        if self.master.is_none() || self.awaits_rival(now) || self.gathers(now) {
            return;
        }
        let Some(mut master) = self.master.take() else { return };
        let own = Arc::new(self.facts(now, None));
        let change = self.roster.update((&self.me.name, &own), self.peers.running());
        let catalogues = self.peers.running().map(|(_, facts)| &facts.catalogue);
        if self.known.update(&self.catalogue, catalogues) {
            master.count_anew();
        }
        let requests = self.open_requests(now);
        let mut ctx = MasterCtx {
            now,
            me: &self.me.name,
            rules: &self.rules,
            catalogue: &self.known,
            nodes: &self.roster,
            age: &|node| self.peers.age(node, now),
            wishes: &mut self.wishes,
            sends: Vec::new(),
            events: Vec::new(),
        };
        master.count(&ctx, &change);
        for (id, request) in &requests {
            master.take_request(&mut ctx, id, request);
        }
        let asks = |id: &RequestId| {
            let facts = self.roster.get(&id.node);
            facts.is_some_and(|it| it.run == id.run && it.requests.contains_key(id))
        };
        master.forget_answers(asks);
        master.go_on(&mut ctx);
        let MasterCtx { sends, events, .. } = ctx;
        out.events.extend(events);
        self.stage = master.stage();
        self.last_work = Some(master.work(now));
        self.master = Some(master);
        // Before anything of it is done.
        self.say(now, out);
        for (to, message) in sends {
            match (to == self.me.name, message) {
                (true, Message::Order(order)) => self.ordered(out, &to, &order),
                // A master has orders alone.
                (true, Message::WantProfile { .. } | Message::Profile(_)) => {}
                (false, message) => out.engine.push(EngineCommand::Send { to, message }),
            }
        }
    }

    /// What users have asked for, in the order of asking: each node tells by its own clock how long
    /// ago that was.
    fn open_requests(&self, now: Mono) -> Vec<(RequestId, FleetRequest)> {
        let of_node = |(node, facts): (&Name, &Arc<NodeFacts>)| {
            let said = self.peers.age(node, now);
            let asked = |(id, request): (&RequestId, &FleetRequest)| {
                (Reverse(id.age(facts.now) + said), (id.clone(), request.clone()))
            };
            facts.requests.iter().map(asked).collect::<Vec<_>>()
        };
        let mut open: Vec<_> = self.roster.iter().flat_map(of_node).collect();
        open.sort_by(|(one, (id, _)), (other, (other_id, _))| (one, id).cmp(&(other, other_id)));
        open.into_iter().map(|(_, request)| request).collect()
    }

    /// The rules of this node hold, for jobs that only others know theirs.
    pub(super) fn catalogue_of_all(&self) -> Arc<Catalogue> {
        let others = self.peers.running().map(|(_, facts)| &facts.catalogue);
        Catalogue::of_all(&self.catalogue, others)
    }
}
