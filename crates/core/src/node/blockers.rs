//! What can still happen: which conditions may yet be met, and why others never will.
//!
//! A job *may start* if it has a process or a restart ahead, if a user stopped it (and may start it
//! again), or if it waits and all it waits for may yet happen. Everything else follows from that:
//! only a job that may start can say that it is healthy, has exited or has stopped. It is worked
//! out as the smallest set for which this holds, so jobs that wait for one another in a circle
//! never start, which is the truth.
//!
//! Nothing is kept: the answer is worked out when somebody asks, or when the node has nothing left
//! that runs by itself.

use super::{JobId, Node, jobs::PerJob, wiring};
use crate::{
    app::RestReason,
    event::During,
    job::{Desired, Job, Phase},
    plan::{Condition, JobPlan, SourceRef, Trigger},
};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// How far a chain of causes is told.
const CAUSES: usize = 8;
/// How far its end is looked for.
const FAR: usize = 100;

/// One thing that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// A job, `watch.NAME`, `global`, `interval`, `cron`, `app.NAME` (its turn in it), or `user`.
    pub source: String,
    pub event: String,
    /// Wall clock, ns.
    pub since: i64,
    /// Why it can never happen any more, if so.
    pub reason: Option<String>,
}

/// Which jobs may start, by place.
#[derive(Debug)]
pub(super) struct Startable(PerJob<bool>);

/// What keeps jobs from running, as the node is now.
#[derive(Debug)]
pub struct Blockers<'a> {
    node: &'a Node,
    startable: OnceCell<Startable>,
}

impl Blockers<'_> {
    /// As `Node::waiting`.
    #[must_use]
    pub fn waiting(&self, job: &str) -> Vec<Waiting> {
        self.node.waiting_given(self, job)
    }
}

impl Startable {
    pub(super) fn may_start(&self, id: JobId) -> bool {
        self.0[id]
    }
}

impl Node {
    /// All that keeps the job from running. Empty when nothing does, or when it shall not run. For
    /// many jobs at a time see `blockers`.
    #[must_use]
    pub fn waiting(&self, job: &str) -> Vec<Waiting> {
        self.blockers().waiting(job)
    }

