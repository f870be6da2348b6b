//! The nodes that take part, in the order of their names, and by job what there is of it where.
//!
//! It is brought up to date before each decision: what a node says again costs a look at its address.

use crate::{
    fleet::{CopyState, JobCopy, NodeFacts},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[derive(Debug, Clone, Default)]
pub(in crate::fleet) struct Roster {
    nodes: Vec<(Name, Arc<NodeFacts>)>,
    /// By job: those that have more to say of it than that it rests there.
    places: BTreeMap<Name, BTreeSet<Name>>,
}

/// What has become of a roster.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::fleet) enum RosterChange {
    /// Copies of these jobs on these nodes are not what they were.
    Copies(Vec<(Name, Name)>),
    /// Other nodes take part, or on other machines.
    Nodes,
}

impl Roster {
    /// `me`: the node that decides, beside the others by name.
    pub(in crate::fleet) fn update<'a>(
        &mut self,
        me: (&'a Name, &'a Arc<NodeFacts>),
        others: impl Iterator<Item = (&'a Name, &'a Arc<NodeFacts>)> + Clone,
    ) -> RosterChange {
        let before = others.clone().take_while(|(node, _)| *node < me.0);
        let after = others.skip_while(|(node, _)| *node < me.0);
        let all = before.chain(std::iter::once(me)).chain(after);
        let mut changed = Vec::new();
        let mut known = self.nodes.iter_mut();
        for (node, facts) in all.clone() {
            match known.next() {
                Some((name, it)) if name == node && it.machine == facts.machine => {
                    if !Arc::ptr_eq(it, facts) {
                        let before = std::mem::replace(it, facts.clone());
                        difference(node, &before, facts, &mut changed);
                    }
                }
                Some(_) | None => return self.rebuild(all),
            }
        }
        if known.next().is_some() {
            return self.rebuild(all);
        }
        changed.iter().for_each(|(job, node)| self.look(job, node));
        RosterChange::Copies(changed)
    }

    fn rebuild<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a Name, &'a Arc<NodeFacts>)>,
    ) -> RosterChange {
        *self = Roster::new(all.map(|(node, facts)| (node.clone(), facts.clone())));
        RosterChange::Nodes
    }

    /// Of nodes in the order of their names.
    pub(in crate::fleet) fn new(nodes: impl Iterator<Item = (Name, Arc<NodeFacts>)>) -> Roster {
        let mut roster = Roster { nodes: nodes.collect(), places: BTreeMap::new() };
        for (node, facts) in &roster.nodes {
            for (job, _) in facts.jobs.iter().filter(|(_, copy)| is_notable(copy)) {
                roster.places.entry(job.clone()).or_default().insert(node.clone());
            }
        }
        roster
    }

    /// The copy of a job on a node may be another one.
    fn look(&mut self, job: &Name, node: &Name) {
        let notable = self.copy(job, node).is_some_and(is_notable);
        match (notable, self.places.get_mut(job)) {
            (true, Some(nodes)) => drop(nodes.insert(node.clone())),
            (true, None) => drop(self.places.insert(job.clone(), BTreeSet::from([node.clone()]))),
            (false, Some(nodes)) => {
                nodes.remove(node);
                if nodes.is_empty() {
                    self.places.remove(job);
                }
            }
            (false, None) => {}
        }
    }

    /// A node has another copy from now on.
    pub(super) fn set_copy(&mut self, job: &Name, node: &Name, edit: impl FnOnce(&mut JobCopy)) {
        let Some(at) = self.position(node) else { return };
        let jobs = Arc::make_mut(&mut self.nodes[at].1).jobs.edit();
        edit(jobs.entry(job.clone()).or_insert_with(JobCopy::none));
        self.look(job, node);
    }

    /// The place of a node among them.
    pub(super) fn position(&self, node: &Name) -> Option<usize> {
        self.nodes.binary_search_by(|(name, _)| name.cmp(node)).ok()
    }

    /// The node at a place.
    pub(super) fn at(&self, position: usize) -> Option<(&Name, &Arc<NodeFacts>)> {
        self.nodes.get(position).map(|(node, facts)| (node, facts))
    }

    pub(in crate::fleet) fn get(&self, node: &Name) -> Option<&Arc<NodeFacts>> {
        self.position(node).map(|at| &self.nodes[at].1)
    }

    pub(super) fn has(&self, node: &Name) -> bool {
        self.position(node).is_some()
    }

    pub(in crate::fleet) fn iter(&self) -> impl Iterator<Item = (&Name, &Arc<NodeFacts>)> {
        self.nodes.iter().map(|(node, facts)| (node, facts))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.nodes.iter().map(|(node, _)| node)
    }

    pub(in crate::fleet) fn values(&self) -> impl Iterator<Item = &Arc<NodeFacts>> {
        self.nodes.iter().map(|(_, facts)| facts)
    }

    pub(super) fn copy(&self, job: &Name, node: &Name) -> Option<&JobCopy> {
        self.get(node)?.jobs.get(job)
    }

    /// The copies of a job that are more than at rest, by node.
    pub(super) fn copies<'a>(
        &'a self,
        job: &'a Name,
    ) -> impl Iterator<Item = (&'a Name, &'a JobCopy)> {
        let nodes = self.places.get(job).into_iter().flatten();
        nodes.filter_map(move |node| Some((node, self.copy(job, node)?)))
    }

    /// Where a job runs, in a broad sense.
    pub(super) fn active<'a>(
        &'a self,
        job: &'a Name,
    ) -> impl Iterator<Item = (&'a Name, CopyState)> {
        let copies = self.copies(job).filter(|(_, copy)| copy.state.is_active());
        copies.map(|(node, copy)| (node, copy.state))
    }

    /// All jobs that there is something of, by name.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Name> {
        self.places.keys()
    }
}

