//! The starter: where a job that is to start goes, and why it goes nowhere.

use super::{AskedBy, Desired, JobStanding, Master, MasterCtx, OrderKind};
use crate::{
    fleet::{
        Afterwards, FleetEvent, JobRules, NotPlaced, Strategy,
        placement::{Loads, Seat},
    },
    name::Name,
    plan::Distribution,
};
use std::collections::BTreeSet;

impl Master {
    /// A job is to run, somewhere. One that runs already, or is about to, is left alone.
    pub(super) fn start(
        &mut self,
        ctx: &mut MasterCtx<'_>,
        job: &Name,
        fails_over: bool,
        asked: Option<AskedBy>,
        args: Option<Vec<String>>,
    ) {
        let Some(rules) = ctx.catalogue.jobs.get(job) else { return };
        let wish = ctx.wishes.of(job);
        let stays_down = wish.is_some_and(|it| match it.desired {
            Desired::Run => false,
            Desired::Rest => it.is_by_user() && asked != Some(AskedBy::User),
            Desired::Disabled => true,
        });
        if stays_down {
            return;
        }
        let awaited = wish.and_then(|it| it.waits_for.clone());
        let starting = |what: &OrderKind| matches!(what, OrderKind::Start { .. });
        let ordered = self.orders.iter().any(|(key, it)| key.job == *job && starting(&it.what));
        let (runs, goes) = (ctx.active(job).next().is_some(), self.is_going(ctx, job));
        // Its process has its arguments already.
        let has_begun = ordered || (runs && !goes);
        self.wish(ctx, job, asked, Desired::Run, args.filter(|_| !has_begun));
        self.then.remove(job);
        if has_begun {
            self.moves.remove(job);
            return;
        }
        if runs {
            self.then.insert(job.clone(), Afterwards::Start);
            return;
        }
        let chosen = self.choose(ctx, job, rules, awaited.as_ref());
        self.moves.remove(job);
        match chosen {
            Ok(node) => {
                self.asked_on.remove(job);
                let args = ctx.wishes.of(job).map(|it| it.args.clone()).unwrap_or_default();
                self.order(ctx, job, &node, OrderKind::Start { args, fails_over });
                ctx.events.push(FleetEvent::Placed { job: job.clone(), node });
            }
            Err(why) => {
                let standing = JobStanding::NotPlaced(why.clone());
                if self.jobs.insert(job.clone(), standing.clone()).as_ref() != Some(&standing) {
                    ctx.events.push(FleetEvent::NotPlaced { job: job.clone(), why });
                }
            }
        }
    }

    pub(super) fn choose(
        &self,
        ctx: &MasterCtx<'_>,
        job: &Name,
        rules: &JobRules,
        awaited: Option<&Name>,
    ) -> Result<Name, NotPlaced> {
        let mut loads = self.loads(ctx);
        let candidates = self.candidates(ctx, &loads, job, rules);
        let names = |seats: &[Seat]| -> Vec<(Name, u32)> {
            let named = ctx.nodes.keys().filter_map(|node| {
                let seat = loads.seat(node)?;
                seats.contains(&seat).then(|| (node.clone(), loads.of(seat).1))
            });
            named.collect()
        };
        if candidates.is_empty() {
            return Err(match awaited {
                Some(node) if !ctx.nodes.contains_key(node) => {
                    NotPlaced::WaitsFor { node: node.clone() }
                }
                Some(_) | None => NotPlaced::NoCandidate,
            });
        }
        // Where somebody wants it, if that is still possible.
        let there = self.moves.get(job).and_then(Option::as_ref).filter(|node| {
            let seat = loads.seat(node).filter(|seat| candidates.contains(seat));
            seat.is_some_and(|seat| loads.fits(seat, rules.place.load))
        });
        if let Some(node) = there {
            return Ok(node.clone());
        }
        let full = NotPlaced::NoRoom { loads: names(&candidates) };
        let app = ctx.catalogue.app(&rules.app);
        let strategy = app.and_then(|app| app.strategy).unwrap_or(ctx.rules.strategy);
        let local = loads.seat(self.asked_on.get(job).unwrap_or(ctx.me));
        let is_local =
            strategy == Strategy::Local && !candidates.iter().any(|it| Some(*it) == local);
        let seat = loads.place(strategy, rules.place.load, &candidates, local);
        let node = seat.and_then(|seat| ctx.nodes.keys().find(|it| loads.seat(it) == Some(seat)));
        match node {
            Some(node) => Ok(node.clone()),
            None if is_local => Err(NotPlaced::NotLocal),
            None => Err(full),
        }
    }

    /// What nobody waits to start is not near to anybody.
    pub(super) fn forget_who_was_asked(&mut self, ctx: &MasterCtx<'_>) {
        let is_open = |job: &Name| {
            let app = ctx.catalogue.jobs.get(job).and_then(|it| self.apps.get(&it.app));
            let moving = app.is_some_and(|it| it.is_moving() || it.is_in_waves());
            let homeless = matches!(self.jobs.get(job), Some(JobStanding::NotPlaced(_)));
            moving || (ctx.wishes.is_wanted(job) && (homeless || self.then.contains_key(job)))
        };
        let mut asked_on = std::mem::take(&mut self.asked_on);
        asked_on.retain(|job, _| is_open(job));
        self.asked_on = asked_on;
    }

    /// A node that is a candidate again may have what waits for one.
    pub(super) fn look_at_candidates(&mut self, ctx: &MasterCtx<'_>) {
        let disabled = ctx.nodes.iter().flat_map(|(node, facts)| {
            let jobs = facts.jobs.iter().filter(|(_, copy)| copy.disabled);
            jobs.map(|(job, _)| (node.clone(), job.clone()))
        });
        let disabled: BTreeSet<(Name, Name)> = disabled.collect();
        self.repair |= self.disabled.difference(&disabled).next().is_some();
        self.disabled = disabled;
    }

