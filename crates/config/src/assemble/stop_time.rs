//! The time that a shutdown has: what `[node]` says, else what the stop times of the jobs add up to.

use crate::{
    keys::job::PlacedJob,
    notation::duration,
    reader::{Place, Reader},
};
use mainstay_core::plan::{LongestStop, Plan, USUAL_SHUTDOWN};
use std::time::Duration;

/// So many jobs of a long chain are named.
const MOST_NAMED: usize = 8;

/// Where the stop time of each job is written.
pub(super) fn written(jobs: &[PlacedJob]) -> Vec<Option<Place>> {
    let place = |it: &PlacedJob| Some(Place { file: it.at.file, span: it.job.stop_timeout? });
    jobs.iter().map(place).collect()
}

/// Sets the plan's time unless it is written at `set`. Gives the chain that needs more than usual.
pub(super) fn judge(
    r: &mut Reader<'_>,
    plan: &mut Plan,
    set: Option<Place>,
    written: &[Option<Place>],
) -> Option<LongestStop> {
    let longest = LongestStop::of(plan, |at| written.get(at).is_some_and(Option::is_some));
    let first = longest.jobs.iter().find_map(|at| *written.get(*at)?)?;
    let Some(set) = set else {
        plan.node.stop_timeout = longest.time.max(USUAL_SHUTDOWN);
        return (longest.time > USUAL_SHUTDOWN).then_some(longest);
    };
    // What the node takes for itself is no reason to warn.
    let time = longest.time.saturating_sub(Duration::from_secs(1));
    if plan.node.stop_timeout < time {
        let [given, needed] = [plan.node.stop_timeout, longest.time].map(duration::written);
        let chain = chain(r, plan, &longest, written);
        r.file = set.file;
        r.within("node.stop_timeout", |r| {
            let message = format!("{given} is less than its jobs may take to stop: {chain}");
            let help = format!("write \"{needed}\", or leave it out: whoever is late is killed");
            r.warn_beside(set.span, (first, "this time may be cut"), message, help);
        });
    }
    None
}

fn chain(r: &Reader<'_>, plan: &Plan, longest: &LongestStop, written: &[Option<Place>]) -> String {
    let named = |at: &usize| {
        let job = &plan.jobs[*at];
        let place = written.get(*at).copied().flatten();
        place.map_or_else(
            || job.name.to_string(),
            |place| {
                let line = r.file_line(place.file, place.span.start);
                format!("{} {} ({line})", job.name, duration::written(job.stop.timeout))
            },
        )
    };
    let mut all: Vec<String> = longest.jobs.iter().take(MOST_NAMED).map(named).collect();
    if longest.jobs.len() > MOST_NAMED {
        all.push(format!("{} more", longest.jobs.len() - MOST_NAMED));
    }
    all.join(" → ")
}
