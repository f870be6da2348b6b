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
    each: HashMap<String, (u64, Instant)>,
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
        tally.each.iter().map(|(job, (count, _))| (job.clone(), *count)).collect()
    }

    /// The longest time that a job did not run, the time since its last run included.
    pub(super) fn longest_gap(&self) -> Duration {
        let tally = lock(&self.tally);
        let since = tally.each.values().map(|(_, last)| last.elapsed());
        since.max().unwrap_or_default().max(tally.longest_gap)
    }
}

impl Tally {
    fn add(&mut self, job: &str) {
        let now = Instant::now();
        let (count, last) = self.each.entry(job.to_owned()).or_insert((0, now));
        self.longest_gap = self.longest_gap.max(now - *last);
        (*count, *last) = (*count + 1, now);
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
