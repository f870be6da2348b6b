//! What is rolled out on the nodes of a fleet: each has a rollout of its own, with a source, a disk and
//! services, which does at once whatever takes no time.

use super::FleetWorld;
use crate::{
    fleet::{
        net::{Happening, Packet},
        sim_node::RolledOutNode,
    },
    rollout::{RolloutWorld, SECOND},
};
use mainstay_core::{
    clock::Mono,
    fleet::{FleetInput, Message, WaveProfile},
    name::Name,
    plan::RolloutPlan,
    rollout::{Content, ProfileDelivery, RolloutInput, RolloutRefusal, RolloutRequest, Version},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// How long a node may take to end.
const STOP_TIME: Duration = Duration::from_secs(8);

impl FleetWorld {
    /// These nodes roll something out, from now on.
    pub fn roll_out(&mut self, plan: &RolloutPlan, nodes: impl IntoIterator<Item = Name>) {
        for node in nodes {
            if let Some(it) = self.nodes.get_mut(&node) {
                it.rollout = Some(Box::new(RolledOutNode {
                    world: RolloutWorld::new(plan.clone()),
                    fed: BTreeMap::new(),
                    reported: None,
                    wake: None,
                }));
            }
            self.begin_rollout(&node, false);
        }
    }

    /// What is rolled out on a node, to look at it or to change what it meets.
    ///
    /// # Panics
    /// If nothing is.
    pub fn rollout_of(&mut self, node: &Name) -> &mut RolloutWorld {
        let it = self.nodes.get_mut(node).and_then(|it| it.rollout.as_deref_mut());
        &mut it.unwrap_or_else(|| panic!("nothing is rolled out on {node}")).world
    }

    /// All sources of a profile serve this from now on; those who watch them notice.
    pub fn serve(&mut self, profile: &Name, content: u8) {
        for node in self.scenario.nodes.clone() {
            let Some(it) = self.nodes.get_mut(&node).and_then(|it| it.rollout.as_deref_mut())
            else {
                continue;
            };
            it.world.sources.entry(profile.clone()).or_default().serves = Some(content);
            self.tell_rollout(&node, RolloutInput::Noticed { profile: profile.clone() });
        }
    }

    /// The sources of a profile do not answer any more.
    pub fn silence(&mut self, profile: &Name) {
        for rollout in self.nodes.values_mut().filter_map(|it| it.rollout.as_deref_mut()) {
            rollout.world.sources.entry(profile.clone()).or_default().serves = None;
        }
    }

    /// Somebody asks a node for something.
    ///
    /// # Errors
    /// It is not taken.
    pub fn ask_rollout(
        &mut self,
        node: &Name,
        request: RolloutRequest,
    ) -> Result<(), RolloutRefusal> {
        let now = self.now.0 + SECOND;
        let world = self.rollout_of(node);
        world.now = now;
        let answer = world.ask(request);
        self.roll_on(node);
        answer
    }

    /// How a node sees a profile in its fleet.
    #[must_use]
    pub fn wave_profile(&self, node: &Name, profile: &Name) -> Option<WaveProfile> {
        self.nodes.get(node)?.running.as_ref()?.fleet.wave_profile(profile)
    }

    /// The nodes that are on and have applied this content of a profile.
    #[must_use]
    pub fn having(&self, profile: &Name, content: u8) -> BTreeSet<Name> {
        let has = |(_, node): &(&Name, &crate::fleet::sim_node::SimNode)| {
            let kept = node.rollout.as_ref().and_then(|it| it.world.kept.profiles.get(profile));
            let applied = kept.and_then(|it| it.applied.as_ref());
            node.running.is_some() && applied.is_some_and(|it| it.digest.0[0] == content)
        };
        self.nodes.iter().filter(has).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn begin_rollout(&mut self, node: &Name, takes_over: bool) {
        let now = self.now.0 + SECOND;
        let Some(it) = self.nodes.get_mut(node).filter(|it| it.running.is_some()) else { return };
        let Some(rollout) = it.rollout.as_deref_mut() else { return };
        (rollout.fed, rollout.reported, rollout.wake) = (BTreeMap::new(), None, None);
        rollout.world.now = now;
        rollout.world.start(takes_over);
        self.roll_on(node);
    }

    pub(super) fn kill_rollout(&mut self, node: &Name) {
        if let Some(it) = self.nodes.get_mut(node).and_then(|it| it.rollout.as_deref_mut()) {
            it.world.kill();
        }
    }

    pub(super) fn end_rollout(&mut self, node: &Name) {
        let by = Mono(self.now.0 + SECOND).after(STOP_TIME);
        self.tell_rollout(node, RolloutInput::Ending { by });
    }

    pub(super) fn rollout_is_due(&mut self, node: &Name) {
        if let Some(it) = self.nodes.get_mut(node).and_then(|it| it.rollout.as_deref_mut()) {
            it.wake = None;
        }
        self.tell_rollout(node, RolloutInput::Tick);
    }

    fn tell_rollout(&mut self, node: &Name, input: RolloutInput) {
        let now = self.now.0 + SECOND;
        if let Some(it) = self.nodes.get_mut(node).and_then(|it| it.rollout.as_deref_mut()) {
            it.world.now = now;
            it.world.step(input);
        }
        self.roll_on(node);
    }

    /// The rollout of a node does what it can, and both machines hear what is news to them.
    pub(super) fn roll_on(&mut self, node: &Name) {
        let now = self.now.0 + SECOND;
        let Some(it) = self.nodes.get_mut(node) else { return };
        let (Some(running), Some(rollout)) = (&it.running, it.rollout.as_deref_mut()) else {
            return;
        };
        let (run, fed) = (running.run, running.fleet.wave_feeds());
        rollout.world.now = now;
        if rollout.fed != fed {
            rollout.fed = fed.clone();
            rollout.world.step(RolloutInput::Fed(fed));
        }
        rollout.world.run();
        let wake = rollout.world.wakes_at();
        if let Some(at) = wake.filter(|at| rollout.wake.is_none_or(|known| *at < known)) {
            rollout.wake = Some(at);
            let at = Mono(at.max(now + 1_000_000) - SECOND);
            self.net.at(at, Happening::Rollout { node: node.clone(), run });
        }
        let report = rollout.world.machine.as_ref().and_then(|it| it.wave_report());
        if rollout.reported != report {
            rollout.reported.clone_from(&report);
            self.tell(node, FleetInput::Waves(report));
        }
    }

    pub(super) fn give_profile(&mut self, node: &Name, to: &Name, profile: Name, version: Version) {
        let content = Content {
            content_type: "text/plain".to_owned(),
            body: vec![version.digest.0[0]],
            secrets: BTreeMap::new(),
        };
        let message = Message::Profile(ProfileDelivery::new(profile, version, content));
        self.net.send(self.now, &mut self.dice, node, to, &Packet::Sent(message));
    }

    pub(super) fn take_profile(&mut self, node: &Name, delivery: &ProfileDelivery) {
        let (profile, version) = (delivery.profile.clone(), delivery.version.clone());
        let content = Arc::new(delivery.content());
        self.tell_rollout(node, RolloutInput::Arrived { profile, version, content });
    }
}
