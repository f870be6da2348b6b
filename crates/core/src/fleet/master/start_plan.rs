//! What a start of an app would do: the start itself, on a copy of all that is known, with nodes
//! that do at once what they are told.

use super::{Master, MasterCtx, OrderKind, Roster, RosterChange, Work};
use crate::{
    clock::Mono,
    fleet::{
        CopyState, FleetEvent, FleetRequest, FleetRules, JobRules, JobStanding, NotPlaced,
        RequestAnswer, Wishes, rules::KnownJobs,
    },
    name::Name,
};
use std::{collections::BTreeMap, time::Duration};

/// What becomes of one job when its app is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    pub job: Name,
    pub start_sequence: u32,
    pub fate: PlannedFate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedFate {
    /// It runs already, and is left alone.
    Runs {
        node: Name,
    },
    Starts {
        node: Name,
    },
    NotPlaced(NotPlaced),
    Disabled,
    /// The start does not come to it: a job before it does not start.
    NotReached,
}

/// All that a start is tried on. Nothing of it is anybody else's.
#[derive(Debug)]
pub(in crate::fleet) struct KnownFleet<'a> {
    pub(in crate::fleet) now: Mono,
    /// The node that is asked.
    pub(in crate::fleet) asked: &'a Name,
    pub(in crate::fleet) rules: &'a FleetRules,
    pub(in crate::fleet) catalogue: KnownJobs,
    pub(in crate::fleet) nodes: Roster,
    pub(in crate::fleet) wishes: Wishes,
}

impl Master {
    /// The master whose work this is, as far as the others know.
    pub(in crate::fleet) fn known_by(work: &Work, now: Mono) -> Master {
        let mut master = Master::new(work.number.term.clone(), Some(work), now);
        (master.stage, master.boot, master.repair) = (work.stage, work.boot, work.repair);
        master
    }

    /// Where each job of an app would go, in the order of the start.
    pub(in crate::fleet) fn plan_start(
        mut self,
        mut known: KnownFleet<'_>,
        app: &Name,
    ) -> Result<Vec<PlannedJob>, RequestAnswer> {
        let me = self.term.master.clone();
        let running = known.homes(app);
        let mut placed = BTreeMap::new();
        let request = FleetRequest::StartApp { app: app.clone() };
        let asked = known.asked;
        let begun = known.step(&me, &mut placed, |ctx| {
            self.count(ctx, &RosterChange::Nodes);
            self.requested(ctx, asked, &request)
        });
        match begun {
            RequestAnswer::Begun => {}
            refused @ (RequestAnswer::NoSuchApp
            | RequestAnswer::NoSuchJob
            | RequestAnswer::NotNow
            | RequestAnswer::NoSuchNode
            | RequestAnswer::NotRunning
            | RequestAnswer::Disabled
            | RequestAnswer::NotPlaced(_)
            | RequestAnswer::Stays { .. }
            | RequestAnswer::Unknown(_)) => return Err(refused),
        }
        // One sequence after the other; there are no more of them than jobs.
        for _ in 0..=known.catalogue.jobs.len() {
            known.step(&me, &mut placed, |ctx| {
                self.count(ctx, &RosterChange::Nodes);
                self.go_on(ctx);
            });
            if !self.have_orders_done(&mut known) {
                break;
            }
        }
        let mut jobs: Vec<PlannedJob> = known
            .catalogue
            .members(app)
            .filter(|(_, rules)| rules.place.start_sequence > 0)
            .map(|(job, rules)| PlannedJob {
                job: job.clone(),
                start_sequence: rules.place.start_sequence,
                fate: self.fate(&known, job, running.get(job), placed.get(job)),
            })
            .collect();
        jobs.sort_by_key(|it| it.start_sequence);
        Ok(jobs)
    }

    fn fate(
        &self,
        known: &KnownFleet<'_>,
        job: &Name,
        running: Option<&Name>,
        placed: Option<&Name>,
    ) -> PlannedFate {
        let disabled = known.wishes.is_disabled(job);
        match (running, placed, self.jobs.get(job)) {
            (_, Some(node), _) => PlannedFate::Starts { node: node.clone() },
            (Some(node), None, _) => PlannedFate::Runs { node: node.clone() },
            (None, None, _) if disabled => PlannedFate::Disabled,
            (None, None, Some(JobStanding::NotPlaced(why))) => PlannedFate::NotPlaced(why.clone()),
            (
                None,
                None,
                None
                | Some(
                    JobStanding::Rest
                    | JobStanding::Up { .. }
                    | JobStanding::Ended { .. }
                    | JobStanding::Lost { .. }
                    | JobStanding::OrderFailed { .. },
                ),
            ) => PlannedFate::NotReached,
        }
    }

    /// Every node does what it was told. `false`: nobody was told anything.
    fn have_orders_done(&self, known: &mut KnownFleet<'_>) -> bool {
        for (job, node, order) in self.orders.iter() {
            let exits = known.catalogue.jobs.get(job).is_some_and(|it| it.place.wait_exit);
            known.nodes.set_copy(job, node, |copy| {
                copy.order = Some(order.number.clone());
                copy.state = match &order.what {
                    OrderKind::Stop => CopyState::Stopped,
                    OrderKind::Start { .. } if exits => CopyState::Exited { well: true },
                    OrderKind::Start { .. } => CopyState::Running,
                };
            });
        }
        !self.orders.is_empty()
    }
}

impl KnownFleet<'_> {
    /// One thing that the master does; `placed` is told what it gives to whom.
    fn step<T>(
        &mut self,
        me: &Name,
        placed: &mut BTreeMap<Name, Name>,
        act: impl FnOnce(&mut MasterCtx<'_>) -> T,
    ) -> T {
        let mut ctx = MasterCtx {
            now: self.now,
            me,
            rules: self.rules,
            catalogue: &self.catalogue,
            nodes: &self.nodes,
            age: &|_| Duration::ZERO,
            wishes: &mut self.wishes,
            sends: Vec::new(),
            events: Vec::new(),
        };
        let done = act(&mut ctx);
        for event in ctx.events {
            if let FleetEvent::Placed { job, node } = event {
                placed.insert(job, node);
            }
        }
        done
    }

    /// Where jobs of an app run.
    fn homes(&self, app: &Name) -> BTreeMap<Name, Name> {
        let home = |(job, _): (&Name, &JobRules)| {
            let (node, _) = self.nodes.active(job).find(|(_, state)| state.is_up())?;
            Some((job.clone(), node.clone()))
        };
        self.catalogue.members(app).filter_map(home).collect()
    }
}
