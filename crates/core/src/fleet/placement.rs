//! Where a job is to run.
//!
//! A candidate is a node that takes part, knows the job, is neither drained nor told to leave it
//! alone, and whose machine has room: the loads of all that runs there, and of all that was ordered
//! there and has not started yet, come to 100 at most with this one. Loads are what is written down,
//! never measured. Of the candidates, in the order of the rules:
//!
//! | strategy | the node |
//! |---|---|
//! | config | the first |
//! | less-loaded, most-loaded | with the lowest (highest) load; of equals by that of its machine |
//! | less-loaded-node, most-loaded-node | on the machine with the lowest (highest) load; then its own |
//! | local | the one that was asked (for what starts by itself: the master) |

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a machine can bear.
pub const FULL: u32 = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    #[default]
    Config,
    LessLoaded,
    MostLoaded,
    Local,
    LessLoadedNode,
    MostLoadedNode,
}

/// The place of a node in [`Loads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(u32);

#[derive(Debug, Clone)]
struct SeatLoad {
    machine: u32,
    load: u32,
}

/// The loads of nodes and of their machines, counted as they are given out.
#[derive(Debug, Clone, Default)]
pub struct Loads {
    seats: Vec<SeatLoad>,
    machines: Vec<u32>,
    machine_names: BTreeMap<String, u32>,
    names: BTreeMap<Name, Seat>,
}

impl Seat {
    /// Nodes have theirs in the order in which they were added.
    pub(super) fn position(self) -> usize {
        self.0 as usize
    }
}

impl Loads {
    /// A node on a machine; in the order in which they come.
    pub fn add_node(&mut self, node: &Name, machine: &str) -> Seat {
        if let Some(seat) = self.names.get(node) {
            return *seat;
        }
        let next = u32::try_from(self.machines.len()).unwrap_or(u32::MAX);
        let machine = *self.machine_names.entry(machine.to_owned()).or_insert(next);
        if machine == next {
            self.machines.push(0);
        }
        let seat = Seat(u32::try_from(self.seats.len()).unwrap_or(u32::MAX));
        self.seats.push(SeatLoad { machine, load: 0 });
        self.names.insert(node.clone(), seat);
        seat
    }

    #[must_use]
    pub fn seat(&self, node: &Name) -> Option<Seat> {
        self.names.get(node).copied()
    }

    /// Something runs there, or will.
    pub fn count(&mut self, seat: Seat, load: u32) {
        if let Some(it) = self.seats.get_mut(seat.0 as usize) {
            it.load += load;
            self.machines[it.machine as usize] += load;
        }
    }

    /// It runs there no more, or will not.
    pub fn discount(&mut self, seat: Seat, load: u32) {
        if let Some(it) = self.seats.get_mut(seat.0 as usize) {
            it.load -= load;
            self.machines[it.machine as usize] -= load;
        }
    }

    /// The load of the node, and of its machine.
    #[must_use]
    pub fn of(&self, seat: Seat) -> (u32, u32) {
        let it = self.seats.get(seat.0 as usize);
        it.map_or((FULL, FULL), |it| (it.load, self.machines[it.machine as usize]))
    }

    /// There is so much room on its machine.
    #[must_use]
    pub fn fits(&self, seat: Seat, load: u32) -> bool {
        self.of(seat).1 + load <= FULL
    }

    #[must_use]
    pub fn is_same_machine(&self, one: Seat, other: Seat) -> bool {
        let machine = |seat: Seat| self.seats.get(seat.0 as usize).map(|it| it.machine);
        machine(one) == machine(other)
    }

    /// The place of a job with this load, among candidates in the order of the rules. The load is
    /// counted from now on.
    pub fn place(
        &mut self,
        strategy: Strategy,
        load: u32,
        candidates: &[Seat],
        local: Option<Seat>,
    ) -> Option<Seat> {
        let seat = self.choose(strategy, load, candidates, local)?;
        self.count(seat, load);
        Some(seat)
    }

