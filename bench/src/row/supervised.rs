//! Many jobs under one peer: how long until all of them were executed, and until all are gone.
//! While they are up the same supervised serves for memory, idleness and crashes.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Pid;

use super::{JOB, Scene, TALKER, by_jobs, crash, idle, memory, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::{Peer, Place, Who, Work};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::sample::{median, percentile};

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// s6 and runit hold a job back that ran for less than a second, supervisord calls it started
/// after one: nobody is to be measured at that.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);

/// A peer with its jobs up.
#[derive(Debug)]
pub(crate) struct Supervised {
    pub place: Place,
    pub root: Pid,
    pub jobs: Vec<Pid>,
    /// When the peer was spawned.
    pub begun: Instant,
    pub up: f64,
    /// Seconds from the exec of the first job to that of the last.
    pub spread: f64,
    pub slab: f64,
}

impl Supervised {
    pub(crate) fn start(
        scene: &Scene,
        watch: &mut Watch,
        peer: &dyn Peer,
        work: &Work,
    ) -> Result<Supervised> {
        let place = scene.place(peer.who().name())?;
        peer.prepare(&place, work)?;
        let complaints =
            fs::File::create(place.run.join("stderr")).doing("keep what a peer says")?;
        let mut command = peer.launch(&place, work);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        let slab = tree::slab();
        watch.drain();
        let start = Instant::now();
        let child = command.spawn().doing(format_args!("start {}", peer.who()))?;
        let root = Pid::from_child(&child);
        match watch.wait_for_jobs(root, JOB, work.jobs, START_LIMIT) {
            Ok(jobs) => {
                let up = jobs.last.seconds_since(start);
                let spread = jobs.last.seconds_since(jobs.first);
                let slab = tree::slab() - slab;
                Ok(Supervised { place, root, jobs: jobs.pids, begun: start, up, spread, slab })
            }
            Err(failure) => {
                let said = fs::read_to_string(place.run.join("stderr")).unwrap_or_default();
                tree::kill_all();
                place.remove();
                let last = said.lines().last().unwrap_or("nothing");
                Err(Failure::new(format!("{failure}; its last words: {last}")))
            }
        }
    }

    /// Everything that is not a job.
    pub(crate) fn supervisors(&self) -> Vec<Pid> {
        tree::supervisors(self.root, &[JOB, TALKER])
    }

    /// Seconds until the last process of the peer and of its jobs is gone.
    pub(crate) fn stop(self, watch: &mut Watch, peer: &dyn Peer) -> Result<f64> {
        let mut all = tree::descendants(self.root);
        all.push(self.root);
        watch.drain();
        let start = Instant::now();
        peer.stop(self.root)?;
        watch.wait_for_exits(&all, STOP_LIMIT).map(|last| last.seconds_since(start))
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        tree::kill_all();
        self.place.remove();
    }
}

/// What the rounds of one peer gave.
#[derive(Debug, Default)]
struct Rounds {
    up: Vec<f64>,
    /// Processor time of the parent until all are up, by their number.
    processor: Vec<f64>,
    down: Vec<f64>,
    memory: Vec<f64>,
    slab: Vec<f64>,
    crashes: Vec<f64>,
    idle: Option<idle::Wakeups>,
}

pub(crate) fn measure(scene: &Scene, watch: &mut Watch) -> Vec<Figure> {
    let mut all: BTreeMap<Who, Rounds> = BTreeMap::new();
    for round in 0..scene.options.rounds {
        for peer in scene.peers() {
            let rounds = all.entry(peer.who()).or_default();
            or_gap(peer.who(), one_round(scene, watch, peer.as_ref(), round, rounds));
        }
    }
    figures(scene, &all)
}

fn one_round(
    scene: &Scene,
    watch: &mut Watch,
    peer: &dyn Peer,
    round: usize,
    rounds: &mut Rounds,
) -> Result<()> {
    let options = &scene.options;
    let supervised = Supervised::start(scene, watch, peer, &scene.work(options.jobs))?;
    rounds.up.push(supervised.up);
    rounds.slab.push(supervised.slab);
    // The others start jobs from many processes.
    if matches!(peer.who(), Who::Mainstay | Who::Floor) {
        rounds.processor.push(tree::processor(supervised.root) / options.jobs as f64);
    }
    if ["memory", "idle", "crash"].into_iter().any(|row| options.wants(row)) {
        std::thread::sleep(SETTLE);
    }
    if options.wants("memory") {
        rounds.memory.push(tree::pss(&supervised.supervisors()));
    }
    if options.wants("idle") && round == 0 {
        rounds.idle = Some(idle::measure(&supervised, peer.who()));
    }
    if options.wants("crash") {
        let samples = options.samples.div_ceil(options.rounds);
        rounds.crashes.extend(crash::measure(&supervised, watch, samples));
    }
    let up = supervised.up;
    let down = supervised.stop(watch, peer)?;
    rounds.down.push(down);
    eprintln!(
        "round {}: {} × job: {} up {up:.3} s, down {down:.3} s",
        round + 1,
        options.jobs,
        peer.who()
    );
    Ok(())
}

fn figures(scene: &Scene, all: &BTreeMap<Who, Rounds>) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let mut up =
        Figure::new("up", format!("{jobs} jobs, from nothing to exec done"), Unit::Seconds)
            .bound(Bound::Times(Who::Floor, 1.25));
    let mut down = Figure::new("down", format!("{jobs} jobs, all down"), Unit::Seconds)
        .bound(Bound::AtMost(by_jobs(jobs, 0.25, 1.2)));
    let work = format!("processor time of the parent, per start of {jobs}");
    let mut processor =
        Figure::new("processor", work, Unit::Milliseconds).bound(Bound::AtMost(0.0002));
    let [mut pss, mut slab] = memory::figures(jobs);
    let [mut p50, mut p99] = crash::figures(jobs);
    let [mut keeper, mut agent] = idle::figures(jobs);
    for (who, rounds) in all {
        up.set(*who, median(&rounds.up));
        processor.set(*who, median(&rounds.processor));
        down.set(*who, median(&rounds.down));
        pss.set(*who, median(&rounds.memory));
        slab.set(*who, median(&rounds.slab));
        p50.set(*who, percentile(&rounds.crashes, 50.0));
        p99.set(*who, percentile(&rounds.crashes, 99.0));
        keeper.set(*who, rounds.idle.as_ref().map(|wakeups| wakeups.parents));
        agent.set(*who, rounds.idle.as_ref().and_then(|wakeups| wakeups.agent));
    }
    let wanted = [
        ("start", up),
        ("start", processor),
        ("start", down),
        ("memory", pss),
        ("memory", slab),
        ("crash", p50),
        ("crash", p99),
        ("idle", keeper),
        ("idle", agent),
    ];
    let wants = |row: &str| scene.options.wants(row);
    wanted.into_iter().filter(|(row, _)| wants(row)).map(|(_, figure)| figure).collect()
}
