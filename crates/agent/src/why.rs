//! Why a job is as it is: five lines for people, the causes of the causes included.

use crate::view::Why;
use mainstay_core::{
    job::{Desired, Health, Job, Phase, Verdict},
    node::{Node, Waiting},
    plan::JobPlan,
};
use mainstay_wire::stamp::rfc3339;

const LINES: usize = 5;
/// So many things it waits for are told one by one.
const WAITS: usize = 2;
/// So far a chain of causes is followed.
const DEPTH: usize = 4;

/// `None`: there is no such job.
pub(crate) fn why(node: &Node, name: &str) -> Option<Why> {
    let plan = node.job_plan(name)?;
    let job = node.job(name)?;
    let mut lines = vec![state(plan, job)];
    let waiting = node.waiting(name);
    lines.extend(waiting.iter().take(WAITS).map(|one| wait(node, one)));
    if waiting.len() > WAITS {
        lines.push(format!("and for {} more: see `mainstay status {name}`", waiting.len() - WAITS));
    }
    lines.extend(failing(plan, job).map(|check| format!("its {check}")));
    if let Some(exit) = job.last_exit() {
        let restarts = match job.restarts() {
            0 => String::new(),
            1 => ", restarted once".to_owned(),
            count => format!(", restarted {count} times"),
        };
        lines.push(format!("its last run ended: {exit}{restarts}"));
    }
    lines.extend(advice(plan, job));
    lines.truncate(LINES);
    Some(Why { job: plan.name.clone(), lines })
}

fn state(plan: &JobPlan, job: &Job) -> String {
    let phase = word(job.phase());
    let pid = job.pid().map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let health = match job.health() {
        Health::Unknown => "",
        Health::Healthy => ", healthy",
        Health::Unhealthy => ", unhealthy",
    };
    let desired = match job.desired() {
        Desired::Run => "",
        Desired::Rest => ", and shall rest",
        Desired::Disabled => ", and is disabled",
    };
    format!("{} is {phase}{pid}{health}{desired}, since {}", plan.name, rfc3339(job.since()))
}

fn wait(node: &Node, waiting: &Waiting) -> String {
    let Waiting { source, event, reason, .. } = waiting;
    match reason {
        None if event == BACKOFF => "it waits for its back-off to be over".to_owned(),
        Some(reason) => format!("it waits for {source} {event}, which can never come: {reason}"),
        None => format!("it waits for {source} {event}{}", because(node, source, DEPTH)),
    }
}

/// What a job that is to be started again waits for.
const BACKOFF: &str = "backoff";

/// What the source of a wait is up to itself.
fn because(node: &Node, source: &str, depth: usize) -> String {
    let (Some(plan), Some(job)) = (node.job_plan(source), node.job(source)) else {
        return String::new();
    };
    if let Some(check) = failing(plan, job).next() {
        return format!(": {source} is {}, but its {check}", word(job.phase()));
    }
    match node.waiting(source).first() {
        Some(next) if next.event == BACKOFF => match job.last_exit() {
            Some(exit) => format!(": {source} is to be started again, its last run ended: {exit}"),
            None => format!(": {source} is to be started again"),
        },
        Some(next) if depth > 0 => {
            let (from, event) = (&next.source, &next.event);
            let further = because(node, from, depth - 1);
            format!(": {source} itself waits for {from} {event}{further}")
        }
        Some(_) | None => format!(": {source} is {}", word(job.phase())),
    }
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

fn advice(plan: &JobPlan, job: &Job) -> Option<String> {
    let name = &plan.name;
    match (job.desired(), job.phase()) {
        (Desired::Disabled, _) => {
            Some(format!("`mainstay enable {name}` lets it be started again"))
        }
        (Desired::Rest, Phase::Fatal) => {
            Some(format!("it was given up; `mainstay start {name}` tries again"))
        }
        (Desired::Rest, Phase::Stopped) => Some(format!("`mainstay start {name}` starts it")),
        (Desired::Rest | Desired::Run, _) => None,
    }
}

fn word(phase: Phase) -> String {
    format!("{phase:?}").to_uppercase()
}
