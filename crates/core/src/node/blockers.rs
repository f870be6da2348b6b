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
    clock::Mono,
    event::During,
    exit::Exit,
    job::{Desired, Job, Phase},
    name::Name,
    plan::{Condition, Cron, JobPlan, SourceRef, Trigger},
};
use std::{cell::OnceCell, collections::BTreeSet, time::Duration};

/// How far a chain of causes is told.
const CAUSES: usize = 8;
/// How far its end is looked for.
const FAR: usize = 100;

/// One thing that keeps a job from running. `explain` has the words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// Its app has not come to its sequence yet.
    Sequence {
        app: Name,
        sequence: u32,
    },
    /// A user has disabled it.
    Disabled,
    /// It is started again once its back-off is over.
    Backoff {
        until: Mono,
    },
    /// A job that runs on behalf of its stop.
    Hook {
        job: Name,
    },
    /// Something that has to be said has not been said. `never`: nor will it be; why, from the
    /// nearest cause to the one that somebody has to look at.
    Condition {
        condition: Condition,
        never: Option<Vec<Cause>>,
    },
    /// Another job that is restarted first.
    Restart {
        job: Name,
    },
    /// Its next run is a matter of time.
    Interval {
        every: Duration,
        next: Option<Mono>,
    },
    Cron {
        cron: Cron,
    },
}

/// One reason why something can never be said any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    NoSuchJob(Name),
    /// The source may run, and yet does not say this.
    NotSaid(Condition),
    LeftAtRest {
        job: Name,
        rest: LeftAtRest,
    },
    Disabled(Name),
    /// `exit`: how its last run ended; it may never have had one.
    GivenUp {
        job: Name,
        exit: Option<Exit>,
    },
    Ended {
        job: Name,
        exit: Option<Exit>,
    },
    NeverStarts {
        job: Name,
        waits_for: Option<Condition>,
    },
    /// The chain is longer than is told, or goes round.
    AndSoOn,
}

/// Why a job rests that nobody has stopped and that its app will not come to any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAtRest {
    pub app: Name,
    pub reason: RestReason,
}

/// A job that somebody wanted to run and that does not, and will not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckJob {
    pub job: Name,
    pub has_run: bool,
    pub why: StuckWhy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StuckWhy {
    LeftAtRest(LeftAtRest),
    /// It was given up while it waited for these.
    GivenUp(Vec<Condition>),
    Blocked(Vec<Blocker>),
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
    /// All that keeps the job from running. Empty when nothing does, or when it shall not run.
    #[must_use]
    pub fn of(&self, job: &str) -> Vec<Blocker> {
        self.node.blockers_of(self, job).unwrap_or_default()
    }
}

impl Startable {
    pub(super) fn may_start(&self, id: JobId) -> bool {
        self.0[id]
    }
}

