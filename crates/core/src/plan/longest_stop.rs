//! How long a shutdown takes at most, by the stop times that its jobs have.
//!
//! A job is told to stop when nothing that needs it is left, apps go by `stop_sequence`, their jobs
//! by theirs, apps of one sequence in lock-step, jobs without an app last. The longest way through that order counts: the times that
//! were written down for its jobs, each again for a `stop.exec` and again for hooks, and one usual
//! time for all its other jobs together. Hooks that run before a signal, or at each end, are on no
//! way: they run in the time of the job whose end they wait for. Who waits `once` for another's
//! `stopped` may as well be a service that has run ever since: its time counts.

use super::{AppPlan, Condition, JobPlan, Plan, SourceRef, Stop, Trigger};
use crate::event::During;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A shutdown of a plan in which no time was written down; Docker allows ten seconds.
pub const USUAL_SHUTDOWN: Duration = Duration::from_secs(8);
/// What the node itself needs at the end.
const OWN: Duration = Duration::from_secs(1);

/// The jobs that hold a shutdown up the longest, by their place in the plan, in stopping order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongestStop {
    pub jobs: Vec<usize>,
    pub time: Duration,
}

impl LongestStop {
    /// `written` says whether somebody wrote a job's stop time down.
    #[must_use]
    pub fn of(plan: &Plan, written: impl Fn(usize) -> bool) -> LongestStop {
        Order::new(plan).longest(plan, written)
    }
}

/// Where a way ends: a job, and whether a job without a written time is on the way.
type End = (usize, bool);

/// The longest ways that end somewhere, without and with a job that has no written time.
#[derive(Debug, Clone, Copy, Default)]
struct Ways([Option<(Duration, End)>; 2]);

impl Ways {
    /// Whether it is the longest so far; of two of one length the later.
    fn add(&mut self, (time, end): (Duration, End)) -> bool {
        let way = &mut self.0[usize::from(end.1)];
        let longest = way.is_none_or(|(longest, _)| time >= longest);
        if longest {
            *way = Some((time, end));
        }
        longest
    }

    fn join(&mut self, other: Ways) {
        for way in other.iter() {
            self.add(way);
        }
    }

    fn iter(self) -> impl Iterator<Item = (Duration, End)> {
        self.0.into_iter().flatten()
    }
}

/// Who stops after whom.
struct Order {
    /// Those that a job needs: they stop after it.
    needs: Vec<Vec<usize>>,
    /// Jobs that run for the end of another one.
    is_hook: Vec<bool>,
    has_hooks: Vec<bool>,
}

impl Order {
    fn new(plan: &Plan) -> Order {
        let places: BTreeMap<&str, usize> =
            plan.jobs.iter().enumerate().map(|(at, job)| (job.name.as_str(), at)).collect();
        let place = |source: &SourceRef| match source {
            SourceRef::Job(name) => places.get(name.as_str()).copied(),
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => None,
        };
        let count = plan.jobs.len();
        let mut order = Order {
            needs: vec![Vec::new(); count],
            is_hook: vec![false; count],
            has_hooks: vec![false; count],
        };
        for (at, job) in plan.jobs.iter().enumerate() {
            let other = |source| place(source).filter(|source| *source != at);
            for condition in &job.when.once {
                let Some(source) = other(&condition.source) else { continue };
                if condition.event.ends() {
                    order.is_hook[at] |= condition.event.during() == Some(During::Stop);
                    order.has_hooks[source] = true;
                } else {
                    order.needs[at].push(source);
                }
            }
            for condition in triggers(job).iter().filter(|it| it.event.ends()) {
                let Some(source) = other(&condition.source) else { continue };
                order.is_hook[at] = true;
                order.has_hooks[source] = true;
            }
            order.needs[at].extend(job.follows.as_ref().and_then(|follows| other(&follows.source)));
        }
        order
    }

    /// The jobs in an order in which each comes after those that need it; of a circle none.
    fn sorted(&self) -> Vec<usize> {
        let mut needed_by = vec![0_usize; self.needs.len()];
        self.needs.iter().flatten().for_each(|source| needed_by[*source] += 1);
        let mut sorted: Vec<usize> =
            (0..needed_by.len()).filter(|at| needed_by[*at] == 0).collect();
        let mut next = 0;
        while let Some(at) = sorted.get(next).copied() {
            next += 1;
            for source in &self.needs[at] {
                needed_by[*source] -= 1;
                if needed_by[*source] == 0 {
                    sorted.push(*source);
                }
            }
        }
        sorted
    }

