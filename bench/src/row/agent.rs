//! What only Mainstay has: an agent that may die, and a binary that is replaced while jobs run.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use super::supervised::Supervised;
use super::{Scene, by_jobs, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::mainstay::{self, Mainstay};
use crate::peer::{Place, Who};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::sample::{median, percentile};

const LIMIT: f64 = 10.0;
const DEATHS: usize = 10;
const UPGRADES: usize = 5;

pub(crate) fn killed(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let what = format!("agent killed, {jobs} jobs, API answers again");
    let mut usual = Figure::new("agent-p50", format!("{what}, p50"), Unit::Milliseconds)
        .bound(Bound::AtMost(by_jobs(jobs, 0.025, 0.1)));
    let mut worst =
        Figure::new("agent-worst", format!("{what}, worst of {DEATHS}"), Unit::Milliseconds)
            .bound(Bound::AtMost(by_jobs(jobs, 0.025, 0.1)));
    let samples =
        Supervised::start(scene, watch, mainstay, &scene.work(jobs)).and_then(|supervised| {
            (0..DEATHS).map(|_| kill_agent(&supervised)).collect::<Result<Vec<f64>>>()
        });
    let samples = or_gap(Who::Mainstay, samples).unwrap_or_default();
    usual.set(Who::Mainstay, median(&samples));
    worst.set(Who::Mainstay, percentile(&samples, 100.0));
    vec![usual, worst]
}

fn kill_agent(supervised: &Supervised) -> Result<f64> {
    answer(&supervised.place, Instant::now())?;
    std::thread::sleep(Duration::from_millis(500));
    let agent =
        Mainstay::agent(supervised.root).ok_or_else(|| Failure::new("there is no agent"))?;
    let start = Instant::now();
    tree::kill(agent, Signal::KILL);
    while tree::alive(agent) {
        std::thread::yield_now();
    }
    answer(&supervised.place, start)
}

/// Seconds since `start` when the API has answered in full.
fn answer(place: &Place, start: Instant) -> Result<f64> {
    loop {
        let outcome = mainstay::ask(place, "/v1/status");
        let seconds = Instant::now().seconds_since(start);
        match outcome {
            Ok(_) => return Ok(seconds),
            Err(failure) if seconds > LIMIT => return Err(failure),
            Err(_) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// The longest pauses that a job's log, a client of the keeper and a client of the API saw.
#[derive(Debug, Default)]
struct Pauses {
    log: Vec<f64>,
    control: Vec<f64>,
    api: Vec<f64>,
}

pub(crate) fn upgraded(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let figure = |id, who: &str| {
        let work = format!("upgrade with {jobs} jobs, longest pause of {who}");
        Figure::new(id, work, Unit::Milliseconds)
    };
    let mut log = figure("upgrade-log", "a job's output").bound(Bound::AtMost(0.015));
    let mut control = figure("upgrade-control", "control sockets").bound(Bound::AtMost(0.015));
    let mut api = figure("upgrade-api", "the API").bound(Bound::AtMost(0.1));
    let mut work = scene.work(jobs);
    work.talker = Some(scene.talk(&["__tick"]));
    let mut pauses = Pauses::default();
    let outcome = Supervised::start(scene, watch, mainstay, &work).and_then(|supervised| {
        answer(&supervised.place, Instant::now())?;
        (0..UPGRADES).try_for_each(|_| upgrade_once(mainstay, &supervised, &mut pauses))?;
        pauses.log.push(longest_log_gap(&supervised.place)?);
        Ok(())
    });
    or_gap(Who::Mainstay, outcome);
    log.set(Who::Mainstay, percentile(&pauses.log, 100.0));
    control.set(Who::Mainstay, percentile(&pauses.control, 100.0));
    api.set(Who::Mainstay, percentile(&pauses.api, 100.0));
    vec![log, control, api]
}

fn upgrade_once(mainstay: &Mainstay, supervised: &Supervised, pauses: &mut Pauses) -> Result<()> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let place = &supervised.place;
        let control =
            scope.spawn(|| longest_pause(&over, || mainstay::ask_control(place, "talker")));
        let api = scope.spawn(|| longest_pause(&over, || mainstay::ask(place, "/v1/jobs/talker")));
        std::thread::sleep(Duration::from_millis(300));
        let outcome = mainstay.command("upgrade", place).output().doing("run mainstay upgrade");
        std::thread::sleep(Duration::from_millis(700));
        over.store(true, Ordering::Relaxed);
        pauses.control.extend(control.join());
        pauses.api.extend(api.join());
        let output = outcome?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::new(format!("mainstay upgrade: {}: {said}", output.status)))
    })
}

/// The longest time between two answers.
fn longest_pause<T>(over: &AtomicBool, ask: impl Fn() -> Result<T>) -> f64 {
    let mut longest: f64 = 0.0;
    let mut last = Instant::now();
    while !over.load(Ordering::Relaxed) {
        if ask().is_ok() {
            let now = Instant::now();
            longest = longest.max(now.seconds_since(last));
            last = now;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    longest.max(Instant::now().seconds_since(last))
}

/// The talker writes every millisecond; the stamps of its lines say when the keeper read them.
fn longest_log_gap(place: &Place) -> Result<f64> {
    let path = mainstay::log_dir(place, "talker").join("current");
    let text = fs::read_to_string(&path).doing(format_args!("read {}", path.display()))?;
    let stamps: Vec<f64> = text.lines().filter_map(second_of_day).collect();
    let gaps: Vec<f64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    percentile(&gaps, 100.0).ok_or_else(|| Failure::new("the talker's log has no stamps"))
}

fn second_of_day(line: &str) -> Option<f64> {
    let (_, time) = line.split_once('T')?;
    let mut parts = time.split_once('Z')?.0.split(':');
    let mut next = || parts.next()?.parse::<f64>().ok();
    Some(next()? * 3600.0 + next()? * 60.0 + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_to_its_fraction() {
        let second = second_of_day("2026-01-02T00:01:02.250000000Z stdout F 17");
        assert_eq!(second, Some(62.25));
    }
}
