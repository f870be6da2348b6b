//! Why a job is as it is: five lines for people, with the causes of the causes and the lines of the
//! configuration that they come from.
//!
//! The first line says what is observed and what is desired. Then comes what explains it: what it
//! waits for, how far its start or stop is, who wanted it so. What its checks and its last run say
//! follows, and what can be done. Where that is too much, the least telling goes first.

use crate::inputs::cron;
use mainstay_core::{
    app::RestReason,
    clock::{Mono, Now},
    job::{Desired, Health, Job, Phase, StopStage, Verdict},
    name::Name,
    node::{Node, NodePhase, Waiting},
    plan::{JobPlan, RestartOn, Trigger},
};
use mainstay_wire::{api::Why, stamp::rfc3339};
use std::time::Duration;

const LINES: usize = 5;
/// So many things it waits for are told one by one.
const WAITS: usize = 2;
/// What a check has to do with.
const HEALTHY: &str = "healthy";
/// So many links of a chain of causes are told, beside its end.
const LINKS: usize = 4;

/// What goes first when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Aside,
    Cause,
    State,
}

/// `None`: there is no such job.
pub(crate) fn why(node: &Node, now: Now, name: &str) -> Option<Why> {
    let asked = Asked { node, now, plan: node.job_plan(name)?, job: node.job(name)? };
    let mut lines = vec![(Weight::State, asked.state())];
    lines.extend(asked.causes().into_iter().map(|line| (Weight::Cause, line)));
    let asides = asked.checks().into_iter().chain(asked.last_run()).chain(asked.advice());
    lines.extend(asides.map(|line| (Weight::Aside, line)));
    while lines.len() > LINES {
        let least = lines.iter().map(|(weight, _)| *weight).min()?;
        let at = lines.iter().rposition(|(weight, _)| *weight == least)?;
        lines.remove(at);
    }
    let lines = lines.into_iter().map(|(_, line)| line).collect();
    Some(Why { job: asked.plan.name.clone(), lines })
}

/// The job in question.
struct Asked<'a> {
    node: &'a Node,
    now: Now,
    plan: &'a JobPlan,
    job: &'a Job,
}