    /// Whether a job could start on a node, were it not for the load of what it leaves behind.
    pub(super) fn may_start_on(
        &self,
        ctx: &MasterCtx<'_>,
        job: &Name,
        node: &Name,
    ) -> Result<(), NotPlaced> {
        let rules = ctx.catalogue.jobs.get(job).ok_or(NotPlaced::NoCandidate)?;
        let loads = self.loads(ctx);
        let candidates = self.candidates(ctx, &loads, job, rules);
        let seat = loads.seat(node).filter(|seat| candidates.contains(seat));
        let seat = seat.ok_or(NotPlaced::NoCandidate)?;
        let runs_there = ctx.active(job).any(|(home, _)| {
            loads.seat(home).is_some_and(|home| loads.is_same_machine(home, seat))
        });
        match runs_there || loads.fits(seat, rules.place.load) {
            true => Ok(()),
            false => Err(NotPlaced::NoRoom { loads: vec![(node.clone(), loads.of(seat).1)] }),
        }
    }

    /// What runs everywhere, and what was ordered and does not run yet.
    fn loads(&self, ctx: &MasterCtx<'_>) -> Loads {
        let mut loads = Loads::default();
        let load = |job: &Name| ctx.catalogue.jobs.get(job).map_or(0, |rules| rules.place.load);
        for (node, facts) in ctx.nodes {
            let seat = loads.add_node(node, &facts.machine);
            let active = facts.jobs.iter().filter(|(_, copy)| copy.state.is_active());
            active.for_each(|(job, _)| loads.count(seat, load(job)));
        }
        for (key, order) in &self.orders {
            let runs = ctx.nodes.get(&key.node).and_then(|facts| facts.jobs.get(&key.job));
            let runs = runs.is_some_and(|copy| copy.state.is_active());
            if let (OrderKind::Start { .. }, false, Some(seat)) =
                (&order.what, runs, loads.seat(&key.node))
            {
                loads.count(seat, load(&key.job));
            }
        }
        loads
    }

    /// Those that may have the job, in the order of its rules.
    fn candidates(
        &self,
        ctx: &MasterCtx<'_>,
        loads: &Loads,
        job: &Name,
        rules: &JobRules,
    ) -> Vec<Seat> {
        let may = |node: &Name| {
            ctx.nodes.get(node).is_some_and(|facts| {
                let known = facts.catalogue.jobs.get(job);
                let same = known.is_some_and(|it| it.definition == rules.definition);
                let drained = self.drains.get(node).copied().unwrap_or(facts.drained);
                let drained = drained || facts.jobs.get(job).is_some_and(|it| it.disabled);
                same && !drained && !facts.hands_over && !facts.ending
            })
        };
        let app = ctx.catalogue.app(&rules.app);
        let order = match ctx.rules.nodes.is_empty() {
            false => rules.nodes(app, &ctx.rules.nodes),
            true => rules.nodes(app, &ctx.nodes.keys().cloned().collect::<Vec<_>>()),
        };
        let seats = order.iter().filter(|node| may(node)).filter_map(|node| loads.seat(node));
        let seats: Vec<Seat> = seats.collect();
        match app.map_or(Distribution::Any, |app| app.distribution) {
            Distribution::Any => seats,
            Distribution::OneNode => {
                self.beside(ctx, loads, job, rules, seats, |one, other| one == other)
            }
            Distribution::OneMachine => self.beside(ctx, loads, job, rules, seats, |one, other| {
                loads.is_same_machine(one, other)
            }),
        }
    }

    /// Those that are together with the other jobs of its app; before the first of them, those that
    /// have room for all.
    fn beside(
        &self,
        ctx: &MasterCtx<'_>,
        loads: &Loads,
        job: &Name,
        rules: &JobRules,
        seats: Vec<Seat>,
        together: impl Fn(Seat, Seat) -> bool,
    ) -> Vec<Seat> {
        // What is on its way elsewhere keeps nobody where it is.
        let stays = |mate: &Name| mate != job && !self.moves.contains_key(mate);
        let mates = ctx.catalogue.members(&rules.app).filter(|(mate, _)| stays(mate));
        let ordered = |mate: &Name| {
            let mut keys = self
                .orders
                .iter()
                .filter(|(key, it)| key.job == *mate && it.what != OrderKind::Stop);
            keys.next().map(|(key, _)| key.node.clone())
        };
        let mut homes = mates.filter_map(|(mate, _)| {
            let runs = ctx.active(mate).next().map(|(node, _)| node.clone());
            loads.seat(&runs.or_else(|| ordered(mate))?)
        });
        match homes.next() {
            Some(home) => seats.into_iter().filter(|seat| together(*seat, home)).collect(),
            None => {
                let all: Vec<_> = ctx.catalogue.members(&rules.app).collect();
                let sum: u32 = all
                    .iter()
                    .filter(|(_, it)| it.place.start_sequence > 0)
                    .map(|(_, it)| it.place.load)
                    .sum();
                let knows_all = |seat: &Seat| {
                    all.iter().all(|(mate, _)| {
                        ctx.nodes.iter().any(|(node, facts)| {
                            loads.seat(node).is_some_and(|it| together(it, *seat))
                                && facts.catalogue.jobs.contains_key(*mate)
                        })
                    })
                };
                let fits = |seat: &Seat| loads.of(*seat).1 + sum <= crate::fleet::placement::FULL;
                seats.into_iter().filter(|seat| fits(seat) && knows_all(seat)).collect()
            }
        }
    }
}