    /// The same, without counting it.
    #[must_use]
    pub fn choose(
        &self,
        strategy: Strategy,
        load: u32,
        candidates: &[Seat],
        local: Option<Seat>,
    ) -> Option<Seat> {
        let mut fitting = candidates.iter().copied().filter(|seat| self.fits(*seat, load));
        match strategy {
            Strategy::Config => fitting.next(),
            Strategy::Local => fitting.find(|seat| Some(*seat) == local),
            Strategy::LessLoaded => self.lowest(load, candidates, pair),
            Strategy::MostLoaded => self.lowest(load, candidates, |node, all| !pair(node, all)),
            Strategy::LessLoadedNode => self.lowest(load, candidates, |node, all| pair(all, node)),
            Strategy::MostLoadedNode => self.lowest(load, candidates, |node, all| !pair(all, node)),
        }
    }

    /// Of those with room the one with the lowest rank, by the loads of node and machine. Of equals
    /// the first counts.
    fn lowest(
        &self,
        load: u32,
        candidates: &[Seat],
        rank: impl Fn(u32, u32) -> u64,
    ) -> Option<Seat> {
        let mut best: Option<(u64, Seat)> = None;
        for seat in candidates {
            let (node, machine) = self.of(*seat);
            if machine + load > FULL {
                continue;
            }
            let rank = rank(node, machine);
            if best.is_none_or(|(lowest, _)| rank < lowest) {
                best = Some((rank, *seat));
            }
        }
        best.map(|(_, seat)| seat)
    }
}

/// One number that is ordered as both are, the first first.
fn pair(first: u32, second: u32) -> u64 {
    (u64::from(first) << 32) | u64::from(second)
}

/// Why a job has no home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotPlaced {
    /// No node that takes part knows the job and may have it.
    NoCandidate,
    /// It waits for this node.
    WaitsFor { node: Name },
    /// All that may have it are too full: each with the load of its machine.
    NoRoom { loads: Vec<(Name, u32)> },
    /// The strategy is local, and the node that was asked may not have it.
    NotLocal,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes a to d, of which c and d share a machine, with these loads.
    fn loads(of: [u32; 4]) -> (Loads, Vec<Seat>) {
        let mut loads = Loads::default();
        let seats: Vec<Seat> = [("a", "m1"), ("b", "m2"), ("c", "m3"), ("d", "m3")]
            .iter()
            .map(|(node, machine)| loads.add_node(&Name::new(node).expect("a name"), machine))
            .collect();
        seats.iter().zip(of).for_each(|(seat, load)| loads.count(*seat, load));
        (loads, seats)
    }

    fn chosen(strategy: Strategy, load: u32, of: [u32; 4]) -> Option<usize> {
        let (mut loads, seats) = loads(of);
        let local = Some(seats[1]);
        let seat = loads.place(strategy, load, &seats, local)?;
        seats.iter().position(|it| *it == seat)
    }

    #[test]
    fn each_strategy_has_its_node() {
        for (strategy, node) in [
            (Strategy::Config, 0),
            (Strategy::Local, 1),
            (Strategy::LessLoaded, 3),
            (Strategy::MostLoaded, 0),
            (Strategy::LessLoadedNode, 1),
            (Strategy::MostLoadedNode, 0),
        ] {
            assert_eq!(chosen(strategy, 10, [50, 20, 30, 10]), Some(node), "{strategy:?}");
        }
        assert_eq!(
            chosen(Strategy::LessLoaded, 10, [20, 10, 40, 10]),
            Some(1),
            "the machine breaks the tie"
        );
        assert_eq!(chosen(Strategy::MostLoaded, 10, [40, 0, 40, 10]), Some(2));
    }

    #[test]
    fn a_machine_bears_a_hundred_with_all_its_nodes() {
        assert_eq!(chosen(Strategy::Config, 10, [91, 100, 50, 40]), Some(2));
        assert_eq!(chosen(Strategy::Config, 11, [91, 100, 50, 40]), None);
        assert_eq!(chosen(Strategy::Config, 0, [100, 100, 60, 60]), Some(0));
    }

    #[test]
    fn what_was_given_out_counts_before_the_next() {
        let (mut loads, seats) = loads([0; 4]);
        let placed: Vec<Option<Seat>> =
            (0..9).map(|_| loads.place(Strategy::LessLoaded, 40, &seats[..2], None)).collect();
        let (a, b) = (Some(seats[0]), Some(seats[1]));
        assert_eq!(placed, [a, b, a, b, None, None, None, None, None]);
    }

    #[test]
    fn local_has_no_second_choice() {
        assert_eq!(chosen(Strategy::Local, 10, [0, 95, 0, 0]), None);
    }
}