impl Asked<'_> {
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
            (Desired::Rest, _) if job.is_leaving() => ", and is gone from the configuration",
            (Desired::Rest, _) => ", and shall rest",
            (Desired::Disabled, _) => ", and is disabled",
        };
        let (phase, since) = (word(job.phase()), rfc3339(job.since()));
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
            (Desired::Rest, Phase::Fatal) => vec![self.given_up()],
            (Desired::Rest, Phase::Exited) => vec![self.ended()],
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
                let hooks = self.node.waiting(self.plan.name.as_str());
                let hooks: Vec<&str> = hooks.iter().map(|it| it.source.as_str()).collect();
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
            None => "it was stopped on request".to_owned(),
            Some(RestReason::StartAborted) => {
                format!("the start of its app {app} was aborted{}", self.failed_mate(app))
            }
            Some(RestReason::AppFailed) => {
                format!("its app {app} was stopped{}", self.failed_mate(app))
            }
            Some(RestReason::NotReached) => return vec![self.turn(app)],
        };
        vec![line]
    }

    fn failed_mate(&self, app: &str) -> String {
        let failed = self.node.jobs().find(|(plan, job)| {
            let mate = plan.app.as_ref().is_some_and(|it| it.as_str() == app);
            mate && !job.is_as_desired() && [Phase::Fatal, Phase::Exited].contains(&job.phase())
        });
        failed.map_or_else(String::new, |(plan, job)| {
            let how = job.last_exit().map_or_else(String::new, |exit| format!(", {exit}"));
            let at = plan.written.as_ref().map(|it| it.at.as_str());
            format!(": {} is {}{how}{}", plan.name, word(job.phase()), line(at))
        })
    }

    fn turn(&self, app: &str) -> String {
        let sequence = self.plan.place.start_sequence;
        if sequence == 0 {
            return format!("it is not started with its app {app}: its place has start_sequence 0");
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
            None if !self.node.waiting(self.plan.name.as_str()).is_empty() => {
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
            let missing: Vec<String> =
                missing.iter().map(|it| format!("{} {}", it.source, it.event)).collect();
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
        let all = self.node.waiting(name);
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

    fn wait(&self, waiting: &Waiting) -> String {
        let Waiting { source, event, reason, .. } = waiting;
        let at = asks(self.plan, source);
        match (reason, source.as_str()) {
            (Some(reason), _) => {
                format!("it waits for {source} {event}{at}, which can never come: {reason}")
            }
            (None, "interval") => match self.job.next_at() {
                Some(next) => {
                    format!("its next run comes in {} (interval {event}){at}", self.left(next))
                }
                None => format!("it waits for its interval of {event}{at}"),
            },
            (None, "cron") => self.cron(event, &at),
            (None, _) => {
                let because = because(self.node, source, event);
                format!("it waits for {source} {event}{at}{because}")
            }
        }
    }

    fn cron(&self, expression: &str, at: &str) -> String {
        let next = match &self.plan.when.trigger {
            Some(Trigger::Cron(cron)) => cron::next(cron, self.now.wall).ok(),
            Some(Trigger::Each(_) | Trigger::Interval(_)) | None => None,
        };
        match next {
            Some(next) => {
                let nanos = u64::try_from(next.saturating_sub(self.now.wall)).unwrap_or(0);
                let (left, next) = (span(Duration::from_nanos(nanos)), rfc3339(next));
                format!("its next run comes in {left}, at {next} (cron {expression}){at}")
            }
            None => format!("it waits for cron {expression}{at}, which is never due"),
        }
    }

    fn checks(&self) -> Vec<String> {
        match self.job.phase() {
            Phase::Starting | Phase::Running => {
                failing(self.plan, self.job).map(|check| format!("its {check}")).collect()
            }
            Phase::Stopped
            | Phase::Backoff
            | Phase::Stopping
            | Phase::Exited
            | Phase::Fatal
            | Phase::Unknown => Vec::new(),
        }
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
        span(until.since(self.now.mono))
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

/// What the source of a wait is up to itself, and so on down to what keeps all of them: of a long
/// chain the beginning and the end, which is what somebody has to look at.
fn because(node: &Node, source: &str, event: &str) -> String {
    let (mut links, mut left_out) = (Vec::new(), 0);
    let mut next = Some((source.to_owned(), event.to_owned()));
    // Not longer than there are jobs: some may wait for each other.
    for _ in node.jobs() {
        let Some((source, event)) = next.take() else { break };
        next = match links.len() < LINKS {
            true => None,
            false => latch(node, &source),
        };
        if next.is_some() {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            links.push(format!("and so on over {left_out} more jobs"));
        }
        let Some((link, further)) = link(node, &source, &event) else { break };
        links.push(link);
        next = further.filter(|_| left_out == 0);
    }
    links.iter().map(|link| format!(": {link}")).collect()
}

/// What a job waits for, worked out without asking whether it may ever come: a chain may be long.
fn latch(node: &Node, name: &str) -> Option<(String, String)> {
    let (plan, job) = (node.job_plan(name)?, node.job(name)?);
    let waits = match job.phase() {
        Phase::Stopped | Phase::Exited | Phase::Fatal => job.desired() == Desired::Run,
        Phase::Starting | Phase::Running | Phase::Backoff | Phase::Stopping | Phase::Unknown => {
            false
        }
    };
    let unmet = node.not_come(name).first().map(|it| (it.source.to_string(), it.event.to_string()));
    let follows = || plan.follows.as_ref().map(|it| (it.source.to_string(), HEALTHY.to_owned()));
    let next = unmet.or_else(follows).filter(|_| waits)?;
    node.job(&next.0).is_some_and(|it| it.health() != Health::Healthy).then_some(next)
}

/// One source of a wait, and what it waits for itself. `None`: it is no job.
fn link(node: &Node, source: &str, event: &str) -> Option<(String, Option<(String, String)>)> {
    let (plan, job) = (node.job_plan(source)?, node.job(source)?);
    let phase = word(job.phase());
    match job.phase() {
        Phase::Starting | Phase::Running => {
            let check = failing(plan, job).next().filter(|_| event == HEALTHY);
            if let Some(check) = check {
                return Some((format!("{source} is {phase}, but its {check}"), None));
            }
        }
        Phase::Backoff => {
            let exit = job.last_exit().map_or_else(String::new, |exit| format!(", {exit}"));
            let text = format!("{source} is to be started again, its last run ended{exit}");
            return Some((text, None));
        }
        Phase::Stopped if job.rests() && node.rest_reason(source).is_none() => {
            return Some((format!("{source} was stopped on request"), None));
        }
        Phase::Stopped | Phase::Stopping | Phase::Exited | Phase::Fatal | Phase::Unknown => {}
    }
    let next = node.waiting(source).into_iter().next();
    Some(match next.filter(|_| job.desired() == Desired::Run) {
        Some(Waiting { source: from, event, .. }) => {
            let at = asks(plan, &from);
            (format!("{source} itself waits for {from} {event}{at}"), Some((from, event)))
        }
        None => (format!("{source} is {phase}"), None),
    })
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

/// `0.3s`, `12s`, `2m5s`, `1h10m`
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 if time.subsec_millis() >= 100 => format!("{:.1}s", time.as_secs_f64()),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn word(phase: Phase) -> String {
    format!("{phase:?}").to_uppercase()
}

#[cfg(test)]
mod tests;
