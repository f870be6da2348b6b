//! The longest step of the agent's loop while all that is long comes at once: every job changed by
//! one reload, a watch with many instances, many clients that ask for the status.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::supervised::{SETTLE, Supervised};
use super::{Scene, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{Configured, Mainstay, ask};
use crate::peer::{Place, Who, Work};
use crate::process::watch::Watch;

const INSTANCES: usize = 20_000;
const CLIENTS: usize = 100;
const METRIC: &str = "mainstay_agent_longest_step_seconds ";

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Figure {
    let jobs = scene.options.jobs;
    let work = format!(
        "longest step of the agent: {jobs} jobs changed, {INSTANCES} instances, {CLIENTS} clients"
    );
    let mut figure =
        Figure::new("step-longest", work, Unit::Milliseconds).bound(Bound::AtMost(0.02));
    figure.set(Who::Mainstay, or_gap(Who::Mainstay, longest(scene, mainstay, watch)));
    figure
}

/// In seconds, as the agent says itself.
fn longest(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Result<f64> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let address = free.doing("find a free port")?.to_string();
    let catalogue = scene.options.dir.join("catalogue");
    fs::create_dir_all(&catalogue).doing("make a directory for instances")?;
    let work = scene.work(scene.options.jobs);
    let text = |colour: &str| configuration(&address, &catalogue, &work, colour);
    let peer = Configured::new(mainstay, text("green"));
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    std::thread::sleep(SETTLE);
    let asked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask_until(&supervised.place, &asked));
        }
        let changed = announce(&catalogue, 0)
            .and_then(|()| Configured::new(mainstay, text("blue")).rewrite(&supervised.place))
            .and_then(|()| reload(mainstay, &supervised.place))
            .and_then(|()| announce(&catalogue, 1));
        std::thread::sleep(SETTLE);
        asked.store(true, Ordering::Relaxed);
        changed
    })?;
    longest_of(&address)
}

fn configuration(address: &str, catalogue: &Path, work: &Work, colour: &str) -> String {
    let mut text = format!(
        "\n[telemetry]\nlisten = \"{address}\"\n\n[discovery]\nengine = \"file\"\ndir = {catalogue:?}\n\n\
         [watches.many]\nservice = \"many\"\ninterval = \"1s\"\n"
    );
    for (name, command) in work.commands() {
        let _infallible = write!(
            text,
            "\n[jobs.{name}]\nexec = {command:?}\nenv = {{ COLOUR = \"{colour}\" }}\n"
        );
    }
    text
}

/// As many instances as a watch may have, with addresses that differ from round to round.
fn announce(catalogue: &Path, round: usize) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let expires = (now + Duration::from_secs(3600)).as_millis();
    let mut text = String::from("[");
    for number in (0..INSTANCES).rev() {
        let comma = if number == 0 { "]" } else { ",\n" };
        let _infallible = write!(
            text,
            "{{\"id\":\"many-{number}\",\"name\":\"many\",\"address\":\"10.{round}.{}.{}\",\
             \"port\":8080,\"tags\":[],\"meta\":{{}},\"node\":\"n\",\"standing\":\"passing\",\
             \"note\":\"\",\"since\":0,\"expires\":{expires}}}{comma}",
            number / 250,
            number % 250
        );
    }
    let (next, file) = (catalogue.join(".many"), catalogue.join("many.json"));
    let written = fs::write(&next, text).and_then(|()| fs::rename(&next, &file));
    written.doing("write the instances")
}

fn ask_until(place: &Place, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        // One that is turned away comes again.
        let _ = ask(place, "/v1/status");
    }
}

fn reload(mainstay: &Mainstay, place: &Place) -> Result<()> {
    let output = mainstay.command("reload", place).output().doing("run mainstay reload")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "mainstay reload: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn longest_of(address: &str) -> Result<f64> {
    let doing = "read /metrics";
    let mut stream = TcpStream::connect(address).doing(doing)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).doing(doing)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").doing(doing)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).doing(doing)?;
    let value = answer.lines().find_map(|line| line.strip_prefix(METRIC)?.parse().ok());
    value.ok_or_else(|| Failure::new("/metrics does not say how long the longest step was"))
}
