//! A reload that finds nothing changed, as a user would call it.

use super::supervised::{SETTLE, Supervised};
use super::{Scene, by_jobs, or_gap};
use crate::failure::{Doing, Failure, Result};
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::Mainstay;
use crate::process::Instant;
use crate::process::watch::Watch;
use crate::sample::{median, percentile};

const RELOADS: usize = 10;

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let what = format!("reload of {jobs} jobs that changes nothing");
    let mut usual = Figure::new("reload-p50", format!("{what}, p50"), Unit::Milliseconds)
        .bound(Bound::AtMost(by_jobs(jobs, 0.012, 0.05)));
    let mut worst =
        Figure::new("reload-worst", format!("{what}, worst of {RELOADS}"), Unit::Milliseconds);
    let samples =
        Supervised::start(scene, watch, mainstay, &scene.work(jobs)).and_then(|supervised| {
            std::thread::sleep(SETTLE);
            (0..RELOADS).map(|_| reload_once(mainstay, &supervised)).collect::<Result<Vec<f64>>>()
        });
    let samples = or_gap(Who::Mainstay, samples).unwrap_or_default();
    usual.set(Who::Mainstay, median(&samples));
    worst.set(Who::Mainstay, percentile(&samples, 100.0));
    vec![usual, worst]
}

/// From the start of the command to its end.
fn reload_once(mainstay: &Mainstay, supervised: &Supervised) -> Result<f64> {
    let mut command = mainstay.command("reload", &supervised.place);
    let begun = Instant::now();
    let output = command.output().doing("run mainstay reload")?;
    let seconds = Instant::now().seconds_since(begun);
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() && said(&output.stdout).contains("nothing") {
        true => Ok(seconds),
        false => Err(Failure::new(format!(
            "mainstay reload: {}: {}{}",
            output.status,
            said(&output.stdout),
            said(&output.stderr)
        ))),
    }
}
