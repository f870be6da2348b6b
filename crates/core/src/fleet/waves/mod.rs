//! Profiles that go through a fleet in waves: [`WaveRecord`] says what is decided, this is who
//! decides, who is heard, and how contents come to those that lack them.
//!
//! - The master conducts a profile, or the first by name whose file has it. What it decides is in
//!   what it says; everybody keeps it and says it on, so that the next one goes on from there.
//! - Whoever lacks a content asks one that has it. A node gives a few at a time: they are large.
//! - A conductor that has not met a node of the record yet does not take it for lost at once.

mod deliveries;
mod view;

pub use view::{WaveAnswer, WaveNode, WaveProfile};

use super::{Fleet, FleetCommand, FleetOutcome, Number, PeerState, Shared, Term};
use crate::{
    clock::Mono,
    fleet::NodeFacts,
    name::Name,
    rollout::{
        FailedVersion, MemberPresence, ProfileDelivery, Version, WaveFacts, WaveFeed, WaveMember,
        WaveOffer, WaveRecord, WaveRecords, WaveReport, WaveStage, WaveView, conduct, is_settled,
    },
};
use deliveries::Deliveries;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// A conductor meets those that are there in this time.
const MEET: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Default)]
pub(super) struct Waves {
    report: Option<WaveReport>,
    /// What this node says.
    facts: Shared<WaveFacts>,
    /// Since when each record is as it is.
    since: BTreeMap<Name, (Number, Mono)>,
    /// When this node could first decide something.
    begun: Option<Mono>,
    /// Nodes that have taken part since this agent began, and those that have ended on purpose.
    met: BTreeSet<Name>,
    ended: BTreeSet<Name>,
    /// When what was tried last was asked for.
    tried: BTreeMap<Name, Mono>,
    deliveries: Deliveries,
    wake: Option<Mono>,
}

/// The nodes that take part, this one among them.
struct WaveRoster {
    me: Name,
    term: Term,
    nodes: BTreeMap<Name, (MemberPresence, Shared<WaveFacts>)>,
    /// Of the profiles that are in the file of this node.
    conductors: BTreeMap<Name, Name>,
}

impl Waves {
    pub(super) fn new(records: WaveRecords) -> Waves {
        let facts = Shared::new(WaveFacts { records, ..WaveFacts::default() });
        Waves { facts, ..Waves::default() }
    }

    pub(super) fn facts(&self) -> &Shared<WaveFacts> {
        &self.facts
    }

    pub(super) fn wake(&self) -> Option<Mono> {
        self.wake
    }

    pub(super) fn report_is(&mut self, report: Option<WaveReport>) {
        let (copies, rests) = match &report {
            Some(report) => (report.copies.clone(), report.rests),
            None => (BTreeMap::new(), false),
        };
        if self.facts.copies != copies || self.facts.rests != rests {
            let facts = self.facts.edit();
            (facts.copies, facts.rests) = (copies, rests);
        }
        self.report = report;
    }

    pub(super) fn joined(&mut self, node: &Name) {
        self.met.insert(node.clone());
        self.ended.remove(node);
    }

    pub(super) fn lost(&mut self, node: &Name, on_purpose: bool) {
        if on_purpose {
            self.ended.insert(node.clone());
        }
    }

    /// Whether a record is later than the one here.
    fn is_news(&self, profile: &Name, record: &WaveRecord) -> bool {
        self.facts.records.get(profile).is_none_or(|known| record.is_after(known))
    }

    fn go_on(&mut self, now: Mono, roster: &WaveRoster, may_decide: bool) {
        for (profile, record) in self.facts.records.iter() {
            let at_number = |(number, _): &(Number, Mono)| *number == record.number;
            if !self.since.get(profile).is_some_and(at_number) {
                self.since.insert(profile.clone(), (record.number.clone(), now));
            }
        }
        if !may_decide {
            return;
        }
        self.begun.get_or_insert(now);
        self.forget(roster);
        for (profile, _) in roster.conductors.iter().filter(|(_, node)| **node == roster.me) {
            self.conduct(now, roster, profile);
        }
    }

