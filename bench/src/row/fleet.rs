//! Three real nodes as one fleet on loopback: how soon it is up, what the loss of a node costs, and
//! what it costs to do nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{Scene, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{self, Mainstay};
use crate::peer::{Place, Who, write};
use crate::process::{Instant, tree};
use crate::sample::{median, percentile};

const NODES: usize = 3;
/// Jobs of the app beside the one that moves.
const OTHERS: usize = 6;
/// How often a node is killed.
const LOSSES: usize = 20;
const REST: Duration = Duration::from_secs(20);
const LIMIT: f64 = 30.0;
/// The job that goes where it is wanted.
const MOVED: &str = "web";

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay) -> Vec<Figure> {
    let what = format!("a fleet of {NODES} nodes");
    let mut boot = Figure::new("fleet-boot", format!("{what}, all apps running"), Unit::Seconds)
        .bound(Bound::AtMost(2.0));
    let mut traffic = Figure::new(
        "fleet-traffic",
        format!("{what} at rest, a node sends"),
        Unit::KilobytesPerSecond,
    )
    .bound(Bound::AtMost(4e3));
    let mut processor = Figure::new(
        "fleet-processor",
        format!("{what} at rest, processor time of a node in a second"),
        Unit::Milliseconds,
    )
    .bound(Bound::AtMost(0.005));
    let seconds = |id, work: String| Figure::new(id, work, Unit::Seconds);
    let mut seen = [
        seconds("fleet-seen-p50", "a node killed, seen by the others, p50".into())
            .bound(Bound::AtMost(1.2)),
        seconds("fleet-seen-p99", "a node killed, seen by the others, p99".into())
            .bound(Bound::AtMost(2.0)),
    ];
    let mut node = seconds("fleet-node", "a node killed, its job runs elsewhere, p99".into())
        .bound(Bound::AtMost(2.7));
    let mut master =
        seconds("fleet-master", "the master killed, its job runs elsewhere, p99".into())
            .bound(Bound::AtMost(3.0));
    let mut moved =
        Figure::new("fleet-move", "a job moved to another node, p50", Unit::Milliseconds)
            .bound(Bound::AtMost(0.1));

    let mut run = || -> Result<()> {
        let mut boots = Vec::new();
        for _ in 0..scene.options.rounds {
            let fleet = Fleet::start(scene, mainstay)?;
            boots.push(fleet.await_all(&[0, 1, 2])?);
        }
        boot.set(Who::Mainstay, median(&boots));
        let mut fleet = Fleet::start(scene, mainstay)?;
        fleet.await_all(&[0, 1, 2])?;
        std::thread::sleep(Duration::from_secs(3));
        let rest = fleet.at_rest()?;
        traffic.set(Who::Mainstay, Some(rest.sent));
        processor.set(Who::Mainstay, Some(rest.processor));
        let losses = LOSSES.min(scene.options.samples);
        let (mut moves, mut lost) = (Vec::new(), Vec::new());
        for _ in 0..losses {
            let master = fleet.master(0)?;
            let victim = (master + 1) % NODES;
            moves.push(fleet.move_to(victim)?);
            lost.push(fleet.lose(victim)?);
        }
        seen[0].set(Who::Mainstay, percentile(&of(&lost, |it| it.seen), 50.0));
        seen[1].set(Who::Mainstay, percentile(&of(&lost, |it| it.seen), 99.0));
        node.set(Who::Mainstay, percentile(&of(&lost, |it| it.elsewhere), 99.0));
        lost.clear();
        for _ in 0..losses {
            let victim = fleet.master(0)?;
            moves.push(fleet.move_to(victim)?);
            lost.push(fleet.lose(victim)?);
        }
        master.set(Who::Mainstay, percentile(&of(&lost, |it| it.elsewhere), 99.0));
        moved.set(Who::Mainstay, median(&moves));
        Ok(())
    };
    or_gap(Who::Mainstay, run());
    let [usual, worst] = seen;
    vec![boot, usual, worst, node, master, moved, traffic, processor]
}

