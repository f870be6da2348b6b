//! What has become of orders and jobs, by the facts of those that take part.

use super::{AskedBy, FleetEvent, JobStanding, Master, MasterCtx, OpenOrder, OrderKey, OrderKind};
use crate::{
    app::AppInput,
    clock::Mono,
    fleet::{Afterwards, CopyState, FailureKey, JobCopy, JobOrder, Message, NodeFacts},
    name::Name,
};
use std::collections::{BTreeMap, BTreeSet};

/// What has come of an order.
enum OrderProgress {
    Open,
    Taken,
    Done(JobStanding),
    /// It was given up.
    Failed,
    /// It was taken, and a reload has taken the job from its node since.
    Gone,
    /// It was taken, and its node has lost its journal since.
    Forgotten,
}

impl Master {
    /// Brings the standing of every job up to date. Those are given back that have crashed.
    pub(super) fn observe(&mut self, ctx: &mut MasterCtx<'_>) -> Vec<Name> {
        for key in self.orders.keys() {
            self.follow_order(ctx, &key);
        }
        let jobs = ctx.catalogue.jobs.keys();
        jobs.filter(|job| self.follow_job(ctx, job)).cloned().collect()
    }

    fn follow_order(&mut self, ctx: &mut MasterCtx<'_>, key: &OrderKey) {
        let Some(order) = self.orders.get(&key.job, &key.node) else { return };
        let facts = ctx.nodes.get(&key.node);
        let copy = facts.and_then(|facts| facts.jobs.get(&key.job));
        let overdue = ctx.now.since(order.since) >= ctx.rules.order_timeout;
        match (facts, progress(order, facts, copy, overdue, ctx.now, &key.node)) {
            // What fails over and is lost on its way goes elsewhere still.
            (None, _) if matches!(order.what, OrderKind::Start { fails_over: true, .. }) => {
                self.close_order(ctx, key);
                self.start(ctx, &key.job, true, Some(AskedBy::Rule), None);
            }
            // Lost with its node: it has not started.
            (None, _) | (Some(_), OrderProgress::Failed) => {
                let starts = order.what != OrderKind::Stop;
                self.close_order(ctx, key);
                if starts {
                    let node = key.node.clone();
                    self.stands(&key.job, JobStanding::OrderFailed { node });
                    self.take_back(ctx, key);
                }
            }
            (Some(_), OrderProgress::Open) => {}
            (Some(_), OrderProgress::Taken) => {
                if !order.taken
                    && let Some(order) = self.orders.edit(key)
                {
                    order.taken = true;
                }
            }
            (Some(_), OrderProgress::Forgotten) => {
                let number = self.next_number();
                if let Some(order) = self.orders.edit(key) {
                    (order.number, order.since, order.taken) = (number, ctx.now, false);
                }
                self.sent.remove(key);
            }
            (Some(_), OrderProgress::Done(standing)) => {
                self.close_order(ctx, key);
                self.stands(&key.job, standing);
            }
            (Some(_), OrderProgress::Gone) => {
                let starts = match order.what {
                    OrderKind::Start { fails_over, .. } => Some(fails_over),
                    OrderKind::Stop => None,
                };
                self.close_order(ctx, key);
                self.stands(&key.job, JobStanding::Rest);
                let wanted = ctx.wishes.is_wanted(&key.job) && !self.stage.is_ending();
                if let Some(fails_over) = starts.filter(|_| wanted) {
                    self.start(ctx, &key.job, fails_over, Some(AskedBy::Rule), None);
                }
            }
        }
    }

    /// An order that was given up must not come late: a higher one goes after it.
    fn take_back(&mut self, ctx: &mut MasterCtx<'_>, key: &OrderKey) {
        let order =
            JobOrder { number: self.next_number(), job: key.job.clone(), what: OrderKind::Stop };
        ctx.sends.push((key.node.clone(), Message::Order(order)));
    }

