//! How often each job has run, as the event stream tells it.

use mainstay_tests::Node;
use serde_json::Value;
use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

#[derive(Debug)]
pub(super) struct Runs {
    follower: Child,
    tally: Arc<Mutex<Tally>>,
}

#[derive(Debug, Default)]
struct Tally {
    each: HashMap<String, RunCount>,
}

#[derive(Debug)]
struct RunCount {
    count: u64,
    last: Instant,
    longest_gap: Duration,
}

impl Runs {
    /// From now on.
    pub(super) fn count(node: &Node) -> Runs {
        let mut follower = node
            .command(&["events", "-f", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let lines = BufReader::new(follower.stdout.take().expect("it was piped")).lines();
        let tally = Arc::new(Mutex::new(Tally::default()));
        let shared = tally.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).expect("an event is JSON");
                if event["event"] == "exitSuccess"
                    && let Some(job) = event["source"].as_str()
                {
                    lock(&shared).add(job);
                }
            }
        });
        Runs { follower, tally }
    }

    pub(super) fn each(&self) -> HashMap<String, u64> {
        let tally = lock(&self.tally);
        tally.each.iter().map(|(job, runs)| (job.clone(), runs.count)).collect()
    }

    /// The longest time that one of the jobs whose names begin so did not run, the time since its
    /// last run included.
    pub(super) fn longest_gap(&self, prefix: &str) -> Duration {
        let tally = lock(&self.tally);
        let courses = tally.each.iter().filter(|(job, _)| job.starts_with(prefix));
        let gaps = courses.map(|(_, runs)| runs.longest_gap.max(runs.last.elapsed()));
        gaps.max().unwrap_or_default()
    }
}

impl Tally {
    fn add(&mut self, job: &str) {
        let now = Instant::now();
        let new = || RunCount { count: 0, last: now, longest_gap: Duration::ZERO };
        let runs = self.each.entry(job.to_owned()).or_insert_with(new);
        runs.longest_gap = runs.longest_gap.max(now - runs.last);
        (runs.count, runs.last) = (runs.count + 1, now);
    }
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.follower.kill();
        let _ = self.follower.wait();
    }
}
