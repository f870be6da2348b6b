//! What discovery costs in memory: keeper and agent with many jobs in a real Consul and watches of a
//! tenth of them, beside the same jobs and nothing of it.

use std::fmt::Write as _;
use std::time::Duration;

use super::supervised::{SETTLE, Supervised};
use super::{Scene, or_gap, register};
use crate::consul::Consul;
use crate::failure::Result;
use crate::figure::{Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::{Configured, Mainstay};
use crate::process::tree;
use crate::process::watch::Watch;

/// Every job has had its heartbeat, and every watch has waited out its interval.
const BEATEN: Duration = Duration::from_secs(12);

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let watches = jobs.div_ceil(10);
    let with = format!("keeper and agent, {jobs} advertised jobs and {watches} watches");
    let mut with = Figure::new("memory-announced", with, Unit::Megabytes);
    let without = format!("keeper and agent, the same {jobs} jobs without discovery");
    let mut without = Figure::new("memory-alone", without, Unit::Megabytes);
    with.set(Who::Mainstay, or_gap(Who::Mainstay, announced(scene, mainstay, watch, watches)));
    without.set(Who::Mainstay, or_gap(Who::Mainstay, alone(scene, mainstay, watch)));
    vec![with, without]
}

fn announced(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch, watches: usize) -> Result<f64> {
    let consul = Consul::start(&scene.place("consul")?)?;
    let work = scene.work(scene.options.jobs);
    let mut text = register::advertised(&consul, &work);
    for (job, _) in work.commands().take(watches) {
        let _infallible = write!(text, "\n[watches.{job}]\nservice = \"{job}\"\n");
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    consul.wait_for_passing(work.jobs)?;
    std::thread::sleep(BEATEN);
    Ok(tree::pss(&supervised.supervisors()))
}

fn alone(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Result<f64> {
    let work = scene.work(scene.options.jobs);
    let mut text = String::new();
    for (name, command) in work.commands() {
        let _infallible = write!(text, "\n[jobs.{name}]\nexec = {command:?}\n");
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    std::thread::sleep(SETTLE);
    Ok(tree::pss(&supervised.supervisors()))
}
