//! Real nodes as one fleet: how soon it is up, what the loss of a node costs, what it costs to do
//! nothing, and how that grows; Supvisors beside it.

pub(crate) mod alarms;
mod mainstay;
mod nodes;
mod supvisors;

use std::fs;
use std::time::Duration;

use super::{Scene, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::Mainstay;
use crate::process::tree;
use crate::sample::{median, percentile};
use mainstay::MainstayNodes;
use nodes::{Fleet, Loss, Nodes};
use supvisors::SupvisorsNodes;

const NODES: usize = 3;
const LARGER: [Larger; 3] = [
    Larger {
        count: 5,
        figures: ["fleet-5-boot", "fleet-5-traffic", "fleet-5-processor", "fleet-5-known"],
        bounded: false,
    },
    Larger {
        count: 10,
        figures: ["fleet-10-boot", "fleet-10-traffic", "fleet-10-processor", "fleet-10-known"],
        bounded: false,
    },
    Larger {
        count: 20,
        figures: ["fleet-20-boot", "fleet-20-traffic", "fleet-20-processor", "fleet-20-known"],
        bounded: true,
    },
];
/// Jobs of the app beside the one that moves.
const OTHERS: usize = 6;
/// How often a node is killed.
const LOSSES: usize = 20;
/// Supvisors takes half a minute for each.
const LOSSES_OF_SUPVISORS: usize = 3;
const REST: Duration = Duration::from_secs(20);
/// The job that goes where it is wanted.
const MOVED: &str = "web";

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay) -> Vec<Figure> {
    let mut figures = Vec::from(Three::measure(scene, mainstay));
    figures.extend(LARGER.iter().flat_map(|it| it.measure(scene, mainstay)));
    figures
}

fn jobs() -> impl Iterator<Item = String> {
    (1..=OTHERS).map(|number| format!("job{number}")).chain([MOVED.to_owned()])
}

/// What three nodes are measured by.
struct Three {
    boot: Figure,
    seen: [Figure; 2],
    node: Figure,
    master: Figure,
    moved: Figure,
    traffic: Figure,
    processor: Figure,
}

impl Three {
    fn measure(scene: &Scene, mainstay: &Mainstay) -> [Figure; 8] {
        let mut three = Three::new();
        or_gap(Who::Mainstay, three.of_mainstay(scene, mainstay));
        if scene.options.wants_peer(Who::Supvisors.name()) {
            match supvisors::missing() {
                Some(why) => eprintln!("{}: {why}", Who::Supvisors),
                None => drop(or_gap(Who::Supvisors, three.of_supvisors(scene))),
            }
        }
        let Three { boot, seen: [usual, worst], node, master, moved, traffic, processor } = three;
        [boot, usual, worst, node, master, moved, traffic, processor]
    }

    fn new() -> Three {
        let what = format!("a fleet of {NODES} nodes");
        let seconds = |id, work: String| Figure::new(id, work, Unit::Seconds);
        Three {
            boot: seconds("fleet-boot", format!("{what}, all apps running"))
                .bound(Bound::AtMost(2.0))
                .bound(Bound::Times(Who::Supvisors, 0.15)),
            seen: [
                seconds("fleet-seen-p50", "a node killed, seen by the others, p50".into())
                    .bound(Bound::AtMost(1.2)),
                seconds("fleet-seen-p99", "a node killed, seen by the others, p99".into())
                    .bound(Bound::AtMost(2.0)),
            ],
            node: seconds("fleet-node", "a node killed, its jobs run elsewhere, p99".into())
                .bound(Bound::AtMost(2.7))
                .bound(Bound::Times(Who::Supvisors, 0.3)),
            master: seconds(
                "fleet-master",
                "the master killed, its jobs run elsewhere, p99".into(),
            )
            .bound(Bound::AtMost(3.0)),
            moved: Figure::new(
                "fleet-move",
                "a job moved to another node, p50",
                Unit::Milliseconds,
            )
            .bound(Bound::AtMost(0.1)),
            traffic: Figure::new(
                "fleet-traffic",
                format!("{what} at rest, a node sends"),
                Unit::KilobytesPerSecond,
            )
            .bound(Bound::AtMost(4e3)),
            processor: Figure::new(
                "fleet-processor",
                format!("{what} at rest, processor time of a node in a second"),
                Unit::Milliseconds,
            )
            .bound(Bound::AtMost(0.005)),
        }
    }

    fn of_mainstay(&mut self, scene: &Scene, mainstay: &Mainstay) -> Result<()> {
        let start = || Fleet::start(MainstayNodes::make(scene, mainstay, NODES)?);
        let mut fleet = self.boots(scene, start)?;
        std::thread::sleep(Duration::from_secs(3));
        let rest = at_rest(&fleet)?;
        self.traffic.set(Who::Mainstay, Some(rest.sent));
        self.processor.set(Who::Mainstay, Some(rest.processor));
        let mut moves = Vec::new();
        self.losses(&mut fleet, LOSSES.min(scene.options.samples), |fleet, of_master| {
            let master = fleet.master()?;
            let victim = if of_master { master } else { (master + 1) % NODES };
            moves.push(fleet.move_to(victim)?.command);
            Ok(victim)
        })?;
        self.moved.set(Who::Mainstay, median(&moves));
        Ok(())
    }

