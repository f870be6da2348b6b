//! Crashes while another job writes as fast as it can: output must not hold up restarts.

use std::collections::BTreeMap;

use super::supervised::{SETTLE, Supervised};
use super::{Scene, crash, or_gap};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::process::watch::Watch;
use crate::sample::percentile;

/// Enough for every sample to take another job.
const JOBS: usize = 100;

pub(crate) fn measure(scene: &Scene, watch: &mut Watch) -> Vec<Figure> {
    let mut all: BTreeMap<Who, Vec<f64>> = BTreeMap::new();
    let samples = scene.options.samples.div_ceil(scene.options.rounds).min(JOBS);
    let mut work = scene.work(JOBS);
    work.talker = Some(scene.talk(&["__lines", "0"]));
    for _ in 0..scene.options.rounds {
        for peer in scene.peers() {
            let crashes = Supervised::start(scene, watch, peer.as_ref(), &work).map(|supervised| {
                std::thread::sleep(SETTLE);
                crash::measure(&supervised, watch, samples)
            });
            let crashes = or_gap(peer.who(), crashes).unwrap_or_default();
            all.entry(peer.who()).or_default().extend(crashes);
        }
    }
    let work = "crash to new process while another job floods";
    let mut p50 = Figure::new("meanwhile-p50", format!("{work}, p50"), Unit::Milliseconds)
        .bound(Bound::Over(Who::Floor, 0.0006));
    let mut p99 = Figure::new("meanwhile-p99", format!("{work}, p99"), Unit::Milliseconds)
        .bound(Bound::Over(Who::Floor, 0.004));
    for (who, crashes) in &all {
        p50.set(*who, percentile(crashes, 50.0));
        p99.set(*who, percentile(crashes, 99.0));
    }
    vec![p50, p99]
}
