//! What supervision costs in memory: the proportional set size of every process that is not a job,
//! and beside it the growth of the kernel's slab, which has each job's own share in it (the floor's
//! figure is that share).

use super::supervised::{SETTLE, Supervised};
use super::{Scene, by_jobs, or_gap};
use crate::figure::{Bound, Figure, Unit};
use crate::process::tree;
use crate::process::watch::Watch;

pub(crate) fn figures(jobs: usize) -> [Figure; 2] {
    [
        Figure::new(
            "memory",
            format!("memory of all that is no job, {jobs} jobs"),
            Unit::Megabytes,
        )
        .bound(Bound::AtMost(by_jobs(jobs, 12e6, 25e6))),
        Figure::new("slab", format!("kernel slab, {jobs} jobs included"), Unit::Megabytes),
    ]
}

pub(crate) fn one_idle_job(scene: &Scene, watch: &mut Watch) -> Figure {
    let mut figure =
        Figure::new("memory-one", "memory of all that is no job, 1 job", Unit::Megabytes)
            .bound(Bound::AtMost(8e6));
    for peer in scene.peers() {
        let memory =
            Supervised::start(scene, watch, peer.as_ref(), &scene.work(1)).map(|supervised| {
                std::thread::sleep(SETTLE);
                tree::pss(&supervised.supervisors())
            });
        figure.set(peer.who(), or_gap(peer.who(), memory));
    }
    figure
}
