//! Contents on their way between nodes: what this one has asked for, and what it gives.

use super::WaveRoster;
use crate::{
    clock::Mono,
    fleet::{EngineCommand, FleetCommand, FleetOutcome, Message},
    name::Name,
    rollout::{ProfileCopy, Version},
};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Somebody else is asked after that, and one that does not confirm is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many are given at a time.
const AT_A_TIME: usize = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct Deliveries {
    asked: BTreeMap<Name, AskedProfile>,
    wanted: VecDeque<WantedProfile>,
    given: Vec<(WantedProfile, Mono)>,
}

/// A content that this node has asked another one for.
#[derive(Debug, Clone)]
struct AskedProfile {
    version: Version,
    at: Mono,
    times: usize,
}

/// A content that another node has asked this one for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WantedProfile {
    to: Name,
    profile: Name,
    version: Version,
}

impl Deliveries {
    pub(super) fn wanted(&mut self, to: &Name, profile: Name, version: Version) {
        let wanted = WantedProfile { to: to.clone(), profile, version };
        let is_known = self.given.iter().any(|(it, _)| *it == wanted);
        // Of one profile a node needs one version at a time.
        self.wanted.retain(|it| (&it.to, &it.profile) != (&wanted.to, &wanted.profile));
        if !is_known {
            self.wanted.push_back(wanted);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.wanted.is_empty() && self.given.is_empty()
    }

    /// Asks for what is lacking and gives what is wanted; when it is to be looked at again.
    pub(super) fn go_on(
        &mut self,
        now: Mono,
        roster: &WaveRoster,
        wants: Option<&BTreeMap<Name, Version>>,
        out: &mut FleetOutcome,
    ) -> Option<Mono> {
        let asks_again = self.ask(now, roster, wants, out);
        self.given.retain(|(it, at)| now < at.after(PATIENCE) && !it.is_there(roster));
        self.wanted.retain(|it| roster.nodes.contains_key(&it.to) && !it.is_there(roster));
        while self.given.len() < AT_A_TIME
            && let Some(next) = self.wanted.pop_front()
        {
            let WantedProfile { to, profile, version } = next.clone();
            out.commands.push(FleetCommand::GiveProfile { to, profile, version });
            self.given.push((next, now));
        }
        let gives_on = self.given.iter().map(|(_, at)| at.after(PATIENCE)).min();
        gives_on.filter(|_| !self.wanted.is_empty()).into_iter().chain(asks_again).min()
    }

    fn ask(
        &mut self,
        now: Mono,
        roster: &WaveRoster,
        wants: Option<&BTreeMap<Name, Version>>,
        out: &mut FleetOutcome,
    ) -> Option<Mono> {
        let none = BTreeMap::new();
        let wants = wants.unwrap_or(&none);
        let is_wanted = |profile: &Name, it: &AskedProfile| {
            wants.get(profile).is_some_and(|wanted| wanted.is_same_content(&it.version))
        };
        self.asked.retain(|profile, it| is_wanted(profile, it));
        for (profile, version) in wants {
            let before = self.asked.get(profile);
            if before.is_some_and(|it| now < it.at.after(PATIENCE)) {
                continue;
            }
            let times = before.map_or(0, |it| it.times + 1);
            let Some(to) = holder(roster, profile, version, times) else { continue };
            let (profile, version) = (profile.clone(), version.clone());
            let asked = AskedProfile { version: version.clone(), at: now, times };
            self.asked.insert(profile.clone(), asked);
            let message = Message::WantProfile { profile, version };
            out.engine.push(EngineCommand::Send { to, message });
        }
        self.asked.values().map(|it| it.at.after(PATIENCE)).filter(|at| *at > now).min()
    }
}

impl WantedProfile {
    fn is_there(&self, roster: &WaveRoster) -> bool {
        let copy = roster.nodes.get(&self.to).and_then(|(_, it)| it.copies.get(&self.profile));
        copy.is_some_and(|copy| copy.has(&self.version))
    }
}

impl ProfileCopy {
    /// The content is on the disk there, as far as that says.
    fn has(&self, version: &Version) -> bool {
        self.applied.iter().chain(&self.retrieved).any(|it| it.is_same_content(version))
    }
}

/// Somebody else who has it, another one each time; else its conductor may.
fn holder(roster: &WaveRoster, profile: &Name, version: &Version, times: usize) -> Option<Name> {
    let others = roster.nodes.iter().filter(|(node, _)| **node != roster.me);
    let has =
        |facts: &super::WaveFacts| facts.copies.get(profile).is_some_and(|it| it.has(version));
    let holders: Vec<&Name> =
        others.filter(|(_, (_, facts))| has(facts)).map(|(node, _)| node).collect();
    // Not all of them the same one.
    let first: usize = roster.me.as_str().bytes().map(usize::from).sum();
    match holders.is_empty() {
        true => roster.conductors.get(profile).filter(|it| **it != roster.me).cloned(),
        false => Some(holders[(first + times) % holders.len()].clone()),
    }
}