    /// `true`: it has crashed.
    fn follow_job(&mut self, ctx: &mut MasterCtx<'_>, job: &Name) -> bool {
        self.recall_end(ctx, job);
        let active = ctx.active(job).find(|(_, state)| state.is_up()).map(|(node, _)| node.clone());
        let standing = self.jobs.get(job).cloned().unwrap_or(JobStanding::Rest);
        let here = |node: &Name| ctx.nodes.get(node).and_then(|it| Some((it, it.jobs.get(job)?)));
        match (standing, active) {
            (JobStanding::Up { ref node, ref run, incarnation, since }, Some(active)) => {
                let Some((facts, copy)) = here(&active) else { return false };
                let same = *node == active && *run == facts.run && copy.incarnation == incarnation;
                let since = if *node == active && *run == facts.run { since } else { ctx.now };
                if !same {
                    self.stands(job, up(&active, facts, copy, since));
                }
                false
            }
            // A reload has taken it from its node: it goes where it is known.
            (JobStanding::Up { ref node, ref run, .. }, None)
                if here(node).is_none()
                    && ctx.nodes.get(node).is_some_and(|facts| facts.run == *run) =>
            {
                self.stands(job, JobStanding::Rest);
                if ctx.wishes.is_wanted(job) && !self.stage.is_ending() {
                    self.start(ctx, job, false, Some(AskedBy::Rule), None);
                }
                false
            }
            (JobStanding::Up { ref node, ref run, .. }, None) => match here(node) {
                Some((facts, copy)) if facts.run == *run => match copy.state {
                    CopyState::Exited { well: true } => {
                        self.stands(job, JobStanding::Ended { well: true });
                        false
                    }
                    CopyState::Exited { well: false } | CopyState::Fatal => {
                        self.stands(job, JobStanding::Ended { well: false });
                        true
                    }
                    // Its node ends on purpose: it waits for it from now on.
                    CopyState::Stopped if facts.ending && !self.stage.is_ending() => {
                        self.wait_for_its_node(ctx, job, node);
                        false
                    }
                    CopyState::Stopped => {
                        // Its node is no candidate any more: it goes elsewhere.
                        if copy.disabled && ctx.wishes.is_wanted(job) {
                            self.then.insert(job.clone(), Afterwards::Start);
                        }
                        self.stands(job, JobStanding::Rest);
                        false
                    }
                    CopyState::Waiting
                    | CopyState::Starting
                    | CopyState::Running
                    | CopyState::Backoff
                    | CopyState::Stopping => false,
                },
                Some(_) | None => {
                    self.wait_for_its_node(ctx, job, node);
                    false
                }
            },
            (
                JobStanding::Rest
                | JobStanding::Ended { .. }
                | JobStanding::Lost { .. }
                | JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. },
                Some(active),
            ) => {
                if let Some((facts, copy)) = here(&active) {
                    self.stands(job, up(&active, facts, copy, ctx.now));
                }
                false
            }
            (
                JobStanding::Rest
                | JobStanding::Ended { .. }
                | JobStanding::Lost { .. }
                | JobStanding::NotPlaced(_)
                | JobStanding::OrderFailed { .. },
                None,
            ) => false,
        }
    }

    /// Nobody has told this master of a job: what has become of it shows where it has run.
    fn recall_end(&mut self, ctx: &MasterCtx<'_>, job: &Name) {
        if self.jobs.contains_key(job) || ctx.active(job).next().is_some() {
            return;
        }
        let ended = ctx.nodes.copies(job).find_map(|(_, copy)| match copy.state {
            CopyState::Exited { well } => Some(well),
            CopyState::Fatal => Some(false),
            CopyState::Stopped
            | CopyState::Waiting
            | CopyState::Starting
            | CopyState::Running
            | CopyState::Backoff
            | CopyState::Stopping => None,
        });
        if let Some(well) = ended {
            self.stands(job, JobStanding::Ended { well });
        }
    }

    /// Its node is gone. Where that is a failure it stands in a queue; else the node ended on
    /// purpose, and what it ran waits for it.
    fn wait_for_its_node(&mut self, ctx: &mut MasterCtx<'_>, job: &Name, node: &Name) {
        if open_failures(ctx)
            .iter()
            .any(|it| it.job == *job && it.node == *node && !self.answered.has(it))
        {
            return;
        }
        self.stands(job, JobStanding::Lost { node: node.clone() });
        let number = self.next_number();
        ctx.wishes.wait_for(number, job, Some(node.clone()));
    }

    /// Losses that nobody has answered: each once, those of one app together.
    pub(super) fn answer_losses(&mut self, ctx: &mut MasterCtx<'_>) {
        let mut lost: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
        self.answered.forget(|node, run| ctx.nodes.get(node).is_some_and(|it| it.run == *run));
        for failure in open_failures(ctx) {
            let back = ctx.nodes.get(&failure.node).is_some_and(|it| it.run == failure.run);
            let Some(rules) = ctx.catalogue.jobs.get(&failure.job).filter(|_| !back) else {
                continue;
            };
            if !self.answered.insert(failure.clone()) {
                continue;
            }
            let (job, node) = (&failure.job, &failure.node);
            let ordered = self.orders.has(job);
            if ctx.active(job).next().is_some() || ordered {
                continue;
            }
            // One that had not started has failed to start: its app knows by its standing.
            let started = match self.jobs.get(job) {
                Some(JobStanding::OrderFailed { .. }) => false,
                None
                | Some(
                    JobStanding::Rest
                    | JobStanding::Up { .. }
                    | JobStanding::Ended { .. }
                    | JobStanding::Lost { .. }
                    | JobStanding::NotPlaced(_),
                ) => true,
            };
            if !started || !ctx.wishes.is_wanted(job) {
                if started {
                    self.stands(job, JobStanding::Rest);
                }
                continue;
            }
            self.stands(job, JobStanding::Lost { node: node.clone() });
            ctx.events.push(FleetEvent::Failure { failure: failure.clone() });
            lost.entry(rules.app.clone()).or_default().insert(job.clone());
        }
        for (app, jobs) in lost {
            self.step_app(ctx, &app, AppInput::Lost { jobs: &jobs }, Some(AskedBy::Rule));
            for job in &jobs {
                self.wait_if_left(ctx, job);
            }
        }
    }

    /// Nothing was done about it: it waits for its node.
    fn wait_if_left(&mut self, ctx: &mut MasterCtx<'_>, job: &Name) {
        let ordered = self.orders.has(job);
        if let (Some(JobStanding::Lost { node }), false, true) =
            (self.jobs.get(job).cloned(), ordered, ctx.wishes.is_wanted(job))
        {
            let number = self.next_number();
            ctx.wishes.wait_for(number, job, Some(node));
        }
    }
}