    /// The step of each job: that of its app and its own in it, or that of whoever needs it, if
    /// later; and whether it is a later one.
    fn steps(&self, plan: &Plan, sorted: &[usize]) -> Vec<(Step, bool)> {
        let apps: BTreeMap<&str, &AppPlan> =
            plan.apps.iter().map(|app| (app.name.as_str(), app)).collect();
        let app_of = |job: &JobPlan| apps.get(job.app.as_ref()?.as_str()).copied();
        let mut sequences: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for job in &plan.jobs {
            if let Some(app) = app_of(job) {
                let own = app.stop_sequence_of(&job.place);
                sequences.entry(app.name.as_str()).or_default().insert(own);
            }
        }
        let own = |job: &JobPlan| {
            app_of(job).map_or((u64::MAX, 0), |app| {
                let own = app.stop_sequence_of(&job.place);
                let all = sequences.get(app.name.as_str());
                let earlier = all.map_or(0, |all| all.range(..own).count());
                (u64::from(app.stop_sequence), earlier)
            })
        };
        let mut steps: Vec<_> = plan.jobs.iter().map(|job| (own(job), false)).collect();
        for at in sorted {
            let needed_until = steps[*at].0;
            for source in &self.needs[*at] {
                if steps[*source].0 < needed_until {
                    steps[*source].1 = true;
                }
                steps[*source].0 = steps[*source].0.max(needed_until);
            }
        }
        steps
    }

    fn longest(&self, plan: &Plan, written: impl Fn(usize) -> bool) -> LongestStop {
        let mut sorted = self.sorted();
        let steps = self.steps(plan, &sorted);
        sorted.sort_by_key(|at| steps[*at].0);
        let mut before: BTreeMap<End, End> = BTreeMap::new();
        let mut ways = vec![Ways::default(); plan.jobs.len()];
        let mut levels = Levels::default();
        for at in sorted.into_iter().filter(|at| !self.is_hook[*at]) {
            let job = &plan.jobs[at];
            let mut earlier = ways[at];
            earlier.join(levels.below(steps[at].0));
            let mut here = Ways::default();
            let unwritten = !written(at);
            let time = if unwritten { Duration::ZERO } else { self.time(at, job) };
            here.add((time, (at, unwritten)));
            for (way, last) in earlier.iter() {
                let end = (at, unwritten || last.1);
                if here.add((way.saturating_add(time), end)) {
                    before.insert(end, last);
                }
            }
            self.needs[at].iter().for_each(|source| ways[*source].join(here));
            levels.reached.join(here);
            if steps[at].1 {
                // It was to go before the others of this step: they wait for it.
                levels.below.join(here);
            }
        }
        longest(levels.reached, &before)
    }

    /// What it takes to stop a job, with all that belongs to its end.
    fn time(&self, at: usize, job: &JobPlan) -> Duration {
        let times = 1 + u32::from(job.stop.exec.is_some()) + u32::from(self.has_hooks[at]);
        job.stop.timeout.saturating_mul(times)
    }
}

/// The sequence of an app, and how many steps of its own come before.
type Step = (u64, usize);

/// The ways through steps that wait for each other.
#[derive(Debug, Clone, Copy, Default)]
struct Levels {
    level: Step,
    below: Ways,
    reached: Ways,
}

impl Levels {
    /// Those that end before this step, which is not below the last one.
    fn below(&mut self, level: Step) -> Ways {
        if level > self.level {
            (self.level, self.below) = (level, self.reached);
        }
        self.below
    }
}

fn longest(ways: Ways, before: &BTreeMap<End, End>) -> LongestStop {
    let usual = Stop::default().timeout;
    let whole = |(time, end): (Duration, End)| {
        (time.saturating_add(if end.1 { usual } else { Duration::ZERO }).saturating_add(OWN), end)
    };
    let Some((time, end)) = ways.iter().map(whole).max_by_key(|(time, _)| *time) else {
        return LongestStop { jobs: Vec::new(), time: OWN };
    };
    let way = std::iter::successors(Some(end), |end| before.get(end).copied());
    let mut jobs: Vec<usize> = way.map(|(at, _)| at).collect();
    jobs.reverse();
    LongestStop { jobs, time }
}

