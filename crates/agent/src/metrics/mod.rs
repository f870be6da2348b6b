//! What the loop counts while it runs, and what it says about itself when somebody wants to know.
//!
//! Counting is cheap and always on. [`Measures`] is taken inside the loop and is therefore a plain
//! copy; making text of it is done elsewhere. What is counted about a job goes with the job, so
//! that nothing here grows. A new agent begins at zero: whoever reads counters expects that.

pub(crate) mod user_metrics;

use crate::agent::Agent;
use mainstay_core::{
    discovery::InstanceList,
    event::{Event, Source},
    job::{Health, Job},
    name::Name,
    plan::{JobPlan, Plan, WatchPlan},
};
use mainstay_wire::api::{
    CheckMeasures, EventCounts, Exits, Histogram, JobMeasures, Measures, WatchMeasures,
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// Upper bounds for what takes microseconds to a second, in seconds.
const QUICK: &[f64] = &[0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1.0];
/// Upper bounds for what asks others, in seconds.
const CHECK_SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

#[derive(Debug, Default)]
struct JobMeter {
    seen: EventCounts,
    exits: Exits,
    /// By the name of the check.
    checks: BTreeMap<String, CheckMeter>,
}

#[derive(Debug, Clone)]
struct CheckMeter {
    passed: u64,
    failed: u64,
    durations: Histogram,
}

#[derive(Debug)]
pub(crate) struct Meter {
    /// Boxed: a table has room for more than are in it.
    jobs: HashMap<Name, Box<JobMeter>>,
    watches: BTreeMap<String, EventCounts>,
    node: EventCounts,
    steps: Histogram,
    /// The longest that the loop was busy with one thing since it began.
    longest_step: Duration,
    lateness: Histogram,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        let (steps, lateness) = (Histogram::new(QUICK), Histogram::new(QUICK));
        let (jobs, watches) = (HashMap::new(), BTreeMap::new());
        let (node, longest_step) = (EventCounts::default(), Duration::ZERO);
        Meter { jobs, watches, node, steps, longest_step, lateness }
    }

    pub(crate) fn events(&mut self, events: &[Event]) {
        for event in events {
            match &event.source {
                Source::Job(name) => {
                    let job = self.job(name);
                    job.seen.note(&event.kind);
                    job.exits.note(&event.kind);
                }
                Source::Node(_) | Source::Rollout(_) => self.node.note(&event.kind),
                Source::Watch(watch) => {
                    let seen = self.watches.entry(watch.name().to_owned()).or_default();
                    seen.note(&event.kind);
                }
            }
        }
    }

    fn job(&mut self, name: &Name) -> &mut JobMeter {
        // Once in the life of a job, rather than a copy of its name for every event.
        if !self.jobs.contains_key(name) {
            self.jobs.insert(name.clone(), Box::default());
        }
        self.jobs.get_mut(name).expect("it was just made")
    }

    /// An input was taken through all its steps.
    pub(crate) fn stepped(&mut self, took: Duration) {
        self.steps.observe(took.as_secs_f64());
        self.busy(took);
    }

    /// The loop was busy for so long: with an input, a question or a file.
    pub(crate) fn busy(&mut self, took: Duration) {
        self.longest_step = self.longest_step.max(took);
    }

    /// From now on others wait for the loop: until now there was nobody.
    pub(crate) fn begin(&mut self) {
        self.longest_step = Duration::ZERO;
    }

    /// A timer was due so long ago.
    pub(crate) fn late(&mut self, by: Duration) {
        self.lateness.observe(by.as_secs_f64());
    }

    /// A check has answered. `took`: `None` when it was not asked by us.
    pub(crate) fn checked(
        &mut self,
        job: &Name,
        check: &str,
        passed: bool,
        took: Option<Duration>,
    ) {
        let checks = &mut self.job(job).checks;
        if !checks.contains_key(check) {
            let durations = Histogram::new(CHECK_SECONDS);
            checks.insert(check.to_owned(), CheckMeter { passed: 0, failed: 0, durations });
        }
        let meter = checks.get_mut(check).expect("it was just made");
        match passed {
            true => meter.passed += 1,
            false => meter.failed += 1,
        }
        took.into_iter().for_each(|took| meter.durations.observe(took.as_secs_f64()));
    }

    pub(crate) fn forget(&mut self, job: &Name) {
        self.jobs.remove(job);
    }

    /// What is not in the plan any more is not counted any more.
    pub(crate) fn keep(&mut self, plan: &Plan) {
        self.watches.retain(|name, _| plan.watches.iter().any(|it| it.name.as_str() == name));
        for job in &plan.jobs {
            if let Some(meter) = self.jobs.get_mut(&job.name) {
                meter.checks.retain(|name, _| job.checks.iter().any(|check| check.name == *name));
            }
        }
    }
}

impl Agent {
    pub(crate) fn measures(&self) -> Measures {
        Measures {
            node: self.node.plan().node.name.clone(),
            phase: self.node.phase(),
            agent_restarts: self.about.agent_restarts,
            journal_failed: self.journal.has_failed(),
            events: self.meter.node.clone(),
            steps: self.meter.steps.clone(),
            longest_step: self.meter.longest_step,
            lateness: self.meter.lateness.clone(),
            jobs: self.jobs_measures(),
            watches: self.node.plan().watches.iter().map(|it| self.watch_measures(it)).collect(),
            apps: self.apps(),
            containerpilot: self.node.plan().containerpilot.is_some(),
        }
    }

    fn watch_measures(&self, plan: &WatchPlan) -> WatchMeasures {
        let state = self.node.watch(plan.name.as_str());
        WatchMeasures {
            name: plan.name.clone(),
            instances: state.and_then(|state| state.instances()).map(InstanceList::len),
            events: self.meter.watches.get(plan.name.as_str()).cloned().unwrap_or_default(),
        }
    }

    fn jobs_measures(&self) -> Vec<JobMeasures> {
        let addresses: HashMap<&Name, &str> =
            self.addresses.iter().map(|(job, address)| (job, address.as_str())).collect();
        let jobs = self.node.jobs();
        jobs.map(|(plan, job)| {
            self.job_measures(plan, job, addresses.get(&plan.name).copied().unwrap_or_default())
        })
        .collect()
    }

    fn job_measures(&self, plan: &JobPlan, job: &Job, address: &str) -> JobMeasures {
        let meter = self.meter.jobs.get(&plan.name);
        let checks = plan.checks.iter().zip(job.checks());
        JobMeasures {
            name: plan.name.clone(),
            phase: job.phase(),
            desired: job.desired(),
            health: job.health(),
            awaits_pass: job.awaits_pass(),
            as_desired: job.is_as_desired() && job.health() != Health::Unhealthy,
            restarts: job.restarts(),
            since: job.since(),
            events: meter.map(|meter| meter.seen.clone()).unwrap_or_default(),
            exits: meter.map(|meter| meter.exits).unwrap_or_default(),
            checks: checks
                .map(|(check, state)| {
                    let meter = meter.and_then(|meter| meter.checks.get(&check.name));
                    CheckMeasures {
                        name: check.name.clone(),
                        verdict: state.verdict(),
                        passed: meter.map_or(0, |meter| meter.passed),
                        failed: meter.map_or(0, |meter| meter.failed),
                        durations: meter
                            .map(|meter| meter.durations.clone())
                            .filter(|durations| durations.count() > 0),
                    }
                })
                .collect(),
            advertised: plan.advertise.as_ref().map(|it| (address.to_owned(), it.port)),
        }
    }
}
