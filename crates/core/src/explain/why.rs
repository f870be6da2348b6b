//! Why a job is as it is: five lines for people, with the causes of the causes and the lines of the
//! configuration that they come from.
//!
//! The first line says what is observed and what is desired. Then comes what explains it: what it
//! waits for, how far its start or stop is, who wanted it so. What its checks and its last run say
//! follows, and what can be done. Where that is too much, the least telling goes first.

use super::{app_failure, condition, copy_word, how_it_ended, never_comes, span, waiting, word};
use crate::{
    app::{RESTART_LIMIT, RESTART_WINDOW, RestReason},
    clock::{Mono, Now},
    job::{Desired, Health, Job, Phase, StopStage, Verdict},
    name::Name,
    node::{Blocker, Blockers, Node, NodePhase},
    plan::{Condition, Cron, JobPlan, RestartOn, SourceRef},
};
use std::time::Duration;

const LINES: usize = 5;
/// So many things it waits for are told one by one.
const WAITS: usize = 2;
/// So many links of a chain of causes are told, beside its end.
const LINKS: usize = 4;

/// What goes first when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Aside,
    Cause,
    State,
}

/// Now, and what only those know who have a calendar.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    pub now: Now,
    /// A moment of the wall clock (ns), as people read it.
    pub written: fn(i64) -> String,
    /// When it is due next after a moment of the wall clock.
    pub next_due: fn(&Cron, i64) -> Option<i64>,
}

/// Why a job is as it is, in five lines at most. `None`: there is no such job.
#[must_use]
pub fn why(node: &Node, calendar: Calendar, name: &str) -> Option<Vec<String>> {
    let (plan, job) = (node.job_plan(name)?, node.job(name)?);
    let asked = Question { node, blockers: node.blockers(), calendar, plan, job };
    let mut lines = vec![(Weight::State, asked.state())];
    lines.extend(asked.causes().into_iter().map(|line| (Weight::Cause, line)));
    let asides = asked.checks().into_iter().chain(asked.last_run()).chain(asked.advice());
    let asides = asides.chain(asked.app_failure());
    lines.extend(asides.map(|line| (Weight::Aside, line)));
    while lines.len() > LINES {
        let least = lines.iter().map(|(weight, _)| *weight).min()?;
        let at = lines.iter().rposition(|(weight, _)| *weight == least)?;
        lines.remove(at);
    }
    Some(lines.into_iter().map(|(_, line)| line).collect())
}

/// The job in question.
struct Question<'a> {
    node: &'a Node,
    blockers: Blockers<'a>,
    calendar: Calendar,
    plan: &'a JobPlan,
    job: &'a Job,
}