fn triggers(job: &JobPlan) -> &[Condition] {
    match &job.when.trigger {
        Some(Trigger::Each(conditions)) => conditions,
        Some(Trigger::Interval(_) | Trigger::Cron(_)) | None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::EventName,
        name::Name,
        plan::{Awaited, ExitRule, NodePlan},
    };

    fn job(name: &str, stop: u64) -> JobPlan {
        let mut job = JobPlan::new(Name::new(name).expect("a name"), vec!["true".to_owned()]);
        job.stop.timeout = Duration::from_secs(stop);
        job
    }

    fn after(mut job: JobPlan, source: &str, event: EventName) -> JobPlan {
        let source = SourceRef::Job(Name::new(source).expect("a name"));
        job.when.once.push(Condition { source, event: Awaited::Event(event) });
        job
    }

    fn plan(jobs: Vec<JobPlan>) -> Plan {
        let node = NodePlan {
            name: "n".to_owned(),
            stop_timeout: USUAL_SHUTDOWN,
            exit: ExitRule::All,
            log_level: "info".to_owned(),
            machine: None,
        };
        Plan::new(node, jobs)
    }

    /// A job's time is written unless it is the usual one.
    fn longest(plan: &Plan) -> (Vec<&str>, u64) {
        let usual = Stop::default().timeout;
        let found = LongestStop::of(plan, |at| plan.jobs[at].stop.timeout != usual);
        let names = found.jobs.iter().map(|at| plan.jobs[*at].name.as_str()).collect();
        (names, found.time.as_secs())
    }

    #[test]
    fn times_of_a_chain_add_up_and_others_count_once() {
        let jobs = vec![
            job("db", 20),
            after(job("cache", 5), "db", EventName::Healthy),
            after(job("api", 5), "cache", EventName::Healthy),
            after(job("web", 30), "api", EventName::Healthy),
            job("beside", 40),
        ];
        assert_eq!(longest(&plan(jobs)), (vec!["web", "api", "cache", "db"], 56));
        assert_eq!(longest(&plan(vec![job("a", 30), job("b", 20)])), (vec!["a"], 31));
        assert_eq!(longest(&plan(vec![job("a", 5), job("b", 5)])).1, 6);
    }

    #[test]
    fn a_command_and_hooks_take_the_time_again() {
        let mut drained = job("web", 10);
        drained.stop.exec = Some(vec!["drain".to_owned()]);
        let hook = after(job("leave", 60), "web", EventName::Stopping);
        assert_eq!(longest(&plan(vec![drained, hook])), (vec!["web"], 31));
    }

    #[test]
    fn a_service_that_has_waited_for_an_end_has_its_own_time() {
        let jobs = vec![
            job("migrate", 5),
            after(job("web", 30), "migrate", EventName::Stopped),
            after(job("proxy", 20), "web", EventName::Healthy),
        ];
        assert_eq!(longest(&plan(jobs)), (vec!["proxy", "web"], 51));
    }

    fn member(name: &str, stop: u64, app: &str, sequence: u32) -> JobPlan {
        let mut job = job(name, stop);
        job.app = Some(Name::new(app).expect("a name"));
        job.place.stop_sequence = sequence;
        job
    }

    #[test]
    fn apps_stop_one_after_the_other_and_jobs_without_one_last() {
        let mut plan = plan(vec![
            job("log", 7),
            member("a1", 10, "a", 1),
            member("a2", 20, "a", 2),
            member("b", 100, "b", 1),
        ]);
        for (name, sequence) in [("a", 2), ("b", 1)] {
            let app = AppPlan::new(Name::new(name).expect("a name"));
            plan.apps.push(AppPlan { stop_sequence: sequence, ..app });
        }
        assert_eq!(longest(&plan), (vec!["b", "a1", "a2", "log"], 138));
        // Whoever needs one of an earlier step goes before it.
        plan.jobs[1] = after((*plan.jobs[1]).clone(), "b", EventName::Healthy).into();
        assert_eq!(longest(&plan).1, 138);
    }

    #[test]
    fn apps_of_one_sequence_stop_in_lock_step() {
        let mut plan = plan(vec![
            member("a1", 10, "a", 1),
            member("a2", 40, "a", 2),
            member("b1", 30, "b", 4),
            member("b2", 20, "b", 9),
        ]);
        for name in ["a", "b"] {
            plan.apps.push(AppPlan::new(Name::new(name).expect("a name")));
        }
        assert_eq!(longest(&plan), (vec!["b1", "a2"], 71));
    }

    #[test]
    fn a_circle_is_on_no_way() {
        let jobs = vec![
            after(job("a", 50), "b", EventName::Healthy),
            after(job("b", 50), "a", EventName::Healthy),
            job("c", 9),
        ];
        assert_eq!(longest(&plan(jobs)), (vec!["c"], 10));
    }
}
