//! Moves: what runs is stopped where it is and, once nothing of it is left, started elsewhere. That
//! is a stop and a start on purpose, in which arguments stay.

use super::{Afterwards, AskedBy, Desired, Master, MasterCtx, RequestAnswer};
use crate::name::Name;
use std::collections::BTreeSet;

impl Master {
    /// A user wants these to run on a node. Either all of them can, or nothing is done.
    pub(super) fn move_all(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        jobs: &BTreeSet<Name>,
        to: &Name,
    ) -> RequestAnswer {
        if !ctx.nodes.has(to) {
            return RequestAnswer::NoSuchNode;
        }
        let runs = |job: &&Name| ctx.active(job).any(|(_, state)| state.is_up());
        let running: Vec<Name> = jobs.iter().filter(runs).cloned().collect();
        if running.is_empty() {
            return RequestAnswer::NotRunning;
        }
        // Those of one app do not keep each other where they are.
        self.moves.extend(running.iter().map(|job| (job.clone(), Some(to.clone()))));
        if let Err(why) = self.may_start_on(ctx, &running, to) {
            running.iter().for_each(|job| drop(self.moves.remove(job)));
            return RequestAnswer::NotPlaced(why);
        }
        for job in &running {
            self.leave(ctx, job, |home| home != to);
        }
        RequestAnswer::Begun
    }

    /// Nothing is placed there any more, and what runs there goes where the rules say; or it may be
    /// placed there again.
    pub(super) fn drain(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        node: &Name,
        on: bool,
    ) -> RequestAnswer {
        let Some(facts) = ctx.nodes.get(node) else { return RequestAnswer::NoSuchNode };
        match facts.drained == on {
            true => drop(self.drains.remove(node)),
            false => drop(self.drains.insert(node.clone(), on)),
        }
        if !on {
            self.repair = true;
            return RequestAnswer::Begun;
        }
        self.empty(ctx, node)
    }

    /// What runs on a node that is no candidate goes elsewhere; what has no other home stays.
    pub(super) fn empty(&mut self, ctx: &mut MasterCtx<'_>, node: &Name) -> RequestAnswer {
        let Some(facts) = ctx.nodes.get(node) else { return RequestAnswer::NoSuchNode };
        let there = facts.jobs.iter().filter(|(_, copy)| copy.state.is_up());
        let there: Vec<Name> = there.map(|(job, _)| job.clone()).collect();
        self.moves.extend(there.iter().map(|job| (job.clone(), None)));
        let loads = self.load_count.without(&there);
        let has_home = |job: &&Name| {
            let known = loads.as_ref().zip(ctx.catalogue.jobs.get(*job));
            known.is_some_and(|(loads, it)| {
                self.choose_without(ctx, (loads, &there), job, it, None).is_ok()
            })
        };
        let (go, stay): (Vec<Name>, Vec<Name>) =
            there.iter().cloned().partition(|job| has_home(&job));
        stay.iter().for_each(|job| drop(self.moves.remove(job)));
        for job in &go {
            self.leave(ctx, job, |home| home == node);
        }
        match stay.is_empty() {
            true => RequestAnswer::Begun,
            false => RequestAnswer::Stays { jobs: stay },
        }
    }

    /// It is stopped on these of its nodes, and started once nothing of it is left.
    fn leave(&mut self, ctx: &mut MasterCtx<'_>, job: &Name, from: impl Fn(&Name) -> bool) {
        let homes: Vec<Name> =
            ctx.active(job).map(|(node, _)| node.clone()).filter(|node| from(node)).collect();
        if homes.is_empty() {
            self.moves.remove(job);
            return;
        }
        self.release(ctx, job);
        self.wish(ctx, job, Some(AskedBy::User), Desired::Run, None);
        homes.iter().for_each(|node| self.stop_there(ctx, job, node));
        self.then.insert(job.clone(), Afterwards::Start);
    }
}
