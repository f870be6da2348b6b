//! What the loop counts while it runs, and what it says about itself when somebody wants to know.
//!
//! Counting is cheap and always on. [`Measures`] is taken inside the loop and is therefore a plain
//! copy; making text of it is done elsewhere. What is counted about a job goes with the job, so
//! that nothing here grows. A new agent begins at zero: whoever reads counters expects that.

pub(crate) mod histogram;
pub(crate) mod user_metrics;

use crate::{
    agent::Agent,
    metrics::histogram::{Histogram, PATIENT, QUICK},
};
use mainstay_core::{
    event::{Event, EventName, Kind, RunEnd, Source},
    exit::Exit,
    job::{Desired, Health, Job, Phase, Verdict},
    name::Name,
    node::NodePhase,
    plan::{JobPlan, Plan, WatchPlan},
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// How often each event was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCounts([u64; EventName::ALL.len()]);

impl Default for EventCounts {
    fn default() -> EventCounts {
        EventCounts([0; EventName::ALL.len()])
    }
}

impl EventCounts {
    /// Those that were seen at all.
    pub fn iter(&self) -> impl Iterator<Item = (EventName, u64)> {
        EventName::ALL.iter().copied().zip(self.0).filter(|(_, count)| *count > 0)
    }

    fn note(&mut self, kind: &Kind) {
        self.0[kind.name() as usize] += 1;
    }
}

/// How runs of a job have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exits {
    /// As expected.
    pub success: u64,
    /// With a code that is not expected.
    pub failure: u64,
    pub signal: u64,
    pub oom: u64,
    /// They never began.
    pub error: u64,
}

impl Exits {
    fn note(&mut self, kind: &Kind) {
        let Some(RunEnd { exit, expected, .. }) = kind.run_end() else { return };
        match exit {
            _ if expected => self.success += 1,
            Exit::Code { .. } => self.failure += 1,
            Exit::Signal { oom: true, .. } => self.oom += 1,
            Exit::Signal { oom: false, .. } => self.signal += 1,
            Exit::Error { .. } => self.error += 1,
        }
    }
}

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
    jobs: HashMap<Name, JobMeter>,
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
                Source::Node(_) => self.node.note(&event.kind),
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
            self.jobs.insert(name.clone(), JobMeter::default());
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
            let durations = Histogram::new(PATIENT);
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

/// Everything that can be counted inside the loop, at one moment.
#[derive(Debug, Clone)]
pub struct Measures {
    pub node: String,
    pub phase: NodePhase,
    pub agent_restarts: u64,
    pub journal_failed: bool,
    /// Those of the node itself.
    pub events: EventCounts,
    pub steps: Histogram,
    /// Of this agent: with an input, or with a question.
    pub longest_step: Duration,
    pub lateness: Histogram,
    pub jobs: Vec<JobMeasures>,
    pub watches: Vec<WatchMeasures>,
    /// Show what ContainerPilot showed, too.
    pub containerpilot: bool,
}

#[derive(Debug, Clone)]
pub struct JobMeasures {
    pub name: Name,
    pub phase: Phase,
    pub desired: Desired,
    pub health: Health,
    pub as_desired: bool,
    pub restarts: u64,
    /// When it entered its phase: wall clock, ns.
    pub since: i64,
    pub events: EventCounts,
    pub exits: Exits,
    pub checks: Vec<CheckMeasures>,
    /// Where others are told to find it.
    pub advertised: Option<(String, u16)>,
}

#[derive(Debug, Clone)]
pub struct WatchMeasures {
    pub name: Name,
    /// `None`: not answered yet.
    pub instances: Option<usize>,
    pub events: EventCounts,
}

#[derive(Debug, Clone)]
pub struct CheckMeasures {
    pub name: String,
    pub verdict: Verdict,
    pub passed: u64,
    pub failed: u64,
    /// `None`: nobody asks it, it tells.
    pub durations: Option<Histogram>,
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
            jobs: self.node.jobs().map(|(plan, job)| self.job_measures(plan, job)).collect(),
            watches: self.node.plan().watches.iter().map(|it| self.watch_measures(it)).collect(),
            containerpilot: self.node.plan().containerpilot.is_some(),
        }
    }

    fn watch_measures(&self, plan: &WatchPlan) -> WatchMeasures {
        let state = self.node.watch(plan.name.as_str());
        WatchMeasures {
            name: plan.name.clone(),
            instances: state.and_then(|state| state.instances()).map(|all| all.len()),
            events: self.meter.watches.get(plan.name.as_str()).cloned().unwrap_or_default(),
        }
    }

    fn job_measures(&self, plan: &JobPlan, job: &Job) -> JobMeasures {
        let meter = self.meter.jobs.get(&plan.name);
        let checks = plan.checks.iter().zip(job.checks());
        JobMeasures {
            name: plan.name.clone(),
            phase: job.phase(),
            desired: job.desired(),
            health: job.health(),
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
            advertised: plan.advertise.as_ref().map(|advertise| {
                let known = self.addresses.iter().find(|(job, _)| *job == plan.name);
                let address = known.map(|(_, address)| address.clone());
                (address.unwrap_or_default(), advertise.port)
            }),
        }
    }
}
