//! Plans that somebody has written, and what somebody changes in them.

use crate::properties::rich_plan;
use mainstay_core::{
    event::EventName,
    name::Name,
    plan::{Awaited, Condition, Cron, JobPlan, OnLoss, Plan, SourceRef, Trigger, While},
};
use mainstay_sim::plans;
use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// One thing that somebody changes in a plan.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    Exec(usize),
    Drop(usize),
    Add(usize),
    Interval(usize, u64),
    Cron(usize),
    NoTrigger(usize),
    Once(usize, usize, Awaited),
    Each(usize, usize, Awaited),
    Follow(usize, usize, OnLoss),
    NoFollow(usize),
    NoChecks(usize),
    StartSeconds(usize),
    NoApp(usize),
    Main(usize),
}

/// Jobs that come up, and follow or wait for those before them.
pub(crate) fn lively_plan() -> impl Strategy<Value = Plan> {
    let edge = || (0..3usize, prop_oneof![Just(OnLoss::Stop), Just(OnLoss::Restart)]);
    (rich_plan().boxed(), [edge(), edge(), edge()]).prop_map(|(mut plan, edges)| {
        for (at, (how, on_loss)) in edges.into_iter().enumerate() {
            let source = at.checked_sub(1).map(|at| SourceRef::Job(plan.jobs[at].name.clone()));
            let job = Arc::make_mut(&mut plan.jobs[at]);
            (job.when.once, job.when.trigger, job.follows, job.app) =
                (Vec::new(), None, None, None);
            match (how, source) {
                (0 | 1, Some(source)) => job.follows = Some(While { source, on_loss }),
                (2, Some(source)) => {
                    job.when
                        .once
                        .push(Condition { source, event: Awaited::Event(EventName::Healthy) });
                }
                _ => {}
            }
        }
        plan
    })
}

pub(crate) fn edit() -> impl Strategy<Value = Edit> {
    let (at, to) = (|| 0..4usize, || 0..4usize);
    let event = || {
        prop_oneof![
            Just(Awaited::Event(EventName::Healthy)),
            Just(Awaited::Event(EventName::ExitSuccess)),
            Just(Awaited::Event(EventName::Stopping)),
            Just(Awaited::Event(EventName::Stopped)),
        ]
    };
    let on_loss = prop_oneof![Just(OnLoss::Stop), Just(OnLoss::Restart), Just(OnLoss::Keep)];
    prop_oneof![
        4 => at().prop_map(Edit::Exec),
        2 => at().prop_map(Edit::Drop),
        2 => at().prop_map(Edit::Add),
        3 => (at(), 0u64..8).prop_map(|(at, seconds)| Edit::Interval(at, seconds)),
        2 => at().prop_map(Edit::Cron),
        1 => at().prop_map(Edit::NoTrigger),
        1 => (at(), to(), event()).prop_map(|(at, to, event)| Edit::Once(at, to, event)),
        1 => (at(), to(), event()).prop_map(|(at, to, event)| Edit::Each(at, to, event)),
        3 => (at(), to(), on_loss).prop_map(|(at, to, on_loss)| Edit::Follow(at, to, on_loss)),
        1 => at().prop_map(Edit::NoFollow),
        1 => at().prop_map(Edit::NoChecks),
        1 => at().prop_map(Edit::StartSeconds),
        1 => at().prop_map(Edit::NoApp),
        1 => at().prop_map(Edit::Main),
    ]
}