fn of(losses: &[Loss], part: impl Fn(&Loss) -> f64) -> Vec<f64> {
    losses.iter().map(part).collect()
}

/// Seconds from the end of a node.
#[derive(Debug)]
struct Loss {
    /// Until another one says that it is lost.
    seen: f64,
    /// Until its job runs on another one.
    elsewhere: f64,
}

/// What a node at rest costs.
#[derive(Debug)]
struct AtRest {
    /// Bytes a second.
    sent: f64,
    /// Seconds a second.
    processor: f64,
}

struct Fleet {
    mainstay: Mainstay,
    places: Vec<Place>,
    roots: Vec<Pid>,
    begun: Instant,
}

impl Fleet {
    fn start(scene: &Scene, mainstay: &Mainstay) -> Result<Fleet> {
        let address = |number: usize| format!("\"n{number}=127.77.77.{}:7071\"", number + 1);
        let roster: Vec<String> = (0..NODES).map(address).collect();
        let key = scene.options.dir.join("fleet.key");
        write(&key, &"5e".repeat(32))?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).doing("close the key")?;
        let job = scene.job.display().to_string();
        let jobs: String = (1..=OTHERS)
            .map(|number| format!("job{number}"))
            .chain([MOVED.to_owned()])
            .map(|name| {
                format!(
                    "\n[jobs.{name}]\nexec = [{job:?}, \"1000000\"]\napp = \"shop\"\n\
                     place = {{ load = 10 }}\n"
                )
            })
            .collect();
        let mut places = Vec::new();
        for number in 0..NODES {
            let place = scene.place(&format!("n{number}"))?;
            place.remove();
            let place = Place::make(place.run, place.state)?;
            let text = format!(
                "[node]\nname = \"n{number}\"\nmachine = \"m{number}\"\nexit = \"never\"\n\n[fleet]\n\
                 nodes = [{}]\nkey_file = {key:?}\n\n[log]\nforward = false\n\n[apps.shop]\n\
                 on_failure = \"restart-process\"\n{jobs}",
                roster.join(", "),
            );
            write(&place.run.join("mainstay.toml"), &text)?;
            places.push(place);
        }
        let begun = Instant::now();
        let mut fleet = Fleet { mainstay: mainstay.clone(), places, roots: Vec::new(), begun };
        for number in 0..NODES {
            let root = fleet.launch(number)?;
            fleet.roots.push(root);
        }
        Ok(fleet)
    }

    fn launch(&self, number: usize) -> Result<Pid> {
        let place = &self.places[number];
        let complaints = fs::File::create(place.run.join("stderr")).doing("keep what is said")?;
        let mut command = self.mainstay.command("run", place);
        command.arg("--state-dir").arg(&place.state).arg("-c").arg(place.run.join("mainstay.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        let child = command.spawn().doing("start a node")?;
        Ok(Pid::from_child(&child))
    }

    /// How a node sees the fleet.
    fn seen_by(&self, number: usize) -> Option<Value> {
        let text = mainstay::ask(&self.places[number], "/v1/fleet").ok()?;
        serde_json::from_str(&text).ok()
    }

    fn until(&self, what: &str, mut is: impl FnMut() -> bool) -> Result<Instant> {
        let begun = Instant::now();
        while !is() {
            if Instant::now().seconds_since(begun) > LIMIT {
                return Err(Failure::new(format!("a fleet: {what} did not come")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Instant::now())
    }

    /// Seconds from the start until these nodes see all nodes and all jobs run.
    fn await_all(&self, numbers: &[usize]) -> Result<f64> {
        let all = |number: &usize| {
            self.seen_by(*number).is_some_and(|fleet| {
                let nodes = fleet["nodes"].as_array().cloned().unwrap_or_default();
                let jobs = fleet["jobs"].as_array().cloned().unwrap_or_default();
                fleet["state"] == "OPERATION"
                    && nodes.len() == NODES
                    && nodes.iter().all(|it| it["state"] == "RUNNING")
                    && jobs.len() == OTHERS + 1
                    && jobs.iter().all(|it| home(it).is_some())
            })
        };
        let at = self.until("all of it running", || numbers.iter().all(all))?;
        Ok(at.seconds_since(self.begun))
    }

    fn master(&self, asked: usize) -> Result<usize> {
        let fleet = self.seen_by(asked).unwrap_or_default();
        number(&fleet["master"]).ok_or_else(|| Failure::new("a fleet without a master"))
    }

    /// Seconds that the command takes; the job is there then.
    fn move_to(&self, to: usize) -> Result<f64> {
        let from = self.seen_by(to).as_ref().and_then(moved_home);
        if from == Some(to) {
            self.move_to((to + 1) % NODES)?;
        }
        let mut command = self.mainstay.command("app", &self.places[to]);
        command.args(["move", MOVED, "--to", &format!("n{to}")]);
        let begun = Instant::now();
        let output = command.output().doing("run mainstay app move")?;
        let seconds = Instant::now().seconds_since(begun);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(format!("mainstay app move: {said}")));
        }
        // What nobody knows yet to have run there would not be missed.
        let known = |number| self.seen_by(number).as_ref().and_then(moved_home) == Some(to);
        self.until("the job where it was moved to", || (0..NODES).all(known))?;
        Ok(seconds)
    }

    /// Kills a node with all that it has, waits for the others, and brings it back.
    fn lose(&mut self, victim: usize) -> Result<Loss> {
        let watcher = (victim + 1) % NODES;
        let mut all = tree::descendants(self.roots[victim]);
        all.push(self.roots[victim]);
        let begun = Instant::now();
        all.iter().for_each(|pid| tree::kill(*pid, Signal::KILL));
        let mut seen = None;
        let elsewhere = self.until("the job elsewhere", || {
            let Some(fleet) = self.seen_by(watcher) else { return false };
            let nodes = fleet["nodes"].as_array().cloned().unwrap_or_default();
            let runs = |it: &Value| number(&it["name"]) == Some(victim) && it["state"] == "RUNNING";
            if seen.is_none() && !nodes.iter().any(runs) {
                seen = Some(Instant::now());
            }
            moved_home(&fleet).is_some_and(|home| home != victim)
        })?;
        let seen = seen.unwrap_or(elsewhere);
        tree::reap();
        self.roots[victim] = self.launch(victim)?;
        self.await_all(&[0, 1, 2])?;
        let loss =
            Loss { seen: seen.seconds_since(begun), elsewhere: elsewhere.seconds_since(begun) };
        Ok(loss)
    }

    fn at_rest(&self) -> Result<AtRest> {
        let agent = |root: &Pid| Mainstay::agent(*root);
        let agents: Vec<Pid> = self.roots.iter().filter_map(agent).collect();
        let used =
            || -> f64 { agents.iter().chain(&self.roots).map(|pid| tree::processor(*pid)).sum() };
        let (processor, sent) = (used(), loopback()?);
        std::thread::sleep(REST);
        let each = NODES as f64 * REST.as_secs_f64();
        Ok(AtRest { sent: (loopback()? - sent) / each, processor: (used() - processor) / each })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        tree::kill_all();
        self.places.iter().for_each(Place::remove);
    }
}

/// The number in the name of a node.
fn number(name: &Value) -> Option<usize> {
    name.as_str()?.strip_prefix('n')?.parse().ok()
}

/// The one node where a job runs.
fn home(job: &Value) -> Option<usize> {
    let copies = job["copies"].as_array()?;
    let mut running = copies.iter().filter(|it| it["state"] == "RUNNING");
    let home = running.next().and_then(|it| number(&it["node"]));
    home.filter(|_| running.next().is_none())
}

fn moved_home(fleet: &Value) -> Option<usize> {
    let jobs = fleet["jobs"].as_array()?;
    home(jobs.iter().find(|it| it["job"] == MOVED)?)
}

/// All bytes that were sent over loopback.
fn loopback() -> Result<f64> {
    let text = fs::read_to_string("/proc/net/dev").doing("read what was sent")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    line.and_then(|counts| counts.split_whitespace().nth(8)?.parse().ok())
        .ok_or_else(|| Failure::new("there is no loopback"))
}