    /// What can still happen, worked out once for all who ask.
    #[must_use]
    pub fn blockers(&self) -> Blockers<'_> {
        Blockers { node: self, startable: OnceCell::new() }
    }

    fn waiting_given(&self, blockers: &Blockers<'_>, job: &str) -> Vec<Waiting> {
        let Some(id) = self.jobs.id(job) else { return Vec::new() };
        let (plan, job) = self.jobs.both(id);
        let since = job.since();
        let waiting = |source: &str, event: &str, reason: Option<String>| Waiting {
            source: source.to_owned(),
            event: event.to_owned(),
            since,
            reason,
        };
        if let Some(sequence) = self.awaited_sequence(id) {
            let app = plan.app.as_ref().map_or_else(String::new, |app| format!("app.{app}"));
            return vec![waiting(&app, &format!("sequence {sequence}"), None)];
        }
        if job.desired() == Desired::Disabled {
            return vec![waiting("user", "enable", Some(format!("{} is disabled", plan.name)))];
        }
        if job.phase() == Phase::Backoff {
            return vec![waiting(plan.name.as_str(), "backoff", None)];
        }
        if job.waits_for_hooks().is_some() {
            return self.awaited_hooks(id, since);
        }
        if !job.waits() {
            return Vec::new();
        }
        let startable = blockers.startable.get_or_init(|| self.startable());
        let condition = |it: &Condition| {
            let reason = (!self.may_happen(startable, it)).then(|| self.cause(startable, it));
            waiting(&it.source.to_string(), &it.event.to_string(), reason)
        };
        let to_come = |it: &Condition| {
            let reason = (!self.may_come(startable, it)).then(|| self.cause(startable, it));
            waiting(&it.source.to_string(), &it.event.to_string(), reason)
        };
        let mut all: Vec<Waiting> = self.unmet(plan, job).map(condition).collect();
        if let Some(follows) = &plan.follows
            && !self.is_up(&follows.source)
        {
            all.push(to_come(&Condition::up(&follows.source)));
        }
        let restarted = self.awaited_restart(id).map(|source| self.jobs.plan_of(source));
        all.extend(restarted.map(|source| waiting(source.name.as_str(), "restart", None)));
        match &plan.when.trigger {
            Some(_) if job.has_pending_trigger() => {}
            Some(Trigger::Each(conditions)) => all.extend(conditions.iter().map(to_come)),
            Some(Trigger::Interval(every)) => {
                all.push(waiting("interval", &format!("{every:?}"), None));
            }
            Some(Trigger::Cron(cron)) => all.push(waiting("cron", &cron.expression, None)),
            None => {}
        }
        all
    }

    /// Which conditions of its `when` have not come, whether it waits for them or not.
    #[must_use]
    pub fn not_come(&self, job: &str) -> Vec<&Condition> {
        let once = self.job_plan(job).map_or(&[][..], |plan| &plan.when.once);
        once.iter().filter(|it| !self.is_met(it)).collect()
    }

    /// Why a job that somebody wanted to run does not, and will not.
    pub(super) fn why_stuck_job(
        &self,
        blockers: &Blockers<'_>,
        plan: &JobPlan,
        job: &Job,
    ) -> Option<String> {
        let name = &plan.name;
        let verdict = if job.incarnation() == 0 { "never ran" } else { "can run no more" };
        if let Some(rests) = self.left_at_rest(plan, job) {
            return (job.incarnation() == 0).then(|| format!("{name} {verdict}: {rests}"));
        }
        if job.was_given_up_waiting() {
            let missing = self.not_come(name.as_str());
            let missing: Vec<String> =
                missing.iter().map(|it| format!("{} {}", it.source, it.event)).collect();
            return Some(format!("{name} {verdict}: it waited for {}", missing.join(" and ")));
        }
        let waiting = blockers.waiting(name.as_str());
        let waiting: Vec<String> = waiting
            .iter()
            .map(|it| match &it.reason {
                Some(reason) => {
                    format!("{} {}, which can never come: {reason}", it.source, it.event)
                }
                None => format!("{} {}", it.source, it.event),
            })
            .collect();
        let waits = job.desired() != Desired::Disabled && !job.holds() && !waiting.is_empty();
        waits.then(|| format!("{name} {verdict}: it waited for {}", waiting.join(" and ")))
    }

    fn awaited_hooks(&self, id: JobId, since: i64) -> Vec<Waiting> {
        let busy = |hook: &&JobId| self.jobs[**hook].is_hook_run();
        let name = |hook: &JobId| self.jobs.name(*hook).to_string();
        let hooks = self.wiring.stopping_hooks(id).iter().filter(busy).map(name);
        hooks
            .map(|source| Waiting { source, event: "stopped".to_owned(), since, reason: None })
            .collect()
    }

    fn unmet<'a>(&'a self, plan: &'a JobPlan, job: &Job) -> impl Iterator<Item = &'a Condition> {
        let skipped = job.skips_latches();
        plan.when.once.iter().filter(move |it| !skipped && !self.is_met(it))
    }

    pub(super) fn startable(&self) -> Startable {
        let mut startable =
            Startable(self.jobs.each(|(_, plan, job)| self.may_run_anyway(plan, job)));
        let mut open: Vec<JobId> = self.jobs.ids().collect();
        while let Some(id) = open.pop() {
            let waits = self.jobs[id].waits();
            if waits && !startable.may_start(id) && self.may_pass_once(&startable, id) {
                startable.0[id] = true;
                open.extend(self.wiring.listeners(id));
            }
        }
        startable
    }

    /// It is there, will be again, or rests until somebody or its app comes to it.
    fn may_run_anyway(&self, plan: &JobPlan, job: &Job) -> bool {
        let called_for = match self.rest_reason_of(plan, job) {
            None | Some(RestReason::NotReached) => job.rests(),
            Some(RestReason::StartAborted | RestReason::AppFailed) => false,
        };
        job.holds() || job.backs_off() || called_for
    }

    fn may_pass_once(&self, startable: &Startable, id: JobId) -> bool {
        let (plan, job) = self.jobs.both(id);
        let may = |it: &Condition| self.may_happen(startable, it);
        let again = |it: &Condition| self.may_come(startable, it);
        // That it was up once does not help.
        let followed = |source| self.is_up(source) || again(&Condition::up(source));
        let each = wiring::triggers(plan);
        self.unmet(plan, job).all(may)
            && plan.follows.as_ref().is_none_or(|it| followed(&it.source))
            && (each.is_empty() || job.has_pending_trigger() || each.iter().any(again))
    }

    /// It has happened or may yet.
    fn may_happen(&self, startable: &Startable, condition: &Condition) -> bool {
        self.is_met(condition) || self.may_come(startable, condition)
    }

    /// It may happen from now on.
    fn may_come(&self, startable: &Startable, condition: &Condition) -> bool {
        match &condition.source {
            SourceRef::Node | SourceRef::Watch(_) => true,
            SourceRef::Job(name) => self.jobs.id(name.as_str()).is_some_and(|id| {
                let gives_up = self.jobs[id].waits() && self.jobs[id].will_give_up();
                match condition.event.during() {
                    Some(During::Run) => startable.may_start(id),
                    Some(During::Stop | During::Gone) => startable.may_start(id) || gives_up,
                    Some(During::Wait) => gives_up,
                    // No job says it.
                    None => false,
                }
            }),
        }
    }

    /// The chain of causes, from the nearest to the one that somebody has to look at; of a long one
    /// its beginning and that end.
    fn cause(&self, startable: &Startable, condition: &Condition) -> String {
        let mut links = Vec::new();
        let mut seen = Vec::new();
        let mut next = Some(condition.clone());
        while let Some(condition) = next.take() {
            if seen.contains(&condition) {
                links.push("and so on".to_owned());
                break;
            }
            if seen.len() + 1 == CAUSES {
                let end = self.end_of_chain(startable, &condition);
                if end != condition {
                    links.push("and so on".to_owned());
                }
                links.push(self.link(startable, &end));
                break;
            }
            links.push(self.link(startable, &condition));
            next = self.behind(startable, &condition);
            seen.push(condition);
        }
        links.join(": ")
    }

    /// In a circle there is none: then any link of it. A status asks this of every job that waits.
    fn end_of_chain(&self, startable: &Startable, condition: &Condition) -> Condition {
        let mut end = condition.clone();
        for _ in 0..FAR {
            match self.behind(startable, &end) {
                Some(next) => end = next,
                None => break,
            }
        }
        end
    }

    /// What keeps the source of this condition from ever starting, if it waits for something.
    fn behind(&self, startable: &Startable, condition: &Condition) -> Option<Condition> {
        let SourceRef::Job(name) = &condition.source else { return None };
        let id = self.jobs.id(name.as_str())?;
        let (plan, job) = self.jobs.both(id);
        let wanted = self.left_at_rest(plan, job).is_none() && job.desired() == Desired::Run;
        let stuck = wanted && job.waits() && !self.may_pass_once(startable, id);
        if stuck { self.blocked_by(startable, plan, job) } else { None }
    }

    fn link(&self, startable: &Startable, condition: &Condition) -> String {
        let Condition { source: SourceRef::Job(name), event } = condition else {
            return format!("{} does not say {}", condition.source, condition.event);
        };
        let Some(id) = self.jobs.id(name.as_str()) else {
            return format!("there is no job '{name}'");
        };
        let (plan, job) = self.jobs.both(id);
        if let Some(rests) = self.left_at_rest(plan, job) {
            return format!("{name} rests: {rests}");
        }
        let exit = job.last_exit().map_or_else(String::new, |exit| format!(", {exit}"));
        match (job.desired(), job.phase()) {
            (Desired::Disabled, _) => format!("{name} is disabled"),
            (Desired::Rest, Phase::Fatal) => match job.last_exit() {
                Some(exit) => format!("{name} was given up, {exit}"),
                None => format!("{name} was given up before it could start"),
            },
            (Desired::Rest, Phase::Exited) => format!("{name} has ended{exit}"),
            (Desired::Run, _) if job.waits() && !self.may_pass_once(startable, id) => {
                match self.behind(startable, condition) {
                    Some(it) => {
                        format!("{name} can never start, it waits for {} {}", it.source, it.event)
                    }
                    None => format!("{name} can never start"),
                }
            }
            (Desired::Run | Desired::Rest, _) => format!("{name} does not say {event}"),
        }
    }

    /// Why a job rests that nobody has stopped and that its app will not come to any more.
    fn left_at_rest(&self, plan: &JobPlan, job: &Job) -> Option<String> {
        let app = plan.app.as_ref()?;
        match self.rest_reason_of(plan, job)? {
            RestReason::StartAborted => Some(format!("the start of its app {app} was aborted")),
            RestReason::AppFailed => {
                Some(format!("its app {app} was stopped, because a job of it failed"))
            }
            RestReason::NotReached => None,
        }
    }

    fn blocked_by(&self, startable: &Startable, plan: &JobPlan, job: &Job) -> Option<Condition> {
        let never = |it: &Condition| !self.may_come(startable, it);
        let follows = plan
            .follows
            .iter()
            .map(|it| Condition::up(&it.source))
            .filter(|it| !self.is_up(&it.source));
        let latch = self.unmet(plan, job).cloned().chain(follows).find(never);
        latch.or_else(|| wiring::triggers(plan).first().cloned())
    }
}
