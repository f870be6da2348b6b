//! From SIGKILL of a job to the exec of its next process, at no delay.
//!
//! Every sample takes another job: s6 and runit hold back one that has just been started.

use std::time::Duration;

use rustix::process::Signal;

use super::JOB;
use super::supervised::Supervised;
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::process::watch::Watch;
use crate::process::{Instant, tree};

const LIMIT: Duration = Duration::from_secs(5);
/// A peer that takes a second each is not asked two hundred times.
const ENOUGH: Duration = Duration::from_secs(15);

pub(crate) fn measure(supervised: &Supervised, watch: &mut Watch, samples: usize) -> Vec<f64> {
    let begin = Instant::now();
    let mut taken = Vec::new();
    for pid in supervised.jobs.iter().take(samples) {
        watch.drain();
        let killed = Instant::now();
        tree::kill(*pid, Signal::KILL);
        match watch.wait_for_exec(JOB, LIMIT) {
            Some((_, at)) => taken.push(at.seconds_since(killed)),
            None => eprintln!("a job was not restarted within {LIMIT:?}"),
        }
        if Instant::now().seconds_since(begin) > ENOUGH.as_secs_f64() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    taken
}

pub(crate) fn figures(jobs: usize) -> [Figure; 2] {
    let work = format!("crash to new process, {jobs} jobs");
    [
        Figure::new("crash-p50", format!("{work}, p50"), Unit::Milliseconds)
            .bound(Bound::Over(Who::Floor, 0.0004)),
        Figure::new("crash-p99", format!("{work}, p99"), Unit::Milliseconds)
            .bound(Bound::Over(Who::Floor, 0.001)),
    ]
}