/// It is more than a job at rest.
fn is_notable(copy: &JobCopy) -> bool {
    copy.state != CopyState::Stopped || copy.by_hand || copy.disabled
}

fn difference(node: &Name, before: &NodeFacts, now: &NodeFacts, changed: &mut Vec<(Name, Name)>) {
    if before.jobs.is(&now.jobs) {
        return;
    }
    let other = |(job, copy): &(&Name, &JobCopy)| before.jobs.get(*job) != Some(*copy);
    let gone = before.jobs.keys().filter(|job| !now.jobs.contains_key(*job));
    let jobs = now.jobs.iter().filter(other).map(|(job, _)| job).chain(gone);
    changed.extend(jobs.map(|job| (job.clone(), node.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Mono,
        fleet::{Catalogue, Fleet, FleetRules, Identity, Kept, RunId},
    };

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn nodes(names: &str) -> BTreeMap<Name, Arc<NodeFacts>> {
        let facts = |node: &str| {
            let me = Identity { name: name(node), run: RunId::new(node), machine: node.to_owned() };
            let (rules, known) = (FleetRules::default(), Arc::new(Catalogue::default()));
            let fleet = Fleet::new(me, rules, known, Kept::default(), Mono(1));
            Arc::new(fleet.facts(Mono(1), None))
        };
        names.split_whitespace().map(|node| (name(node), facts(node))).collect()
    }

    fn update(roster: &mut Roster, nodes: &BTreeMap<Name, Arc<NodeFacts>>) -> RosterChange {
        let (me, others) = (name("b"), nodes.iter().filter(|(node, _)| node.as_str() != "b"));
        roster.update((&me, &nodes[&me]), others)
    }

    /// Whatever changes in whichever order: it is what one is that is made at once.
    #[test]
    fn what_was_brought_up_to_date_is_what_is_made_anew() {
        let mut all = nodes("a b c d");
        let mut roster = Roster::default();
        assert_eq!(update(&mut roster, &all), RosterChange::Nodes);
        let states =
            [CopyState::Running, CopyState::Stopped, CopyState::Fatal, CopyState::Stopping];
        let mut number = 7_u64;
        let mut draw = |limit: usize| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(number >> 33).unwrap_or(0) % limit
        };
        for _ in 0..500 {
            let (node, job) = (name(["a", "b", "c", "d"][draw(4)]), name(["x", "y", "z"][draw(3)]));
            let jobs = Arc::make_mut(all.get_mut(&node).expect("a node")).jobs.edit();
            match draw(5) {
                0 => drop(jobs.remove(&job)),
                at => {
                    let copy = jobs.entry(job.clone()).or_insert_with(JobCopy::none);
                    (copy.state, copy.disabled) = (states[at - 1], draw(9) == 0);
                }
            }
            let changed = update(&mut roster, &all);
            let made = Roster::new(all.iter().map(|(node, it)| (node.clone(), it.clone())));
            assert_eq!(roster.places, made.places);
            assert!(
                changed == RosterChange::Copies(vec![])
                    || changed == RosterChange::Copies(vec![(job, node)])
            );
        }
        all.remove(&name("c"));
        assert_eq!(update(&mut roster, &all), RosterChange::Nodes);
        assert_eq!(roster.names().count(), 3);
    }
}