    /// Records of profiles that no file has any more.
    fn forget(&mut self, roster: &WaveRoster) {
        let gone = |profile: &Name| !roster.declares_any(profile);
        if self.report.is_some() && self.facts.records.keys().any(gone) {
            self.facts.edit().records.edit().retain(|profile, _| !gone(profile));
        }
        self.since.retain(|profile, _| self.facts.records.contains_key(profile));
        self.tried.retain(|profile, _| self.facts.records.contains_key(profile));
    }

    /// Decides about one profile, as long as there is something to decide.
    fn conduct(&mut self, now: Mono, roster: &WaveRoster, profile: &Name) {
        let Some(report) = &self.report else { return };
        let (plan, own) = (report.plan, report.copies.get(profile).cloned().unwrap_or_default());
        let offer = report.offers.get(profile).cloned();
        let asked = offer.as_ref().and_then(|it| it.asked);
        loop {
            let asks = self.asks(profile, offer.as_ref());
            let record = self.facts.records.get(profile);
            let until = self.begun.unwrap_or(now).after(MEET);
            if record.is_some_and(|it| self.awaits_somebody(roster, it)) && now < until {
                return self.wake_at(until);
            }
            let members = self.members(roster, profile, record);
            let since = self.since.get(profile).map_or(now, |(_, since)| *since);
            let number = next_number(record, &roster.term);
            let view = WaveView {
                now,
                conductor: &roster.me,
                number,
                members: &members,
                pause: plan.pause,
                since,
            };
            let by = (plan.size, &roster.term.master);
            let next = conduct(&view, record, offer.as_ref(), asks, own.applied.as_ref(), by);
            // What is asked for while it is under way is not asked for again when it has failed.
            let is_tried = record.zip(offer.as_ref()).is_some_and(|(record, offer)| {
                let is_open = !matches!(record.stage, WaveStage::Back(_));
                is_open && record.version.is_same_content(&offer.version)
            });
            if let (true, Some(asked)) = (is_tried, asked) {
                self.tried.insert(profile.clone(), asked);
            }
            let Some(next) = next else {
                let wake = record.and_then(|record| record.wake(&view)).filter(|at| *at > now);
                return wake.into_iter().for_each(|at| self.wake_at(at));
            };
            self.since.insert(profile.clone(), (next.number.clone(), now));
            self.facts.edit().records.edit().insert(profile.clone(), next);
        }
    }

    /// Somebody wants what is offered to be tried again, and it was not yet.
    fn asks(&self, profile: &Name, offer: Option<&WaveOffer>) -> bool {
        let asked = offer.and_then(|it| it.asked);
        asked.is_some_and(|at| self.tried.get(profile).is_none_or(|tried| *tried < at))
    }

    /// Nothing is going to follow from what is known here of a profile.
    fn is_settled(&self, profile: &Name, members: &BTreeMap<Name, WaveMember>) -> bool {
        let offer = self.report.as_ref().and_then(|it| it.offers.get(profile));
        let record = self.facts.records.get(profile);
        is_settled(members, record, offer, self.asks(profile, offer))
    }

    /// A node of the record was never met: it may be there, and only not have been heard yet.
    fn awaits_somebody(&self, roster: &WaveRoster, record: &WaveRecord) -> bool {
        let is_new = |node: &Name| {
            let known = self.met.contains(node) || self.ended.contains(node);
            !known && !roster.nodes.contains_key(node)
        };
        record.waves.iter().flatten().any(is_new)
    }

