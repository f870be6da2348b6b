//! How fast many jobs get into a real Consul. They are up, and the node leaves maintenance: all are
//! announced at once, and the clock stops when all pass in the catalogue.
//!
//! The floor is a bare client that makes the same requests over as many connections, to the same
//! Consul, by turns; Mainstay's jobs are not announced meanwhile. Each has a turn first that does
//! not count.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::supervised::Supervised;
use super::{Scene, or_gap};
use crate::consul::{Client, Consul};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{Configured, Mainstay};
use crate::peer::{Who, Work};
use crate::process::Instant;
use crate::process::watch::Watch;
use crate::sample::median;

const CONNECTIONS: usize = 16;

/// What is said about each job; the bare client says the same.
pub(crate) const ADVERTISE: &str = "advertise = { port = 80, interfaces = \"static:127.0.0.1\" }";

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let all = scene.options.jobs;
    let half = all.div_ceil(2);
    let mut figures = Vec::new();
    for (jobs, id, cold) in
        [(half, "register-half", "announced-half"), (all, "register", "announced")]
    {
        let mut rate =
            Figure::new(id, format!("{jobs} jobs registered in Consul"), Unit::PerSecond)
                .bound(Bound::Share(Who::Floor, 0.5));
        let mut start = Figure::new(
            cold,
            format!("{jobs} advertised jobs, from nothing to all passing in Consul"),
            Unit::Seconds,
        );
        let times = or_gap(Who::Mainstay, register(scene, mainstay, watch, jobs));
        if let Some(times) = times {
            let a_second = |samples: &[f64]| median(samples).map(|seconds| jobs as f64 / seconds);
            rate.set(Who::Mainstay, a_second(&times.own));
            rate.set(Who::Floor, a_second(&times.floor));
            start.set(Who::Mainstay, Some(times.from_nothing));
        }
        figures.extend([rate, start]);
    }
    figures
}

/// Seconds.
#[derive(Debug)]
struct Registration {
    from_nothing: f64,
    own: Vec<f64>,
    floor: Vec<f64>,
}

fn register(
    scene: &Scene,
    mainstay: &Mainstay,
    watch: &mut Watch,
    jobs: usize,
) -> Result<Registration> {
    let consul = Consul::start(&scene.place("consul")?)?;
    let peer = Configured::new(mainstay, advertised(&consul, &scene.work(jobs)));
    let supervised = Supervised::start(scene, watch, &peer, &scene.work(jobs))?;
    let from_nothing = consul.wait_for_passing(jobs)?.seconds_since(supervised.begun);
    let mut times = Registration { from_nothing, own: Vec::new(), floor: Vec::new() };
    for round in 0..=scene.options.rounds {
        maintenance(mainstay, &supervised, "on")?;
        consul.wait_for_passing(0)?;
        let floor = scene.options.wants_peer("floor").then(|| bare(&consul, jobs)).transpose()?;
        let begun = Instant::now();
        maintenance(mainstay, &supervised, "off")?;
        let own = consul.wait_for_passing(jobs)?.seconds_since(begun);
        eprintln!(
            "round {round}: {jobs} jobs in Consul: mainstay {own:.3} s{}",
            floor.map(|seconds| format!(", floor {seconds:.3} s")).unwrap_or_default()
        );
        if round > 0 {
            times.own.push(own);
            times.floor.extend(floor);
        }
    }
    Ok(times)
}

pub(crate) fn advertised(consul: &Consul, work: &Work) -> String {
    let mut text = consul.table();
    for (name, command) in work.commands() {
        let _infallible = write!(text, "\n[jobs.{name}]\nexec = {command:?}\n{ADVERTISE}\n");
    }
    text
}

fn maintenance(mainstay: &Mainstay, supervised: &Supervised, switch: &str) -> Result<()> {
    let mut command = mainstay.command("maintenance", &supervised.place);
    let output = command.arg(switch).output().doing("run mainstay maintenance")?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failure::new(format!("mainstay maintenance {switch}: {said}")))
        }
    }
}

/// Seconds that a client needs which does nothing else; its services are removed again.
fn bare(consul: &Consul, jobs: usize) -> Result<f64> {
    let begun = Instant::now();
    let passed = std::thread::scope(|scope| {
        let looking = scope.spawn(|| consul.wait_for_passing(jobs));
        each(consul, jobs, |client, number| {
            let path = "/v1/agent/service/register?replace-existing-checks=true";
            client.put(path, &registration(number))?;
            client.put(&format!("/v1/agent/check/pass/service:bare-{number}?note="), "")
        })?;
        looking.join().map_err(|_| Failure::new("whoever looks at consul has panicked"))?
    })?;
    each(consul, jobs, |client, number| {
        client.put(&format!("/v1/agent/service/deregister/bare-{number}"), "")
    })?;
    consul.wait_for_passing(0)?;
    Ok(passed.seconds_since(begun))
}

fn registration(number: usize) -> String {
    json!({
        "ID": format!("bare-{number}"),
        "Name": format!("job{number}"),
        "Address": "127.0.0.1",
        "Port": 80,
        "Tags": [],
        "Meta": {},
        "EnableTagOverride": false,
        "Check": {
            "CheckID": format!("service:bare-{number}"),
            "Name": format!("Service 'job{number}' check"),
            "TTL": "25000ms",
            "Notes": "told by the floor",
            "Status": "passing",
        },
    })
    .to_string()
}

/// Does something for every job, over connections that stay open.
fn each(
    consul: &Consul,
    jobs: usize,
    what: impl Fn(&mut Client, usize) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = &|| -> Result<()> {
        let mut client = consul.connect()?;
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                number if number < jobs => what(&mut client, number)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|one| {
            one.join().map_err(|_| Failure::new("a client of consul has panicked"))?
        })
    })
}
