//! The rows of the table. Each module measures one kind of work under every peer, by turns.
//!
//! - `supervised`: n jobs from nothing and down again; with `memory`, `idle`, `crash` while they are up
//! - `lines`: much output into a rotated file
//! - `meanwhile`: a crash while much output goes on
//! - `agent`: the agent killed, the binary replaced, with n jobs
//! - `chain`: jobs that wait for each other, per link
//! - `checks`: many http checks
//! - `reload`: a reload that changes nothing
//! - `fleet`: three nodes and their loss beside Supvisors, what they cost at rest, and 5, 10, 20 of them
//! - `rollout`: a file that reaches its job, many files at once, the agent's memory with it
//! - `scrape`: reading /metrics
//! - `step`: the longest step of the agent while all that is long comes at once
//! - `register`, `discovery`: many jobs announced in a real Consul: how soon, and their memory

pub(crate) mod agent;
pub(crate) mod chain;
pub(crate) mod checks;
pub(crate) mod crash;
pub(crate) mod discovery;
pub(crate) mod fleet;
pub(crate) mod idle;
pub(crate) mod lines;
pub(crate) mod meanwhile;
pub(crate) mod memory;
pub(crate) mod register;
pub(crate) mod reload;
pub(crate) mod rollout;
pub(crate) mod scrape;
pub(crate) mod step;
pub(crate) mod supervised;

use std::fs;
use std::path::{Path, PathBuf};

use crate::consul::Consul;
use crate::failure::{Doing, Result};
use crate::figure::Figure;
use crate::options::Options;
use crate::peer::floor::Floor;
use crate::peer::horust::Horust;
use crate::peer::mainstay::Mainstay;
use crate::peer::pm2::Pm2;
use crate::peer::runit::Runit;
use crate::peer::s6::S6;
use crate::peer::supervisord::Supervisord;
use crate::peer::{Peer, Place, Work};
use crate::process::tree;
use crate::process::watch::Watch;

/// Names that no other process on the machine has.
pub(crate) const JOB: &str = "bench-sleep";
pub(crate) const TALKER: &str = "bench-talk";
const QUICK: &str = "bench-true";

/// A target that depends on the number of jobs: there is one for 1,000 and one for 5,000.
pub(crate) fn by_jobs(jobs: usize, thousand: f64, five_thousand: f64) -> f64 {
    if jobs <= 1000 { thousand } else { five_thousand }
}

/// What all rows share: the directory, the programs in it, and the peers that can be had.
#[derive(Debug)]
pub(crate) struct Scene {
    pub options: Options,
    pub job: PathBuf,
    pub talker: PathBuf,
    /// Ends at once, and well.
    pub quick: PathBuf,
    pub mainstay: Option<Mainstay>,
}

impl Scene {
    pub(crate) fn set(options: &Options) -> Result<Scene> {
        let dir = &options.dir;
        Place::make(dir.clone(), options.state.clone())?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .doing("become the parent of orphans")?;
        let copy = |from: &Path, name: &str| {
            let to = dir.join(name);
            fs::copy(from, &to).doing(format_args!("copy {} here", from.display())).map(|_| to)
        };
        let own = std::env::current_exe().doing("find my own binary")?;
        Ok(Scene {
            options: options.clone(),
            job: copy(Path::new("/bin/sleep"), JOB)?,
            talker: copy(&own, TALKER)?,
            quick: copy(Path::new("/bin/true"), QUICK)?,
            mainstay: options
                .mainstay
                .clone()
                .filter(|_| options.wants_peer("mainstay"))
                .map(|binary| Mainstay { binary }),
        })
    }

