//! What it takes to read `/metrics` of many jobs, and what that costs the agent.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::supervised::{SETTLE, Supervised};
use super::{Scene, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::{Configured, Mainstay};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::sample::median;

const SCRAPES: usize = 50;

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let what = format!("/metrics of {} jobs", scene.options.jobs);
    let mut usual = Figure::new("scrape-p50", format!("{what}, p50"), Unit::Milliseconds);
    let mut spent = Figure::new("scrape-cpu", format!("{what}, CPU each"), Unit::Milliseconds);
    let measured = or_gap(Who::Mainstay, scrapes(scene, mainstay, watch));
    usual.set(Who::Mainstay, measured.as_ref().and_then(|(samples, _)| median(samples)));
    spent.set(Who::Mainstay, measured.map(|(_, each)| each));
    vec![usual, spent]
}

/// Seconds of each scrape, and processor seconds of the agent for one of them.
fn scrapes(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Result<(Vec<f64>, f64)> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let address = free.doing("find a free port")?.to_string();
    let work = scene.work(scene.options.jobs);
    let mut text = format!("\n[telemetry]\nlisten = \"{address}\"\n");
    for (name, command) in work.commands() {
        let _infallible = write!(text, "\n[jobs.{name}]\nexec = {command:?}\n");
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    std::thread::sleep(SETTLE);
    let agent =
        Mainstay::agent(supervised.root).ok_or_else(|| Failure::new("there is no agent"))?;
    scrape(&address)?;
    let before = tree::processor(agent);
    let samples = (0..SCRAPES).map(|_| scrape(&address)).collect::<Result<Vec<f64>>>()?;
    Ok((samples, (tree::processor(agent) - before) / SCRAPES as f64))
}

/// From connecting to the last byte.
fn scrape(address: &str) -> Result<f64> {
    let doing = "read /metrics";
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).doing(doing)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).doing(doing)?;
    let accept = "Accept: application/openmetrics-text";
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).doing(doing)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).doing(doing)?;
    match answer.ends_with(b"# EOF\n") {
        true => Ok(Instant::now().seconds_since(begun)),
        false => Err(Failure::new("the answer of /metrics is not whole")),
    }
}