fn open_failures(ctx: &MasterCtx<'_>) -> BTreeSet<FailureKey> {
    ctx.nodes.values().flat_map(|facts| facts.failures.iter().cloned()).collect()
}

fn up(node: &Name, facts: &NodeFacts, copy: &JobCopy, since: Mono) -> JobStanding {
    let (node, run, incarnation) = (node.clone(), facts.run.clone(), copy.incarnation);
    JobStanding::Up { node, run, incarnation, since }
}

fn progress(
    order: &OpenOrder,
    facts: Option<&std::sync::Arc<NodeFacts>>,
    copy: Option<&JobCopy>,
    overdue: bool,
    now: Mono,
    node: &Name,
) -> OrderProgress {
    let late = if overdue && !order.taken { OrderProgress::Failed } else { OrderProgress::Open };
    let (Some(facts), Some(copy)) = (facts, copy) else {
        return if order.taken { OrderProgress::Gone } else { late };
    };
    // A higher one is of another master: this one is given again under a higher term.
    let taken = copy.order.as_ref() == Some(&order.number);
    if order.taken && copy.order.as_ref() < Some(&order.number) {
        return OrderProgress::Forgotten;
    }
    match (&order.what, copy.state) {
        (OrderKind::Stop, CopyState::Stopped) if taken => OrderProgress::Done(JobStanding::Rest),
        (OrderKind::Stop, CopyState::Exited { well }) if taken => {
            OrderProgress::Done(JobStanding::Ended { well })
        }
        (OrderKind::Stop, CopyState::Fatal) if taken => {
            OrderProgress::Done(JobStanding::Ended { well: false })
        }
        // It has stopped, and somebody has started it there since.
        (
            OrderKind::Stop,
            CopyState::Waiting | CopyState::Starting | CopyState::Running | CopyState::Backoff,
        ) if taken && copy.by_hand => OrderProgress::Done(up(node, facts, copy, now)),
        (OrderKind::Start { .. }, CopyState::Running) if taken => {
            OrderProgress::Done(up(node, facts, copy, now))
        }
        (OrderKind::Start { .. }, CopyState::Exited { well }) if taken => {
            OrderProgress::Done(JobStanding::Ended { well })
        }
        (OrderKind::Start { .. }, CopyState::Fatal) if taken => {
            OrderProgress::Done(JobStanding::Ended { well: false })
        }
        (OrderKind::Start { .. }, CopyState::Stopped) if taken => {
            OrderProgress::Done(JobStanding::Rest)
        }
        (
            OrderKind::Start { .. } | OrderKind::Stop,
            CopyState::Stopped
            | CopyState::Waiting
            | CopyState::Starting
            | CopyState::Running
            | CopyState::Backoff
            | CopyState::Stopping
            | CopyState::Exited { .. }
            | CopyState::Fatal,
        ) => {
            if taken {
                OrderProgress::Taken
            } else {
                late
            }
        }
    }
}