    /// Those whose file has the profile, and those of the record.
    fn members(
        &self,
        roster: &WaveRoster,
        profile: &Name,
        record: Option<&WaveRecord>,
    ) -> BTreeMap<Name, WaveMember> {
        let present = roster.nodes.iter().filter_map(|(node, (presence, facts))| {
            let copy = facts.copies.get(profile)?.clone();
            Some((node.clone(), WaveMember { presence: *presence, copy }))
        });
        let mut members: BTreeMap<Name, WaveMember> = present.collect();
        for node in record.iter().flat_map(|record| record.waves.iter().flatten()) {
            members.entry(node.clone()).or_insert_with(|| WaveMember {
                presence: match (roster.nodes.contains_key(node), self.ended.contains(node)) {
                    // Its file has the profile no more.
                    (true, _) => MemberPresence::LeftOut,
                    (false, true) => MemberPresence::Ended,
                    (false, false) => MemberPresence::Lost,
                },
                copy: Default::default(),
            });
        }
        members
    }

    fn wake_at(&mut self, at: Mono) {
        self.wake = self.wake.into_iter().chain([at]).min();
    }
}

impl WaveRoster {
    fn declares_any(&self, profile: &Name) -> bool {
        self.nodes.values().any(|(_, facts)| facts.copies.contains_key(profile))
    }
}

/// Above all that is known.
fn next_number(record: Option<&WaveRecord>, term: &Term) -> Number {
    match record {
        Some(record) if record.number.term >= *term => {
            let Number { term, counter } = &record.number;
            Number { term: term.clone(), counter: counter + 1 }
        }
        Some(_) | None => Number { term: term.clone(), counter: 1 },
    }
}

impl Fleet {
    /// Takes the records of another node that are later than those here, of profiles that somebody
    /// has in its file.
    pub(super) fn merge_waves(&mut self, facts: &NodeFacts) {
        if facts.waves.records.is(&self.waves.facts.records) {
            return;
        }
        for (profile, record) in facts.waves.records.iter() {
            if !self.waves.is_news(profile, record) {
                continue;
            }
            let declares = |waves: &WaveFacts| waves.copies.contains_key(profile);
            let others = || self.peers.running().any(|(_, facts)| declares(&facts.waves));
            if declares(&self.waves.facts) || others() {
                self.waves.facts.edit().records.edit().insert(profile.clone(), record.clone());
            }
        }
    }

    pub(super) fn go_on_in_waves(&mut self, now: Mono, out: &mut FleetOutcome) {
        self.waves.wake = None;
        if self.waves_rest() {
            return;
        }
        let may_decide = self.in_sync && !self.ending && self.is_followed(now);
        let Some(roster) = self.wave_roster() else { return };
        self.waves.go_on(now, &roster, may_decide);
        let wants = self.waves.report.as_ref().map(|it| &it.wants);
        let wake = self.waves.deliveries.go_on(now, &roster, wants, out);
        wake.into_iter().for_each(|at| self.waves.wake_at(at));
        // What is due and cannot be done waits for news.
        self.waves.wake = self.waves.wake.filter(|at| *at > now);
    }

    /// Another node lacks a content.
    pub(super) fn profile_wanted(&mut self, from: &Name, profile: Name, version: Version) {
        if self.peers.state(from) == PeerState::Running {
            self.waves.deliveries.wanted(from, profile, version);
        }
    }

    /// A content has come.
    pub(super) fn profile_arrived(
        &mut self,
        out: &mut FleetOutcome,
        from: &Name,
        delivery: ProfileDelivery,
    ) {
        let wanted = self.waves.report.as_ref().and_then(|it| it.wants.get(&delivery.profile));
        let is_wanted = wanted.is_some_and(|it| it.is_same_content(&delivery.version));
        if is_wanted && self.peers.state(from) == PeerState::Running {
            out.commands.push(FleetCommand::TakeProfile(delivery));
        }
    }

    /// Who asks the source of a profile that is in the file of this node.
    fn conductor(&self, profile: &Name) -> Option<&Name> {
        let (me, master) = (&self.me.name, &self.term.as_ref()?.master);
        let declares = |facts: &NodeFacts| facts.waves.copies.contains_key(profile);
        if master == me || self.peers.facts(master).is_some_and(|it| declares(it)) {
            return Some(master);
        }
        let stays = |facts: &NodeFacts| !facts.ending && !facts.stage.is_ending();
        let mut others = self.peers.running().filter(|(_, it)| declares(it) && stays(it));
        let first = others.next().map(|(node, _)| node).filter(|node| *node < me);
        Some(first.unwrap_or(me))
    }

