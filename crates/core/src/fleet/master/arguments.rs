//! Arguments stay with their job: what runs has those that are wanted for it.
//!
//! A copy may lack them after a cut: they were given where it could not be reached, or by a master that
//! had not been heard of where it was placed. Of two copies those of the one that stays are wanted;
//! one that is alone is started again with those that are. Of one whose arguments nobody knows, because
//! its node has lost them with its journal, neither is so: it has them, as far as anybody can tell.

use super::{Afterwards, AskedBy, Desired, Master, MasterCtx};
use crate::{fleet::JobWish, name::Name};

impl Master {
    /// Of two copies the arguments of the one that stays.
    pub(super) fn keep_args(&mut self, ctx: &mut MasterCtx<'_>, job: &Name, node: &Name) {
        let copy = ctx.nodes.get(node).and_then(|it| it.jobs.get(job)).filter(|it| !it.args_lost);
        let args = copy.map(|it| it.args.clone());
        let differs = ctx.wishes.of(job).is_some_and(|it| Some(&it.args) != args.as_ref());
        if let (Some(args), true) = (args, differs) {
            self.wish(ctx, job, Some(AskedBy::Rule), Desired::Run, Some(args));
        }
    }

    /// What runs with other arguments than those that are wanted is started again, where it is. What
    /// could not start there any more is left as it is, and so is what somebody has started by hand.
    pub(super) fn give_args(&mut self, ctx: &MasterCtx<'_>) {
        let lacks = |(job, wish): (&Name, &JobWish)| {
            if wish.desired != Desired::Run || wish.args_by().is_none() {
                return None;
            }
            let mut copies = ctx.nodes.copies(job).filter(|(_, copy)| copy.state.is_active());
            let (Some((node, copy)), None) = (copies.next(), copies.next()) else { return None };
            let differs = copy.args != wish.args && !copy.args_lost;
            let lacks = copy.state.is_up() && !copy.by_hand && differs;
            (lacks && self.may_start_on(ctx, std::slice::from_ref(job), node).is_ok())
                .then(|| (job.clone(), node.clone()))
        };
        let lacking: Vec<(Name, Name)> = ctx.wishes.iter().filter_map(lacks).collect();
        for (job, node) in lacking {
            self.stop_there(ctx, &job, &node);
            self.then.insert(job.clone(), Afterwards::Start);
            self.moves.insert(job, Some(node));
        }
    }
}