    pub(crate) fn peers(&self) -> Vec<Box<dyn Peer>> {
        let mut peers: Vec<Box<dyn Peer>> = Vec::new();
        if let Some(mainstay) = &self.mainstay {
            peers.push(Box::new(mainstay.clone()));
        }
        peers.push(Box::new(S6));
        peers.push(Box::new(Runit));
        peers.push(Box::new(Supervisord));
        if let Some(pm2) = Pm2::find() {
            peers.push(Box::new(pm2));
        }
        if let Some(horust) = Horust::find() {
            peers.push(Box::new(horust));
        }
        peers.push(Box::new(Floor));
        peers.retain(|peer| self.options.wants_peer(peer.who().name()));
        peers
    }

    pub(crate) fn place(&self, name: &str) -> Result<Place> {
        Place::make(self.options.dir.join(name), self.options.state.join(name))
    }

    pub(crate) fn work(&self, jobs: usize) -> Work {
        Work { jobs, job: self.job.clone(), talker: None }
    }

    /// How the talker is told what to do.
    pub(crate) fn talk(&self, role: &[&str]) -> Vec<String> {
        let program = self.talker.display().to_string();
        std::iter::once(program).chain(role.iter().map(|word| (*word).to_owned())).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        tree::kill_all();
        Place { run: self.options.dir.clone(), state: self.options.state.clone() }.remove();
    }
}

pub(crate) fn measure(scene: &Scene) -> Result<Vec<Figure>> {
    let mut watch = Watch::open();
    let mut figures = Vec::new();
    let wants = |row: &str| scene.options.wants(row);
    if ["start", "memory", "crash", "idle"].into_iter().any(wants) {
        figures.extend(supervised::measure(scene, &mut watch));
    }
    if wants("memory") {
        figures.push(memory::one_idle_job(scene, &mut watch));
    }
    if wants("lines") {
        figures.extend(lines::measure(scene, &mut watch));
    }
    if wants("meanwhile") {
        figures.extend(meanwhile::measure(scene, &mut watch));
    }
    if wants("chain") {
        figures.extend(chain::measure(scene, &mut watch));
    }
    if let Some(mainstay) = &scene.mainstay {
        if wants("agent") {
            figures.extend(agent::killed(scene, mainstay, &mut watch));
        }
        if wants("upgrade") {
            figures.extend(agent::upgraded(scene, mainstay, &mut watch));
        }
        if wants("checks") {
            figures.extend(checks::measure(scene, mainstay, &mut watch));
        }
        if wants("reload") {
            figures.extend(reload::measure(scene, mainstay, &mut watch));
        }
        if wants("fleet") {
            figures.extend(fleet::measure(scene, mainstay));
        }
        if scene.options.only.iter().any(|only| only == "alarms") {
            figures.push(fleet::alarms::measure(scene, mainstay));
        }
        if wants("rollout") {
            figures.extend(rollout::measure(scene, mainstay, &mut watch));
        }
        if wants("scrape") {
            figures.extend(scrape::measure(scene, mainstay, &mut watch));
        }
        if wants("step") {
            figures.push(step::measure(scene, mainstay, &mut watch));
        }
        if ["register", "discovery", "frozen"].into_iter().any(wants) {
            figures.extend(with_consul(scene, mainstay, &mut watch));
        }
    }
    Ok(figures)
}

fn with_consul(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let mut figures = Vec::new();
    if Consul::version().is_none() {
        eprintln!(
            "skipped: register, discovery and frozen need 'consul' in PATH; \
             scripts/setup-consul installs it"
        );
        return figures;
    }
    if scene.options.wants("register") {
        figures.extend(register::measure(scene, mainstay, watch));
    }
    if scene.options.wants("discovery") {
        figures.extend(discovery::measure(scene, mainstay, watch));
    }
    if scene.options.wants("frozen") {
        figures.extend(checks::measure_announced(scene, mainstay, watch));
    }
    figures
}

/// A peer that fails leaves a gap in the table; the others go on.
pub(crate) fn or_gap<T>(who: impl std::fmt::Display, outcome: Result<T>) -> Option<T> {
    outcome.map_err(|failure| eprintln!("{who}: {failure}")).ok()
}
