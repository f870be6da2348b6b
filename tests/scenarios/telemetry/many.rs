//! Many jobs, and somebody who looks at them all the time.

use super::{metrics, start};
use std::{
    fmt::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

const JOBS: usize = 200;

#[test]
fn scrapes_of_many_jobs_do_not_hold_up_the_node() {
    let mut config = "[telemetry]\nlisten = \"127.0.0.1:PORT\"\n".to_owned();
    for job in 0..JOBS {
        let _ = write!(config, "[jobs.j{job}]\nexec = \"sleep 1000\"\n");
    }
    let (node, port) = start(&config);
    super::until_value(port, "mainstay_jobs{state=\"RUNNING\"}", JOBS as f64);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(metrics(port).get("mainstay_keeper_up"), Some(1.0));
                }
            });
        }
        for _ in 0..5 {
            node.must(&["restart", "j0"]);
        }
        over.store(true, Ordering::Relaxed);
    });
    let all = metrics(port);
    let states = all.series.keys().filter(|key| key.starts_with("mainstay_job_state{")).count();
    assert_eq!(states, JOBS);
}