    fn of_supvisors(&mut self, scene: &Scene) -> Result<()> {
        let start = || Fleet::start(SupvisorsNodes::make(scene, NODES)?);
        let mut fleet = self.boots(scene, start)?;
        let losses = LOSSES_OF_SUPVISORS.min(scene.options.samples);
        self.losses(&mut fleet, losses, |fleet, of_master| match of_master {
            true => fleet.master(),
            false => fleet.servant(),
        })
    }

    /// The last of them stays.
    fn boots<N: Nodes>(
        &mut self,
        scene: &Scene,
        start: impl Fn() -> Result<Fleet<N>>,
    ) -> Result<Fleet<N>> {
        let mut boots = Vec::new();
        for _ in 1..scene.options.rounds {
            boots.push(start()?.await_all()?);
        }
        let fleet = start()?;
        boots.push(fleet.await_all()?);
        self.boot.set(fleet.nodes.who(), median(&boots));
        Ok(fleet)
    }

    /// Kills a node so often, and then the master.
    fn losses<N: Nodes>(
        &mut self,
        fleet: &mut Fleet<N>,
        times: usize,
        mut victim: impl FnMut(&Fleet<N>, bool) -> Result<usize>,
    ) -> Result<()> {
        let who = fleet.nodes.who();
        let mut lost: [Vec<Loss>; 2] = Default::default();
        for (of_master, lost) in [false, true].into_iter().zip(&mut lost) {
            for _ in 0..times {
                let victim = victim(fleet, of_master)?;
                lost.push(fleet.lose(victim)?);
            }
        }
        let [nodes, masters] = lost;
        self.seen[0].set(who, percentile(&of(&nodes, |it| it.seen), 50.0));
        self.seen[1].set(who, percentile(&of(&nodes, |it| it.seen), 99.0));
        self.node.set(who, percentile(&of(&nodes, |it| it.elsewhere), 99.0));
        self.master.set(who, percentile(&of(&masters, |it| it.elsewhere), 99.0));
        Ok(())
    }
}

/// A fleet of more nodes, for how it grows.
struct Larger {
    count: usize,
    /// Their names.
    figures: [&'static str; 4],
    /// It is the one that is held against something.
    bounded: bool,
}

impl Larger {
    fn measure(&self, scene: &Scene, mainstay: &Mainstay) -> [Figure; 4] {
        let [boot, traffic, processor, known] = self.figures;
        let figure = |id, what: &str, unit, most| {
            let figure = Figure::new(id, format!("a fleet of {} nodes{what}", self.count), unit);
            if self.bounded { figure.bound(Bound::AtMost(most)) } else { figure }
        };
        let mut boot = figure(boot, ", all apps running", Unit::Seconds, 5.0);
        let sends = " at rest, a node sends";
        let mut traffic = figure(traffic, sends, Unit::KilobytesPerSecond, 6e3);
        let time = " at rest, processor time of a node in a second";
        let mut processor = figure(processor, time, Unit::Milliseconds, 0.005);
        let moved = ", a job that was moved is known to all, p99";
        let mut known = figure(known, moved, Unit::Milliseconds, 1.0);
        let mut run = || -> Result<()> {
            let fleet = Fleet::start(MainstayNodes::make(scene, mainstay, self.count)?)?;
            boot.set(Who::Mainstay, Some(fleet.await_all()?));
            std::thread::sleep(Duration::from_secs(3));
            let rest = at_rest(&fleet)?;
            traffic.set(Who::Mainstay, Some(rest.sent));
            processor.set(Who::Mainstay, Some(rest.processor));
            let mut all = Vec::new();
            for to in (0..self.count).cycle().take(LOSSES.min(scene.options.samples)) {
                all.push(fleet.move_to(to)?.known);
            }
            known.set(Who::Mainstay, percentile(&all, 99.0));
            Ok(())
        };
        or_gap(Who::Mainstay, run());
        [boot, traffic, processor, known]
    }
}

fn of(losses: &[Loss], part: impl Fn(&Loss) -> f64) -> Vec<f64> {
    losses.iter().map(part).collect()
}

/// What a node at rest costs.
#[derive(Debug)]
struct AtRest {
    /// Bytes a second.
    sent: f64,
    /// Seconds a second.
    processor: f64,
}

fn at_rest(fleet: &Fleet<MainstayNodes>) -> Result<AtRest> {
    let agents = fleet.agents();
    let used =
        || -> f64 { agents.iter().chain(&fleet.roots).map(|pid| tree::processor(*pid)).sum() };
    let (processor, sent) = (used(), loopback()?);
    std::thread::sleep(REST);
    let each = fleet.nodes.count() as f64 * REST.as_secs_f64();
    Ok(AtRest { sent: (loopback()? - sent) / each, processor: (used() - processor) / each })
}

/// All bytes that were sent over loopback.
fn loopback() -> Result<f64> {
    let text = fs::read_to_string("/proc/net/dev").doing("read what was sent")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    line.and_then(|counts| counts.split_whitespace().nth(8)?.parse().ok())
        .ok_or_else(|| Failure::new("there is no loopback"))
}
