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
            self.moves.remove(job);
            return;
        }
        let awaited = wish.and_then(|it| it.waits_for.clone());
        let ordered = self.orders.of(job).any(|(_, it)| it.what != OrderKind::Stop);
        let runs = ctx.active(job).next().is_some() || self.is_taken_back(job);
        let goes = self.is_going(ctx, job);
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
                if self.jobs.get(job) != Some(&standing) {
                    self.stands(job, standing);
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
        let loads = self.load_count.loads().ok_or(NotPlaced::NoCandidate)?;
        self.choose_without(ctx, (loads, &[]), job, rules, awaited)
    }

    /// The same, by the loads once nothing of some jobs is left.
    pub(super) fn choose_without(
        &self,
        ctx: &MasterCtx<'_>,
        (loads, left): (&Loads, &[Name]),
        job: &Name,
        rules: &JobRules,
        awaited: Option<&Name>,
    ) -> Result<Name, NotPlaced> {
        let candidates = self.candidates(ctx, (loads, left), job, rules);
        if candidates.is_empty() {
            return Err(match awaited {
                Some(node) if !ctx.nodes.has(node) => NotPlaced::WaitsFor { node: node.clone() },
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
        let app = ctx.catalogue.app(&rules.app);
        let strategy = app.and_then(|app| app.strategy).unwrap_or(ctx.rules.strategy);
        let local = loads.seat(self.asked_on.get(job).unwrap_or(ctx.me));
        let seat = loads.choose(strategy, rules.place.load, &candidates, local);
        match seat.and_then(|seat| ctx.nodes.at(seat.position())) {
            Some((node, _)) => Ok(node.clone()),
            None if strategy == Strategy::Local
                && !candidates.iter().any(|it| Some(*it) == local) =>
            {
                Err(NotPlaced::NotLocal)
            }
            None => Err(full(ctx, loads, candidates)),
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
        let disabled = ctx.nodes.jobs().flat_map(|job| {
            let copies = ctx.nodes.copies(job).filter(|(_, copy)| copy.disabled);
            copies.map(|(node, _)| (node.clone(), job.clone()))
        });
        let disabled: BTreeSet<(Name, Name)> = disabled.collect();
        self.repair |= self.disabled.difference(&disabled).next().is_some();
        self.disabled = disabled;
    }

    /// Whether these could all start on a node, once nothing of them is left where they run.
    pub(super) fn may_start_on(
        &self,
        ctx: &MasterCtx<'_>,
        jobs: &[Name],
        node: &Name,
    ) -> Result<(), NotPlaced> {
        let loads = self.load_count.without(jobs).ok_or(NotPlaced::NoCandidate)?;
        let mut given = 0;
        for job in jobs {
            let rules = ctx.catalogue.jobs.get(job).ok_or(NotPlaced::NoCandidate)?;
            let candidates = self.candidates(ctx, (&loads, jobs), job, rules);
            let seat = loads.seat(node).filter(|seat| candidates.contains(seat));
            let seat = seat.ok_or(NotPlaced::NoCandidate)?;
            if !loads.fits(seat, given + rules.place.load) {
                let bears = loads.of(seat).1 + given;
                return Err(NotPlaced::NoRoom { loads: vec![(node.clone(), bears)] });
            }
            given += rules.place.load;
        }
        Ok(())
    }

    /// Those that may have the job, in the order of its rules; by the loads without some jobs.
    fn candidates(
        &self,
        ctx: &MasterCtx<'_>,
        (loads, left): (&Loads, &[Name]),
        job: &Name,
        rules: &JobRules,
    ) -> Vec<Seat> {
        let disabled = ctx.nodes.copies(job).filter(|(_, copy)| copy.disabled);
        let disabled: Vec<Seat> = disabled.filter_map(|(node, _)| loads.seat(node)).collect();
        let may = |seat: &Seat| {
            ctx.nodes.at(seat.position()).is_some_and(|(node, facts)| {
                let defined = || facts.catalogue.jobs.get(job).map(|it| it.definition);
                let same =
                    ctx.catalogue.is(&facts.catalogue) || defined() == Some(rules.definition);
                let drained = self.drains.get(node).copied().unwrap_or(facts.drained);
                let out = drained || disabled.contains(seat);
                same && !out && !facts.hands_over && !facts.ending
            })
        };
        let app = ctx.catalogue.app(&rules.app);
        let everywhere = self.load_count.everywhere();
        let seats: Vec<Seat> = match rules.is_for_all(app) {
            true => everywhere.iter().copied().filter(may).collect(),
            false => {
                let named = |seat: &Seat| Some(ctx.nodes.at(seat.position())?.0.clone());
                let order = match ctx.rules.nodes.is_empty() {
                    false => rules.nodes(app, &ctx.rules.nodes),
                    true => {
                        rules.nodes(app, &everywhere.iter().filter_map(named).collect::<Vec<_>>())
                    }
                };
                order.iter().filter_map(|node| loads.seat(node)).filter(may).collect()
            }
        };
        match app.map_or(Distribution::Any, |app| app.distribution) {
            Distribution::Any => seats,
            Distribution::OneNode => {
                self.beside(ctx, (loads, left), job, rules, seats, |one, other| one == other)
            }
            Distribution::OneMachine => {
                self.beside(ctx, (loads, left), job, rules, seats, |one, other| {
                    loads.is_same_machine(one, other)
                })
            }
        }
    }

    /// Those that are together with the other jobs of its app; before the first of them, those that
    /// have room for all.
    fn beside(
        &self,
        ctx: &MasterCtx<'_>,
        (loads, left): (&Loads, &[Name]),
        job: &Name,
        rules: &JobRules,
        seats: Vec<Seat>,
        together: impl Fn(Seat, Seat) -> bool,
    ) -> Vec<Seat> {
        // What is on its way elsewhere keeps nobody where it is.
        let stays = |mate: &Name| mate != job && !self.moves.contains_key(mate);
        let mates = ctx.catalogue.members(&rules.app).filter(|(mate, _)| stays(mate));
        let ordered = |mate: &Name| {
            let mut orders = self.orders.of(mate).filter(|(_, it)| it.what != OrderKind::Stop);
            orders.next().map(|(node, _)| node.clone())
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
                // What runs of them now is on its way: it takes no room beside itself.
                let goes = |seat: Seat| -> u32 {
                    let counted = all.iter().filter(|(mate, _)| !left.contains(mate));
                    counted.map(|(mate, _)| self.load_count.of_job(mate, loads, seat)).sum()
                };
                let bears = |seat: Seat| loads.of(seat).1 - goes(seat);
                let fits = |seat: &Seat| bears(*seat) + sum <= crate::fleet::placement::FULL;
                seats.into_iter().filter(|seat| fits(seat) && knows_all(seat)).collect()
            }
        }
    }
}

/// None of these has room: each with the load of its machine, by name.
fn full(ctx: &MasterCtx<'_>, loads: &Loads, mut candidates: Vec<Seat>) -> NotPlaced {
    candidates.sort();
    let load = |seat: Seat| Some((ctx.nodes.at(seat.position())?.0.clone(), loads.of(seat).1));
    NotPlaced::NoRoom { loads: candidates.into_iter().filter_map(load).collect() }
}