impl Question<'_> {
    fn state(&self) -> String {
        let (plan, job) = (self.plan, self.job);
        let pid = job.pid().map_or_else(String::new, |pid| format!(" (pid {pid})"));
        let health = match job.health() {
            Health::Unknown => "",
            Health::Healthy => ", healthy",
            Health::Unhealthy => ", unhealthy",
        };
        let desired = match (job.desired(), job.phase()) {
            (Desired::Run, Phase::Stopping) => ", and shall run again",
            (Desired::Run, _) => "",
            (Desired::Rest, _) if self.node.is_leaving(plan.name.as_str()) => {
                ", and is gone from the configuration"
            }
            (Desired::Rest, _) => ", and shall rest",
            (Desired::Disabled, _) => ", and is disabled",
        };
        let (phase, since) = (word(job.phase()), (self.calendar.written)(job.since()));
        let at = plan.written.as_ref().map(|it| it.at.as_str());
        format!("{} is {phase}{pid}{health}{desired}, since {since}{}", plan.name, line(at))
    }

    /// What explains that, at most three lines.
    fn causes(&self) -> Vec<String> {
        let job = self.job;
        if let Some(stage) = job.stopping() {
            return vec![self.stopping(stage)];
        }
        match (job.desired(), job.phase()) {
            (Desired::Disabled, _) => vec!["it was disabled, which lasts over runs".to_owned()],
            (_, Phase::Backoff) => self.backoff(),
            (_, Phase::Starting) => vec![self.starting()],
            (_, Phase::Running) if job.overran() => {
                let limit = self.plan.timeout.map(span).unwrap_or_default();
                vec![format!("it has run for longer than its timeout of {limit} and is killed")]
            }
            (Desired::Rest, Phase::Stopped) => self.resting(),
            (Desired::Rest, Phase::Fatal) => {
                std::iter::once(self.given_up()).chain(self.app_to_come()).collect()
            }
            (Desired::Rest, Phase::Exited) => {
                std::iter::once(self.ended()).chain(self.app_to_come()).collect()
            }
            (Desired::Run | Desired::Rest, _) => self.waiting(),
        }
    }

    fn backoff(&self) -> Vec<String> {
        let until = self.job.restarts_at().map(|at| self.left(at)).unwrap_or_default();
        vec![format!("it is started again in {until}, by its restart policy")]
    }

    fn starting(&self) -> String {
        match self.job.up_since() {
            None => "its process is being started".to_owned(),
            Some(since) => {
                let needed = self.plan.start_seconds;
                let (needed, left) = (span(needed), self.left(since.after(needed)));
                format!(
                    "it counts as RUNNING once it is up for {needed} (start_seconds): {left} to go"
                )
            }
        }
    }

    fn stopping(&self, stage: StopStage) -> String {
        let left = stage.until().map(|until| self.left(until)).unwrap_or_default();
        let signal = self.plan.stop.signal;
        match stage {
            StopStage::Hooks { .. } => {
                let hooks = self.blockers.of(self.plan.name.as_str());
                let hooks: Vec<String> =
                    hooks.iter().map(|it| waiting(&self.plan.name, it).source).collect();
                let hooks = hooks.join(", ");
                format!("its stop waits for {hooks}, for {left} at most; {signal} follows")
            }
            StopStage::Withdrawing { .. } => {
                format!("others are being told that it is gone; {signal} follows in {left}")
            }
            StopStage::Task { .. } => {
                format!("its stop.exec runs, for {left} at most; {signal} follows")
            }
            StopStage::Signalled { .. } => {
                format!("{signal} was sent to it; SIGKILL follows in {left}")
            }
            StopStage::Killed => "SIGKILL was sent to its tree, which is not gone yet".to_owned(),
        }
    }

    /// Nobody wants it to run, and it has not ended by itself.
    fn resting(&self) -> Vec<String> {
        let app = self.plan.app.as_ref().map_or("", Name::as_str);
        let line = match self.node.rest_reason(self.plan.name.as_str()) {
            None if self.is_unasked() => {
                "it starts by command only: its autostart is false".to_owned()
            }
            None => "it was stopped on request".to_owned(),
            Some(RestReason::StartAborted) => {
                format!("the start of its app {app} was aborted{}", self.failed_mate(app))
            }
            Some(RestReason::AppFailed) => {
                format!("its app {app} was stopped{}", self.failed_mate(app))
            }
            Some(RestReason::NotReached) if self.node.plan().is_placed(self.plan) => {
                "its fleet has not given it to this node".to_owned()
            }
            Some(RestReason::NotReached) => self.sequence(app),
        };
        std::iter::once(line).chain(self.app_to_come()).collect()
    }

    /// Nobody has started it yet, and it does not start by itself.
    fn is_unasked(&self) -> bool {
        let started = self.node.job(self.plan.name.as_str()).is_some_and(|it| it.incarnation() > 0);
        !self.plan.autostart && !started
    }

    /// What is wrong with its app, whoever of it has failed.
    fn app_failure(&self) -> Option<String> {
        let app = self.plan.app.as_ref()?;
        app_failure(app, &self.node.failed_of_app(app.as_str()))
    }

    /// What comes next of an app that has failed.
    fn app_to_come(&self) -> Option<String> {
        let app = self.plan.app.as_ref()?;
        let (times, minutes) = (RESTART_LIMIT, RESTART_WINDOW.as_secs() / 60);
        match self.node.app_comes_back_at(app.as_str()) {
            Some(at) => Some(format!("its app {app} starts again in {}", self.left(at))),
            None if self.node.is_app_used_up(app.as_str()) => Some(format!(
                "its app {app} rests: it was restarted {times} times in {minutes} minutes and failed again"
            )),
            None => None,
        }
    }

    fn failed_mate(&self, app: &str) -> String {
        let failed = self.node.jobs().find(|(plan, job)| {
            let mate = plan.app.as_ref().is_some_and(|it| it.as_str() == app);
            mate && !job.is_as_desired() && [Phase::Fatal, Phase::Exited].contains(&job.phase())
        });
        failed.map_or_else(String::new, |(plan, job)| {
            let how = how_it_ended(job);
            let at = plan.written.as_ref().map(|it| it.at.as_str());
            format!(": {} is {}{how}{}", plan.name, word(job.phase()), line(at))
        })
    }

    fn sequence(&self, app: &str) -> String {
        let sequence = self.plan.place.start_sequence;
        if sequence == 0 {
            return format!("it is not started with its app {app}: its place has start_sequence 0");
        }
        if self.node.app_comes_back_at(app).is_some() {
            return format!("its app {app} has failed{}", self.failed_mate(app));
        }
        match self.node.starting(app) {
            Some((now, jobs)) => {
                let busy = jobs.first().and_then(|name| {
                    Some(format!(": {name} is {}", word(self.node.job(name.as_str())?.phase())))
                });
                let busy = busy.unwrap_or_default();
                format!(
                    "it waits for sequence {sequence} of its app {app}, which is at {now}{busy}"
                )
            }
            None if !self.blockers.of(self.plan.name.as_str()).is_empty() => {
                format!("it waits for its app {app}, whose turn has not come")
            }
            None => format!("its app {app} has not been started"),
        }
    }

    fn given_up(&self) -> String {
        let plan = self.plan;
        if self.job.was_given_up_waiting() {
            let waited = plan.when.timeout.map(span).unwrap_or_default();
            let missing = self.node.not_come(plan.name.as_str());
            let missing: Vec<String> = missing.into_iter().map(condition).collect();
            let what = match missing.is_empty() {
                true => "what its when asks for came too late".to_owned(),
                false => format!("{} has not come", missing.join(" and ")),
            };
            let at = plan.written.as_ref().and_then(|it| it.when.as_deref());
            return format!("it was given up after {waited}: {what}{}", line(at));
        }
        match (plan.restart.on, plan.restart.limit) {
            (RestartOn::Failure | RestartOn::Any, Some(limit)) => {
                format!("it was given up: its restarts are used up (limit {limit})")
            }
            (RestartOn::Never, _) | (_, None) => {
                "it was given up: it could not be started, and is not tried again".to_owned()
            }
        }
    }

    fn ended(&self) -> String {
        let restart = match self.plan.restart.on {
            RestartOn::Never => "never",
            RestartOn::Failure => "on-failure",
            RestartOn::Any => "always",
        };
        match self.job.ended_well() {
            true => format!("it has ended as expected; restart is \"{restart}\""),
            false => format!("it has failed; restart is \"{restart}\""),
        }
    }

    fn waiting(&self) -> Vec<String> {
        let name = self.plan.name.as_str();
        let all = self.blockers.of(name);
        let mut lines: Vec<String> = all.iter().take(WAITS).map(|it| self.wait(it)).collect();
        if all.len() > WAITS {
            let more = all.len() - WAITS;
            lines.push(format!("and for {more} more: see `mainstay status {name}`"));
        } else if let Some(at) = self.job.gives_up_at() {
            lines.push(format!("it is given up in {} (when.timeout)", self.left(at)));
        } else if all.is_empty() && self.node.phase() == NodePhase::Stopping {
            lines.push("the node is stopping".to_owned());
        }
        lines
    }

    fn wait(&self, blocker: &Blocker) -> String {
        let waited = waiting(&self.plan.name, blocker);
        let (source, event) = (waited.source, waited.event);
        let at = asks(self.plan, &source);
        match (blocker, waited.reason) {
            (_, Some(reason)) => {
                format!("it waits for {source} {event}{at}{}", never_comes(&reason))
            }
            (Blocker::Interval { next: Some(next), .. }, None) => {
                format!("its next run comes in {} (interval {event}){at}", self.left(*next))
            }
            (Blocker::Interval { next: None, .. }, None) => {
                format!("it waits for its interval of {event}{at}")
            }
            (Blocker::Cron { cron }, None) => self.cron(cron, &at),
            (
                Blocker::Sequence { .. }
                | Blocker::Disabled
                | Blocker::Backoff { .. }
                | Blocker::Hook { .. }
                | Blocker::Condition { .. }
                | Blocker::Restart { .. },
                None,
            ) => {
                let because = self.because(blocker);
                format!("it waits for {source} {event}{at}{because}")
            }
        }
    }

    fn cron(&self, cron: &Cron, at: &str) -> String {
        let (wall, expression) = (self.calendar.now.wall, &cron.expression);
        match (self.calendar.next_due)(cron, wall) {
            Some(next) => {
                let nanos = u64::try_from(next.saturating_sub(wall)).unwrap_or(0);
                let (left, next) =
                    (span(Duration::from_nanos(nanos)), (self.calendar.written)(next));
                format!("its next run comes in {left}, at {next} (cron {expression}){at}")
            }
            None => format!("it waits for cron {expression}{at}, which is never due"),
        }
    }

    fn checks(&self) -> Vec<String> {
        let failing = failing(self.plan, self.job).filter(|_| self.job.phase().is_up());
        failing.map(|check| format!("its {check}")).collect()
    }

    fn last_run(&self) -> Option<String> {
        let exit = self.job.last_exit()?;
        let restarts = match self.job.restarts() {
            0 => String::new(),
            1 => ", restarted once".to_owned(),
            count => format!(", restarted {count} times"),
        };
        Some(format!("its last run ended: {exit}{restarts}"))
    }

    fn advice(&self) -> Option<String> {
        let name = &self.plan.name;
        match (self.job.desired(), self.job.phase(), self.job.rests()) {
            (Desired::Disabled, ..) => {
                Some(format!("`mainstay enable {name}` lets it be started again"))
            }
            (Desired::Rest, Phase::Fatal, _) => {
                Some(format!("`mainstay start {name}` tries again"))
            }
            (Desired::Rest, Phase::Stopped, true) => {
                Some(format!("`mainstay start {name}` starts it"))
            }
            (Desired::Rest | Desired::Run, ..) => None,
        }
    }

    fn left(&self, until: Mono) -> String {
        span(until.since(self.calendar.now.mono))
    }

    /// What the source of a wait is up to itself, and so on down to what keeps all of them: of a
    /// long chain the beginning and the end, which is what somebody has to look at.
    fn because(&self, blocker: &Blocker) -> String {
        let (mut links, mut left_out) = (Vec::new(), 0);
        let mut next = AwaitedJob::of(blocker);
        // Not longer than there are jobs: some may wait for each other.
        for _ in self.node.jobs() {
            let Some(source) = next.take() else { break };
            next = match links.len() < LINKS {
                true => None,
                false => self.latch(&source),
            };
            if next.is_some() {
                left_out += 1;
                continue;
            }
            if left_out > 0 {
                links.push(format!("and so on over {left_out} more jobs"));
            }
            let Some((link, further)) = self.link(&source) else { break };
            links.push(link);
            next = further.filter(|_| left_out == 0);
        }
        links.iter().map(|link| format!(": {link}")).collect()
    }

    /// What a job waits for, worked out without asking whether it may ever come: a chain may be
    /// long.
    fn latch(&self, source: &AwaitedJob) -> Option<AwaitedJob> {
        let name = source.job.as_str();
        let (plan, job) = (self.node.job_plan(name)?, self.node.job(name)?);
        if job.desired() != Desired::Run || !job.phase().is_at_rest() {
            return None;
        }
        let unmet = self.node.not_come(name).first().copied().cloned();
        let follows = || plan.follows.as_ref().map(|it| Condition::up(&it.source));
        let next = AwaitedJob::saying(&unmet.or_else(follows)?)?;
        let elsewhere = self.node.copy_elsewhere(next.job.as_str());
        let missing = self.node.job(next.job.as_str())?.health() != Health::Healthy
            && !elsewhere.is_some_and(|copy| copy.said.is_up());
        missing.then_some(next)
    }

    /// Where the fleet has a job that it places, and that is not here.
    fn elsewhere(&self, plan: &JobPlan, job: &Job) -> Option<String> {
        let (name, node) = (&plan.name, self.node);
        let copy = node.copy_elsewhere(name.as_str());
        match copy.map(|copy| (&copy.home, copy.state)) {
            Some((Some((home, _)), state)) => {
                Some(format!("{name} is {} on {home}", copy_word(state)))
            }
            Some((None, _)) => Some(format!("no node has {name} now")),
            None if node.plan().is_placed(plan) && job.rests() => {
                Some(format!("no node has {name}"))
            }
            None => None,
        }
    }

    /// What one source of a wait is up to, and what it waits for itself. `None`: there is no such
    /// job.
    fn link(&self, source: &AwaitedJob) -> Option<(String, Option<AwaitedJob>)> {
        let name = &source.job;
        let (plan, job) = (self.node.job_plan(name.as_str())?, self.node.job(name.as_str())?);
        if let Some(text) = self.elsewhere(plan, job) {
            return Some((text, None));
        }
        let phase = word(job.phase());
        if job.phase().is_up()
            && let Some(check) = failing(plan, job).next().filter(|_| source.to_be_up)
        {
            return Some((format!("{name} is {phase}, but its {check}"), None));
        }
        if job.phase() == Phase::Backoff {
            let exit = how_it_ended(job);
            let text = format!("{name} is to be started again, its last run ended{exit}");
            return Some((text, None));
        }
        let asked = job.rests() && self.node.rest_reason(name.as_str()).is_none();
        if job.phase() == Phase::Stopped && asked {
            return Some((format!("{name} was stopped on request"), None));
        }
        let next = self.blockers.of(name.as_str()).into_iter().next();
        Some(match next.filter(|_| job.desired() == Desired::Run) {
            Some(next) => {
                let waited = waiting(name, &next);
                let at = asks(plan, &waited.source);
                let text =
                    format!("{name} itself waits for {} {}{at}", waited.source, waited.event);
                (text, AwaitedJob::of(&next))
            }
            None => (format!("{name} is {phase}"), None),
        })
    }
}

