//! What supervision costs when nothing happens: context switches of every process that is no job.

use std::time::Duration;

use rustix::process::Pid;

use super::supervised::Supervised;
use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::Mainstay;
use crate::process::tree;

const SPAN: Duration = Duration::from_secs(10);

/// Wake-ups per second; `agent` is Mainstay's alone.
#[derive(Debug)]
pub(crate) struct Wakeups {
    pub parents: f64,
    pub agent: Option<f64>,
}

pub(crate) fn measure(supervised: &Supervised, who: Who) -> Wakeups {
    let agent = (who == Who::Mainstay).then(|| Mainstay::agent(supervised.root)).flatten();
    let mut parents = supervised.supervisors();
    parents.retain(|pid| Some(*pid) != agent);
    let agent: Vec<Pid> = agent.into_iter().collect();
    let before = (tree::switches(&parents), tree::switches(&agent));
    std::thread::sleep(SPAN);
    let per_second =
        |after: u64, before: u64| after.saturating_sub(before) as f64 / SPAN.as_secs_f64();
    Wakeups {
        parents: per_second(tree::switches(&parents), before.0),
        agent: (!agent.is_empty()).then(|| per_second(tree::switches(&agent), before.1)),
    }
}

pub(crate) fn figures(jobs: usize) -> [Figure; 2] {
    [
        Figure::new("idle", format!("wake-ups when idle, {jobs} jobs (keeper)"), Unit::PerSecond)
            .bound(Bound::AtMost(0.0)),
        Figure::new(
            "idle-agent",
            format!("wake-ups when idle, {jobs} jobs (agent)"),
            Unit::PerSecond,
        )
        .bound(Bound::AtMost(0.0)),
    ]
}
