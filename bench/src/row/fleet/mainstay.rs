//! Nodes of Mainstay on loopback, each with a configuration and directories of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;
use serde_json::Value;

use super::nodes::{Fleet, Nodes, View};
use super::{MOVED, OTHERS};
use crate::failure::{Doing, Failure, Result};
use crate::peer::mainstay::{self, Mainstay};
use crate::peer::{Place, Who, write};
use crate::process::Instant;
use crate::row::Scene;

pub(super) struct MainstayNodes {
    mainstay: Mainstay,
    places: Vec<Place>,
}

impl MainstayNodes {
    pub(super) fn make(scene: &Scene, mainstay: &Mainstay, count: usize) -> Result<MainstayNodes> {
        let address = |number: usize| format!("\"n{number}=127.77.77.{}:7071\"", number + 1);
        let roster: Vec<String> = (0..count).map(address).collect();
        let key = scene.options.dir.join("fleet.key");
        write(&key, &"5e".repeat(32))?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).doing("close the key")?;
        let job = scene.job.display().to_string();
        let jobs: String = super::jobs()
            .map(|name| {
                format!(
                    "\n[jobs.{name}]\nexec = [{job:?}, \"1000000\"]\napp = \"shop\"\n\
                     place = {{ load = 10 }}\n"
                )
            })
            .collect();
        let mut places = Vec::new();
        for number in 0..count {
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
        Ok(MainstayNodes { mainstay: mainstay.clone(), places })
    }
}

impl MainstayNodes {
    pub(super) fn command(&self, verb: &str, number: usize) -> Command {
        self.mainstay.command(verb, &self.places[number])
    }
}

impl Nodes for MainstayNodes {
    fn who(&self) -> Who {
        Who::Mainstay
    }

    fn count(&self) -> usize {
        self.places.len()
    }

    fn jobs(&self) -> usize {
        OTHERS + 1
    }

    fn launch(&self, number: usize) -> Result<Pid> {
        let place = &self.places[number];
        let complaints = fs::File::create(place.run.join("stderr")).doing("keep what is said")?;
        let mut command = self.command("run", number);
        command.arg("--state-dir").arg(&place.state).arg("-c").arg(place.run.join("mainstay.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        let child = command.spawn().doing("start a node")?;
        Ok(Pid::from_child(&child))
    }

    fn seen_by(&self, number: usize) -> Option<View> {
        let text = mainstay::ask(&self.places[number], "/v1/fleet").ok()?;
        let fleet: Value = serde_json::from_str(&text).ok()?;
        let running = fleet["nodes"].as_array()?.iter().filter(|it| it["state"] == "RUNNING");
        let homes = fleet["jobs"].as_array()?.iter();
        Some(View {
            rests: fleet["state"] == "OPERATION",
            running: running.filter_map(|it| number_of(&it["name"])).collect(),
            master: number_of(&fleet["master"]),
            homes: homes
                .filter_map(|it| Some((it["job"].as_str()?.to_owned(), home(it)?)))
                .collect(),
        })
    }
}

impl Drop for MainstayNodes {
    fn drop(&mut self) {
        self.places.iter().for_each(Place::remove);
    }
}

/// How a move went, in seconds.
pub(super) struct Move {
    /// The command; the job is there then.
    pub(super) command: f64,
    /// From then on until every node knows it.
    pub(super) known: f64,
}

impl Fleet<MainstayNodes> {
    pub(super) fn move_to(&self, to: usize) -> Result<Move> {
        let count = self.nodes.count();
        let home = |number| self.nodes.seen_by(number)?.homes.get(MOVED).copied();
        if home(to) == Some(to) {
            self.move_to((to + 1) % count)?;
        }
        let mut command = self.nodes.command("app", to);
        command.args(["move", MOVED, "--to", &format!("n{to}")]);
        let begun = Instant::now();
        let output = command.output().doing("run mainstay app move")?;
        let moved = Instant::now();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(format!("mainstay app move: {said}")));
        }
        // What nobody knows yet to have run there would not be missed.
        let known = self.until("the job where it was moved to", || {
            (0..count).all(|number| home(number) == Some(to))
        })?;
        let (command, known) = (moved.seconds_since(begun), known.seconds_since(moved));
        Ok(Move { command, known })
    }

    pub(super) fn agents(&self) -> Vec<Pid> {
        self.roots.iter().filter_map(|root| Mainstay::agent(*root)).collect()
    }
}

/// The number in the name of a node.
fn number_of(name: &Value) -> Option<usize> {
    name.as_str()?.strip_prefix('n')?.parse().ok()
}

/// The one node where a job runs.
fn home(job: &Value) -> Option<usize> {
    let copies = job["copies"].as_array()?;
    let mut running = copies.iter().filter(|it| it["state"] == "RUNNING");
    let home = running.next().and_then(|it| number_of(&it["node"]));
    home.filter(|_| running.next().is_none())
}