/// The job that a wait is for.
struct AwaitedJob {
    job: Name,
    /// It is to say that it is healthy.
    to_be_up: bool,
}

impl AwaitedJob {
    fn of(blocker: &Blocker) -> Option<AwaitedJob> {
        match blocker {
            Blocker::Condition { condition, .. } => AwaitedJob::saying(condition),
            Blocker::Hook { job } | Blocker::Restart { job } => {
                Some(AwaitedJob { job: job.clone(), to_be_up: false })
            }
            Blocker::Sequence { .. }
            | Blocker::Disabled
            | Blocker::Backoff { .. }
            | Blocker::Interval { .. }
            | Blocker::Cron { .. } => None,
        }
    }

    fn saying(condition: &Condition) -> Option<AwaitedJob> {
        match &condition.source {
            SourceRef::Job(job) => {
                let to_be_up = *condition == Condition::up(&condition.source);
                Some(AwaitedJob { job: job.clone(), to_be_up })
            }
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => None,
        }
    }
}

/// The line that asks for it.
fn asks(plan: &JobPlan, source: &str) -> String {
    let Some(written) = &plan.written else { return String::new() };
    let follows = plan.follows.as_ref().is_some_and(|it| it.source.to_string() == source);
    let once = plan.when.once.iter().any(|it| it.source.to_string() == source);
    let at = if follows && !once { None } else { written.when.as_deref() };
    line(Some(at.unwrap_or(&written.at)))
}

fn failing<'a>(plan: &'a JobPlan, job: &'a Job) -> impl Iterator<Item = String> + 'a {
    let checks = plan.checks.iter().zip(job.checks());
    checks.filter(|(_, state)| state.verdict() != Verdict::Passing).map(|(check, state)| {
        let said = state.output().lines().next().unwrap_or_default();
        let pause = if said.is_empty() { "" } else { ": " };
        let verdict = match state.verdict() {
            Verdict::Failing => "fails",
            Verdict::Unknown | Verdict::Passing => "has not passed yet",
        };
        format!("check {} {verdict}{pause}{said}", check.name)
    })
}

fn line(at: Option<&str>) -> String {
    at.map_or_else(String::new, |at| format!(" ({at})"))
}
