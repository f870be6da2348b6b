//! Jobs that wait for each other: what one link of a chain costs.
//!
//! - `exitSuccess`: each job runs `true` once the one before it has ended well. The first is a
//!   sleep whose end sets the chain off, the last a sleep whose exec ends it; both are stamped by
//!   the kernel. The floor spawns `true` as often and waits for it.
//! - `healthy`: each job runs on, and its check lets the next one start.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use super::supervised::Supervised;
use super::{JOB, Scene, or_gap};
use crate::failure::{Doing, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::Configured;
use crate::process::Instant;
use crate::process::watch::Watch;
use crate::sample::median;
use crate::web::Server;

const LIMIT: Duration = Duration::from_secs(120);

/// Time for the node to know all jobs before the first link.
const SETTLED: &str = "3";

pub(crate) fn measure(scene: &Scene, watch: &mut Watch) -> Vec<Figure> {
    vec![ended(scene, watch), healthy(scene, watch, "exec"), healthy(scene, watch, "http"), {
        healthy(scene, watch, "notify")
    }]
}

fn ended(scene: &Scene, watch: &mut Watch) -> Figure {
    let links = scene.options.jobs;
    let work = format!("chain of {links} exitSuccess conditions, per link");
    let mut figure =
        Figure::new("chain", work, Unit::Milliseconds).bound(Bound::Over(Who::Floor, 0.0005));
    let (mut own, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..scene.options.rounds {
        own.extend(or_gap(Who::Mainstay, ended_once(scene, watch, links)).flatten());
        if scene.options.wants_peer("floor") {
            floor.extend(or_gap(Who::Floor, spawned_in_order(scene, links)));
        }
    }
    figure.set(Who::Mainstay, median(&own));
    figure.set(Who::Floor, median(&floor));
    figure
}

fn ended_once(scene: &Scene, watch: &mut Watch, links: usize) -> Result<Option<f64>> {
    let Some(mainstay) = &scene.mainstay else { return Ok(None) };
    let sleep = scene.job.display();
    let mut text = format!("[jobs.link0]\nexec = [\"{sleep}\", \"{SETTLED}\"]\n");
    for number in 1..=links {
        let exec = match number == links {
            true => format!("[\"{sleep}\", \"1000000\"]"),
            false => format!("[\"{}\"]", scene.quick.display()),
        };
        let before = number - 1;
        let _infallible = write!(
            text,
            "\n[jobs.link{number}]\nexec = {exec}\n\
             when = {{ source = \"link{before}\", once = \"exitSuccess\" }}\n"
        );
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &scene.work(1))?;
    let begun = watch.wait_for_exits(&supervised.jobs, LIMIT)?;
    let ended = watch.wait_for_jobs(supervised.root, JOB, 1, LIMIT)?.last;
    Ok(Some(ended.seconds_since(begun) / links as f64))
}

fn spawned_in_order(scene: &Scene, links: usize) -> Result<f64> {
    let (links, own) = (links.max(1), std::env::current_exe().doing("find my own binary")?);
    let begun = Instant::now();
    let mut floor = Command::new(own);
    floor.arg("__floor-chain").arg(links.to_string()).arg(&scene.quick);
    floor.status().doing("spawn one after another")?;
    Ok(Instant::now().seconds_since(begun) / links as f64)
}

/// A tenth as many links: they are a tenth as quick.
fn healthy(scene: &Scene, watch: &mut Watch, kind: &'static str) -> Figure {
    let links = scene.options.jobs.div_ceil(10).max(2);
    let id = match kind {
        "exec" => "healthy-exec",
        "http" => "healthy-http",
        _ => "healthy-notify",
    };
    let work = format!("chain of {links} healthy conditions, {kind} checks, per link");
    let mut figure = Figure::new(id, work, Unit::Milliseconds).bound(Bound::AtMost(0.002));
    let mut own = Vec::new();
    for _ in 0..scene.options.rounds {
        own.extend(or_gap(Who::Mainstay, healthy_once(scene, watch, links, kind)).flatten());
    }
    figure.set(Who::Mainstay, median(&own));
    figure
}

fn healthy_once(scene: &Scene, watch: &mut Watch, links: usize, kind: &str) -> Result<Option<f64>> {
    let Some(mainstay) = &scene.mainstay else { return Ok(None) };
    let server = Server::start()?;
    let sleep = vec![scene.job.display().to_string(), "1000000".to_owned()];
    let (exec, health) = match kind {
        "exec" => (sleep, format!("exec = [\"{}\"]", scene.quick.display())),
        "http" => (sleep, format!("http = \"{}\"", server.url())),
        _ => {
            let mut ready = scene.talk(&["__ready"]);
            ready.extend(sleep);
            (ready, "notify = true".to_owned())
        }
    };
    let mut text = String::new();
    for number in 0..links {
        let _infallible =
            write!(text, "\n[jobs.link{number}]\nexec = {exec:?}\nhealth = {{ {health} }}\n");
        if let Some(before) = number.checked_sub(1) {
            let _infallible =
                writeln!(text, "when = {{ source = \"link{before}\", once = \"healthy\" }}");
        }
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &scene.work(links))?;
    Ok(Some(supervised.spread / (links - 1) as f64))
}
