//! False alarms: both cores are busy and agents are killed all the time, and no node is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::NODES;
use super::mainstay::MainstayNodes;
use super::nodes::Fleet;
use crate::failure::{Doing, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::Mainstay;
use crate::process::tree;
use crate::row::{Scene, or_gap};

/// Ten minutes.
const KILLS: usize = 300;
const BETWEEN: Duration = Duration::from_secs(2);

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay) -> Figure {
    let work = format!(
        "a fleet of {NODES} nodes, both cores busy, {KILLS} agents killed, one each {} s: nodes that \
         were said to be lost",
        BETWEEN.as_secs()
    );
    let mut alarms = Figure::new("fleet-alarms", work, Unit::Count).bound(Bound::AtMost(0.0));
    let idle = AtomicBool::new(false);
    let counted = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores {
            scope.spawn(|| {
                while !idle.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let counted = or_gap(Who::Mainstay, count(scene, mainstay));
        idle.store(true, Ordering::Relaxed);
        counted
    });
    alarms.set(Who::Mainstay, counted.map(|it| it as f64));
    alarms
}

/// The nodes that anybody has said to be lost.
fn count(scene: &Scene, mainstay: &Mainstay) -> Result<usize> {
    let fleet = Fleet::start(MainstayNodes::make(scene, mainstay, NODES)?)?;
    fleet.await_all()?;
    for kill in 0..KILLS {
        if let Some(agent) = Mainstay::agent(fleet.roots[kill % NODES]) {
            tree::kill(agent, Signal::KILL);
        }
        thread::sleep(BETWEEN);
    }
    fleet.await_all()?;
    (0..NODES).map(|number| lost(&fleet.nodes, number)).sum()
}

fn lost(nodes: &MainstayNodes, number: usize) -> Result<usize> {
    let output = nodes.command("events", number).arg("--json").output();
    let said = String::from_utf8_lossy(&output.doing("run mainstay events")?.stdout).into_owned();
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events.filter(|it| it["event"] == "nodeLost").inspect(|it| eprintln!("{it}")).count())
}