    /// `None`: no master is followed.
    fn wave_roster(&self) -> Option<WaveRoster> {
        let waves = &self.waves.facts;
        let own = presence_of(self.ending, self.drained || self.hands_over, waves);
        let other = |(node, facts): (&Name, &Arc<NodeFacts>)| {
            let ends = facts.ending || facts.stage.is_ending();
            let presence = presence_of(ends, facts.drained || facts.hands_over, &facts.waves);
            (node.clone(), (presence, facts.waves.clone()))
        };
        let me = (self.me.name.clone(), (own, waves.clone()));
        let conductor = |profile: &Name| Some((profile.clone(), self.conductor(profile)?.clone()));
        Some(WaveRoster {
            me: self.me.name.clone(),
            term: self.term.clone()?,
            nodes: self.peers.running().map(other).chain([me]).collect(),
            conductors: waves.copies.keys().filter_map(conductor).collect(),
        })
    }

    /// Nothing is to be decided here, nor to be got or given.
    fn waves_rest(&self) -> bool {
        let Some(report) = &self.waves.report else { return true };
        let conducts = |profile: &Name| self.conductor(profile) == Some(&self.me.name);
        report.wants.is_empty()
            && self.waves.deliveries.is_empty()
            && !report.copies.keys().any(conducts)
    }

    /// What the fleet serves to this node in place of the sources of its profiles. Nothing as long
    /// as no master is followed.
    #[must_use]
    pub fn wave_feeds(&self) -> BTreeMap<Name, WaveFeed> {
        let waves = &self.waves.facts;
        if !self.in_sync || self.term.is_none() {
            return BTreeMap::new();
        }
        let feed = |profile: &Name| {
            let conductor = self.conductor(profile).cloned();
            let conducts = conductor.as_ref() == Some(&self.me.name);
            let feed = WaveFeed { conductor, conducts, ..WaveFeed::default() };
            match waves.records.get(profile) {
                Some(record) => record.feed(&self.me.name, feed),
                None => feed,
            }
        };
        waves.copies.keys().map(|profile| (profile.clone(), feed(profile))).collect()
    }
}

impl WaveRecord {
    fn feed(&self, node: &Name, feed: WaveFeed) -> WaveFeed {
        let serves = self.version_for(node);
        let (is_tried, is_stored, under_way) = match &self.stage {
            WaveStage::Storing => (false, true, true),
            WaveStage::Wave { .. } | WaveStage::Resting { .. } => {
                (serves == Some(&self.version), true, true)
            }
            WaveStage::Applied => (serves == Some(&self.version), true, false),
            WaveStage::Back(_) => (false, false, false),
        };
        let failed = match &self.stage {
            WaveStage::Back(failure) if !self.by_hand => {
                let (begun, version) = (self.begun.clone(), self.version.clone());
                Some(FailedVersion { begun, version, failure: failure.clone() })
            }
            WaveStage::Storing
            | WaveStage::Wave { .. }
            | WaveStage::Resting { .. }
            | WaveStage::Applied
            | WaveStage::Back(_) => None,
        };
        WaveFeed {
            serves: serves.cloned(),
            attempt: is_tried.then(|| self.begun.clone()),
            stores: is_stored.then(|| self.version.clone()),
            under_way,
            failed,
            ..feed
        }
    }
}

fn presence_of(ending: bool, leaves: bool, waves: &WaveFacts) -> MemberPresence {
    match (ending, leaves || waves.rests) {
        (true, _) => MemberPresence::Ended,
        (false, true) => MemberPresence::LeftOut,
        (false, false) => MemberPresence::Present,
    }
}
