//! The loads that the master counts with: what runs everywhere, and what was ordered and does not run
//! yet. They are changed where something changes, and counted anew when other nodes take part or
//! other rules hold.

use super::{Master, MasterCtx, OpenOrders, OrderKey, OrderKind, RosterChange};
use crate::{
    fleet::placement::{Loads, Seat},
    name::Name,
};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub(super) struct LoadCount {
    /// `None`: they are to be counted anew.
    loads: Option<Loads>,
    /// What is counted for which job on which node.
    counted: BTreeMap<Name, BTreeMap<Name, u32>>,
    /// All nodes, in the order in which the fleet names them.
    everywhere: Vec<Seat>,
}

impl LoadCount {
    pub(super) fn loads(&self) -> Option<&Loads> {
        self.loads.as_ref()
    }

    /// As they are once nothing of these jobs is left.
    pub(super) fn without<'a>(&self, jobs: impl IntoIterator<Item = &'a Name>) -> Option<Loads> {
        let mut loads = self.loads.clone()?;
        for (node, load) in jobs.into_iter().filter_map(|job| self.counted.get(job)).flatten() {
            if let Some(seat) = loads.seat(node) {
                loads.discount(seat, *load);
            }
        }
        Some(loads)
    }

    /// What is counted of a job on a machine.
    pub(super) fn of_job(&self, job: &Name, loads: &Loads, machine_of: Seat) -> u32 {
        let counted = self.counted.get(job).into_iter().flatten();
        let there = counted.filter(|(node, _)| {
            loads.seat(node).is_some_and(|seat| loads.is_same_machine(seat, machine_of))
        });
        there.map(|(_, load)| load).sum()
    }

    pub(super) fn everywhere(&self) -> &[Seat] {
        &self.everywhere
    }

    /// All of it.
    fn begin(&mut self, ctx: &MasterCtx<'_>, orders: &OpenOrders) {
        let mut loads = Loads::default();
        // A seat is a place in the roster.
        for (node, facts) in ctx.nodes.iter() {
            loads.add_node(node, &facts.machine);
        }
        self.everywhere = match ctx.rules.nodes.is_empty() {
            true => ctx.nodes.names().filter_map(|node| loads.seat(node)).collect(),
            false => ctx.rules.nodes.iter().filter_map(|node| loads.seat(node)).collect(),
        };
        (self.loads, self.counted) = (Some(loads), BTreeMap::new());
        for job in ctx.nodes.jobs() {
            ctx.active(job).for_each(|(node, _)| self.look(ctx, orders, job, node));
        }
        for (job, node, _) in orders.iter() {
            self.look(ctx, orders, job, node);
        }
    }

    /// A copy may be another one, or an order for it.
    fn look(&mut self, ctx: &MasterCtx<'_>, orders: &OpenOrders, job: &Name, node: &Name) {
        let Some(loads) = &mut self.loads else { return };
        let Some(seat) = loads.seat(node) else { return };
        let runs = ctx.nodes.copy(job, node).is_some_and(|copy| copy.state.is_active());
        let starts = orders.get(job, node).is_some_and(|it| it.what != OrderKind::Stop);
        let load = ctx.catalogue.jobs.get(job).map_or(0, |rules| rules.place.load);
        let load = if runs || starts { load } else { 0 };
        let before = self.counted.get(job).and_then(|it| it.get(node)).copied().unwrap_or(0);
        if load == before {
            return;
        }
        loads.discount(seat, before);
        loads.count(seat, load);
        let counted = self.counted.entry(job.clone()).or_default();
        match load {
            0 => drop(counted.remove(node)),
            _ => drop(counted.insert(node.clone(), load)),
        }
        if counted.is_empty() {
            self.counted.remove(job);
        }
    }
}

impl Master {
    /// Other rules hold: nothing that was counted does.
    pub(in crate::fleet) fn count_anew(&mut self) {
        self.load_count = LoadCount::default();
    }

    /// Before a decision.
    pub(in crate::fleet) fn count(&mut self, ctx: &MasterCtx<'_>, change: &RosterChange) {
        match change {
            RosterChange::Copies(changed) if self.load_count.loads.is_some() => {
                for (job, node) in changed {
                    self.load_count.look(ctx, &self.orders, job, node);
                }
            }
            RosterChange::Copies(_) | RosterChange::Nodes => {
                self.load_count.begin(ctx, &self.orders);
            }
        }
    }

    pub(super) fn count_order(&mut self, ctx: &MasterCtx<'_>, key: &OrderKey) {
        self.load_count.look(ctx, &self.orders, &key.job, &key.node);
    }
}