pub(crate) fn edited(plan: &Plan, edits: &[Edit]) -> Plan {
    let mut plan = plan.clone();
    for edit in edits {
        let names: Vec<Name> = plan.jobs.iter().map(|it| it.name.clone()).collect();
        let source = |to: usize| names.get(to % names.len().max(1)).cloned().map(SourceRef::Job);
        let at = match edit {
            Edit::Exec(at)
            | Edit::Drop(at)
            | Edit::Add(at)
            | Edit::Interval(at, _)
            | Edit::Cron(at)
            | Edit::NoTrigger(at)
            | Edit::Once(at, ..)
            | Edit::Each(at, ..)
            | Edit::Follow(at, ..)
            | Edit::NoFollow(at)
            | Edit::NoChecks(at)
            | Edit::StartSeconds(at)
            | Edit::NoApp(at)
            | Edit::Main(at) => *at,
        };
        if let Edit::Add(_) = edit {
            let fresh = ["a", "b", "c", "d"][at];
            if plan.job(fresh).is_none() {
                let exec = vec![format!("./{fresh}")];
                plan.jobs.insert(0, Arc::new(JobPlan::new(plans::name(fresh), exec)));
            }
            continue;
        }
        if plan.jobs.is_empty() {
            continue;
        }
        let at = at % plan.jobs.len();
        let job = Arc::make_mut(&mut plan.jobs[at]);
        match edit {
            Edit::Exec(_) => job.exec.push("--changed".to_owned()),
            Edit::Drop(_) => drop(plan.jobs.remove(at)),
            Edit::Add(_) => {}
            Edit::Interval(_, seconds) => {
                job.when.trigger = Some(Trigger::Interval(Duration::from_secs(*seconds)));
            }
            Edit::Cron(_) => {
                let expression = format!("{} 3 * * *", job.exec.len());
                job.when.trigger = Some(Trigger::Cron(Cron { expression, tz: None }));
            }
            Edit::NoTrigger(_) => job.when.trigger = None,
            Edit::Once(_, to, event) => {
                let condition = source(*to).map(|source| Condition { source, event: *event });
                job.when.once.extend(condition);
            }
            Edit::Each(_, to, event) => {
                let condition = source(*to).map(|source| Condition { source, event: *event });
                job.when.trigger = condition.map(|it| Trigger::Each(vec![it]));
            }
            Edit::Follow(_, to, on_loss) => {
                job.follows = source(*to).map(|source| While { source, on_loss: *on_loss });
            }
            Edit::NoFollow(_) => job.follows = None,
            Edit::NoChecks(_) => job.checks = Vec::new(),
            Edit::StartSeconds(_) => job.start_seconds = Duration::from_secs(3),
            Edit::NoApp(_) => job.app = None,
            Edit::Main(_) => job.main = !job.main,
        }
    }
    sound(plan)
}

/// As a file would have to be: nothing refers to what is not there, and no jobs wait for each other.
pub(crate) fn sound(mut plan: Plan) -> Plan {
    let names: BTreeSet<Name> = plan.jobs.iter().map(|it| it.name.clone()).collect();
    for job in plan.jobs.iter_mut().map(Arc::make_mut) {
        let own = job.name.clone();
        let there = |source: &SourceRef| match source {
            SourceRef::Job(name) => names.contains(name) && *name != own,
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => true,
        };
        job.when.once.retain(|it| there(&it.source));
        job.follows = job.follows.take().filter(|it| there(&it.source));
        if let Some(Trigger::Each(each)) = &mut job.when.trigger {
            each.retain(|it| there(&it.source));
            if each.is_empty() {
                job.when.trigger = None;
            }
        }
    }
    let mut edges = BTreeSet::new();
    for job in plan.jobs.iter_mut().map(Arc::make_mut) {
        let own = job.name.clone();
        let mut opens = |source: &SourceRef| match source {
            SourceRef::Job(name) if leads(&edges, name, &own) => false,
            SourceRef::Job(name) => {
                edges.insert((own.clone(), name.clone()));
                true
            }
            SourceRef::Node | SourceRef::Watch(_) | SourceRef::Rollout(_) => true,
        };
        job.when.once.retain(|it| opens(&it.source));
        job.follows = job.follows.take().filter(|it| opens(&it.source));
    }
    plan
}

/// Whether one waits for the other, by way of whom it may be.
fn leads(edges: &BTreeSet<(Name, Name)>, from: &Name, to: &Name) -> bool {
    from == to || edges.iter().any(|(one, next)| one == from && leads(edges, next, to))
}