impl Node {
    /// What keeps jobs from running, worked out once for all who ask.
    #[must_use]
    pub fn blockers(&self) -> Blockers<'_> {
        Blockers { node: self, startable: OnceCell::new() }
    }

    fn blockers_of(&self, blockers: &Blockers<'_>, job: &str) -> Option<Vec<Blocker>> {
        let id = self.jobs.id(job)?;
        let (plan, job) = self.jobs.both(id);
        if let (Some(sequence), Some(app)) = (self.awaited_sequence(id), plan.app.clone()) {
            return Some(vec![Blocker::Sequence { app, sequence }]);
        }
        if job.desired() == Desired::Disabled {
            return Some(vec![Blocker::Disabled]);
        }
        if let Some(until) = job.restarts_at() {
            return Some(vec![Blocker::Backoff { until }]);
        }
        if job.waits_for_hooks() {
            return Some(self.hooks_at_work(id));
        }
        if !job.waits() {
            return None;
        }
        let startable = blockers.startable.get_or_init(|| self.startable());
        let blocker = |condition: &Condition, comes: bool| {
            let never = (!comes).then(|| self.causes(startable, condition));
            Blocker::Condition { condition: condition.clone(), never }
        };
        let latch = |it: &Condition| blocker(it, self.may_happen(startable, it));
        let to_come = |it: &Condition| blocker(it, self.may_come(startable, it));
        let mut all: Vec<Blocker> = self.unmet(plan, job).map(latch).collect();
        if let Some(follows) = &plan.follows
            && !self.is_up(&follows.source)
        {
            all.push(to_come(&Condition::up(&follows.source)));
        }
        let hook = self.runs_for_last_end(id).map(|hook| self.jobs.name(hook).clone());
        all.extend(hook.map(|job| Blocker::Hook { job }));
        let first = self.awaited_restart(id).map(|source| self.jobs.name(source).clone());
        all.extend(first.map(|job| Blocker::Restart { job }));
        match &plan.when.trigger {
            Some(_) if job.has_pending_trigger() => {}
            Some(Trigger::Each(conditions)) => all.extend(conditions.iter().map(to_come)),
            Some(Trigger::Interval(every)) => {
                all.push(Blocker::Interval { every: *every, next: job.next_at() });
            }
            Some(Trigger::Cron(cron)) => all.push(Blocker::Cron { cron: cron.clone() }),
            None => {}
        }
        Some(all)
    }

    /// Which conditions of its `when` have not come, whether it waits for them or not.
    #[must_use]
    pub fn not_come(&self, job: &str) -> Vec<&Condition> {
        let once = self.job_plan(job).map_or(&[][..], |plan| &plan.when.once);
        once.iter().filter(|it| !self.is_met(it)).collect()
    }

    /// The jobs that somebody wanted to run and that do not, and will not.
    pub(super) fn stuck_jobs(&self) -> Vec<StuckJob> {
        let blockers = self.blockers();
        let unneeded = self.unneeded(blockers.startable.get_or_init(|| self.startable()));
        let stuck = |(_, plan, job): (JobId, &JobPlan, &Job)| {
            let why = self.why_stuck_here(&blockers, plan, job)?;
            Some(StuckJob { job: plan.name.clone(), has_run: job.incarnation() > 0, why })
        };
        self.jobs.iter().filter(|(id, ..)| !unneeded.contains(id)).filter_map(stuck).collect()
    }

    /// The jobs that nobody needs: they wait for bad news that can no longer come, for one that
    /// does, or for more of what has started them before, and for nothing else that never comes.
    pub(super) fn unneeded(&self, startable: &Startable) -> BTreeSet<JobId> {
        let mut unneeded = BTreeSet::new();
        let mut open: Vec<JobId> = self.jobs.census().waiting().collect();
        while let Some(id) = open.pop() {
            if !unneeded.contains(&id) && self.is_unneeded(startable, &unneeded, id) {
                unneeded.insert(id);
                open.extend(self.wiring.listeners(id).iter().filter(|it| self.jobs[**it].waits()));
            }
        }
        unneeded
    }

    fn is_unneeded(&self, startable: &Startable, unneeded: &BTreeSet<JobId>, id: JobId) -> bool {
        let (plan, job) = self.jobs.both(id);
        if startable.may_start(id) || job.will_give_up() {
            return false;
        }
        let source = |it: &Condition| match &it.source {
            SourceRef::Job(name) => self.jobs.id(name.as_str()),
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => None,
        };
        let of_unneeded = |it: &Condition| source(it).filter(|source| unneeded.contains(source));
        // One that has run and has not said it has failed to.
        let in_vain = |it: &Condition| {
            let never_ran = |source: JobId| self.jobs[source].incarnation() == 0;
            it.event.is_bad_news() && source(it).is_some() || of_unneeded(it).is_some_and(never_ran)
        };
        let never = |it: &&Condition| !self.may_come(startable, it);
        // A hook has run at the end of its job: that there is no other end is no loss.
        let answered = job.has_pending_trigger() || job.incarnation() > 0;
        let triggers = wiring::triggers(plan).iter().filter(|_| !answered);
        let follows = plan.follows.iter().filter(|it| !self.is_up(&it.source));
        let mut follows = follows.map(|it| Condition::up(&it.source)).filter(|it| never(&it));
        self.unmet(plan, job).chain(triggers).filter(never).all(in_vain)
            && follows.all(|it| of_unneeded(&it).is_some())
    }

    fn why_stuck_here(
        &self,
        blockers: &Blockers<'_>,
        plan: &JobPlan,
        job: &Job,
    ) -> Option<StuckWhy> {
        let name = plan.name.as_str();
        if let Some(rest) = self.left_at_rest(plan, job) {
            return (job.incarnation() == 0).then_some(StuckWhy::LeftAtRest(rest));
        }
        if job.was_given_up_waiting() {
            return Some(StuckWhy::GivenUp(self.not_come(name).into_iter().cloned().collect()));
        }
        if job.desired() == Desired::Disabled || job.holds() {
            return None;
        }
        Some(blockers.of(name)).filter(|all| !all.is_empty()).map(StuckWhy::Blocked)
    }

    fn hooks_at_work(&self, id: JobId) -> Vec<Blocker> {
        let busy = |hook: &&JobId| self.jobs[**hook].is_hook_run();
        let hooks = self.wiring.stopping_hooks(id).iter().filter(busy);
        hooks.map(|hook| Blocker::Hook { job: self.jobs.name(*hook).clone() }).collect()
    }

    fn unmet<'a>(&'a self, plan: &'a JobPlan, job: &'a Job) -> impl Iterator<Item = &'a Condition> {
        plan.when.once.iter().filter(move |it| job.asks(&it.source) && !self.is_met(it))
    }

    pub(super) fn startable(&self) -> Startable {
        let mut startable = Startable(self.jobs.each(|(id, ..)| self.may_run_anyway(id)));
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
    fn may_run_anyway(&self, id: JobId) -> bool {
        let (plan, job) = self.jobs.both(id);
        let called_for = match self.rest_reason_of(plan, job) {
            None | Some(RestReason::NotReached) => job.rests() && !self.has_left(id),
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
        let is_triggered = !wiring::triggers(plan).is_empty();
        self.unmet(plan, job).all(may)
            && plan.follows.as_ref().is_none_or(|it| followed(&it.source))
            && (!is_triggered
                || job.has_pending_trigger()
                || self.wiring.triggers(id, plan).any(again))
    }

    /// It has happened or may yet.
    fn may_happen(&self, startable: &Startable, condition: &Condition) -> bool {
        self.is_met(condition) || self.may_come(startable, condition)
    }

    /// It may happen from now on.
    fn may_come(&self, startable: &Startable, condition: &Condition) -> bool {
        match &condition.source {
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => true,
            SourceRef::Job(name) => self.jobs.id(name.as_str()).is_some_and(|id| {
                let gives_up = self.jobs[id].waits() && self.jobs[id].will_give_up();
                let event = condition.event;
                let unchecked = self.jobs.plan_of(id).checks.is_empty();
                // Its fleet may have it run at any time.
                let placed = self.plan().is_placed(self.jobs.plan_of(id));
                match event.during() {
                    // Nobody finds it unhealthy.
                    Some(During::Run) if event.is_health() && event.is_bad_news() && unchecked => {
                        false
                    }
                    Some(During::Run) => startable.may_start(id) || placed,
                    Some(During::Stop | During::Gone) => {
                        startable.may_start(id) || gives_up || placed
                    }
                    Some(During::Wait) => gives_up,
                    // No job says it.
                    None => false,
                }
            }),
        }
    }

    /// From the nearest cause to the one that somebody has to look at; of a long chain its beginning
    /// and that end.
    fn causes(&self, startable: &Startable, condition: &Condition) -> Vec<Cause> {
        let mut causes = Vec::new();
        let mut seen = Vec::new();
        let mut next = Some(condition.clone());
        while let Some(condition) = next.take() {
            if seen.contains(&condition) {
                causes.push(Cause::AndSoOn);
                break;
            }
            if seen.len() + 1 == CAUSES {
                let end = self.end_of_chain(startable, &condition);
                if end != condition {
                    causes.push(Cause::AndSoOn);
                }
                causes.push(self.cause(startable, &end));
                break;
            }
            causes.push(self.cause(startable, &condition));
            next = self.behind(startable, &condition);
            seen.push(condition);
        }
        causes
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

    /// The nearest cause of a condition that never comes.
    fn cause(&self, startable: &Startable, condition: &Condition) -> Cause {
        let SourceRef::Job(name) = &condition.source else {
            return Cause::NotSaid(condition.clone());
        };
        let Some(id) = self.jobs.id(name.as_str()) else { return Cause::NoSuchJob(name.clone()) };
        let (plan, job) = self.jobs.both(id);
        let (name, exit) = (name.clone(), job.last_exit().cloned());
        if let Some(rest) = self.left_at_rest(plan, job) {
            return Cause::LeftAtRest { job: name, rest };
        }
        match (job.desired(), job.phase()) {
            (Desired::Disabled, _) => Cause::Disabled(name),
            (Desired::Rest, Phase::Fatal) => Cause::GivenUp { job: name, exit },
            (Desired::Rest, Phase::Exited) => Cause::Ended { job: name, exit },
            (Desired::Run, _) if job.waits() && !self.may_pass_once(startable, id) => {
                Cause::NeverStarts { job: name, waits_for: self.behind(startable, condition) }
            }
            (Desired::Run | Desired::Rest, _) => Cause::NotSaid(condition.clone()),
        }
    }

    fn left_at_rest(&self, plan: &JobPlan, job: &Job) -> Option<LeftAtRest> {
        let (app, reason) = (plan.app.clone()?, self.rest_reason_of(plan, job)?);
        match reason {
            RestReason::StartAborted | RestReason::AppFailed => Some(LeftAtRest { app, reason }),
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
