//! What happens to the node, turned into inputs: the messages of the keeper here, the calls of the
//! API in [`calls`], what is due in [`timers`] and [`cron`].

mod calls;
pub(crate) mod clock;
pub(crate) mod cron;
pub(crate) mod link;
mod secret;
pub(crate) mod seen_tokens;
pub(crate) mod timers;

use crate::{
    agent::{Agent, End, Origin},
    effects::outgoing,
    rollout::RolloutTask,
    view::Facts,
};
use mainstay_core::{
    name::Name,
    node::{Input, Request},
    plan::SignalTarget,
    rollout::Op,
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner},
    text::counted,
};
use mainstay_wire::{
    link::{ControlRequest, ExitRecord, ToAgent, ToKeeper},
    task::TaskDone,
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use tokio::sync::oneshot;

/// Who waits for which answer of the keeper.
#[derive(Debug)]
pub(crate) struct Replies<T> {
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<T>>,
}

impl<T> Default for Replies<T> {
    fn default() -> Replies<T> {
        Replies { next: 0, waiting: HashMap::new() }
    }
}

impl<T> Replies<T> {
    /// The number under which the answer will come. Those who gave up are forgotten.
    fn expect(&mut self, caller: oneshot::Sender<T>) -> u64 {
        self.waiting.retain(|_, caller| !caller.is_closed());
        self.next += 1;
        self.waiting.insert(self.next, caller);
        self.next
    }

    fn answer(&mut self, id: u64, answer: T) {
        if let Some(caller) = self.waiting.remove(&id) {
            let _ = caller.send(answer);
        }
    }
}

impl Agent {
    pub(crate) fn on_message(&mut self, message: ToAgent) -> Result<(), End> {
        match message {
            ToAgent::Welcome(_) => {
                tracing::warn!("the keeper said welcome twice");
                Ok(())
            }
            ToAgent::Spawned { job, incarnation, pid, tree, unenforced } => {
                let facts = Facts { incarnation, tree: Some(tree), unenforced, ..Facts::default() };
                self.facts.insert(job.clone(), facts);
                self.take(Input::Spawned { job, incarnation, pid }, Origin::World)
            }
            ToAgent::Exited(record) => self.take_record(record),
            ToAgent::TaskDone(done) => self.take_outcome(done),
            // An earlier agent has written it down: only its thanks got lost.
            ToAgent::Asked { token, .. }
            | ToAgent::Signalled { token, .. }
            | ToAgent::LogGap { token, .. }
                if self.seen_tokens.contains(token) =>
            {
                self.say(&ToKeeper::Taken { token });
                Ok(self.link.flush()?)
            }
            ToAgent::Asked { token, job, incarnation, request: ask } => {
                self.take_control_request(token, job, incarnation, ask)
            }
            ToAgent::Signalled { token, signal } => {
                self.take(Input::Signalled { signal }, Origin::Token(token))
            }
            ToAgent::Notified { job, incarnation, fields } => {
                self.take_notification(job, incarnation, fields)
            }
            ToAgent::LogGap { token, job, lines } => {
                self.take(Input::LogGap { job, lines }, Origin::Token(token))
            }
            ToAgent::Rotated { file, compress, .. } => {
                if compress {
                    self.archive.compress(file);
                }
                Ok(())
            }
            ToAgent::StrayKilled { pid, command } => {
                self.take(Input::StrayKilled { pid, command }, Origin::World)
            }
            ToAgent::Figures { id, figures } => {
                self.inspections.answer(id, figures);
                Ok(())
            }
            ToAgent::UpgradeFailed { id, error } => {
                self.upgrades.answer(id, error);
                Ok(())
            }
        }
    }

    pub(crate) fn take_record(&mut self, record: ExitRecord) -> Result<(), End> {
        let usage = record.usage();
        let ExitRecord { record, job, incarnation, exit, asked, .. } = record;
        self.take(Input::Exited { job, incarnation, exit, usage, asked }, Origin::Record(record))
    }

    fn take_outcome(&mut self, done: TaskDone) -> Result<(), End> {
        let TaskDone { id: key, mut outcome } = done;
        let Some(id) = key.id() else {
            tracing::warn!("a task of an owner that this version does not know: {}", key.owner);
            self.say(&ToKeeper::TaskTaken { id: key });
            return Ok(self.link.flush()?);
        };
        if let TaskOwner::Rollout { room, op, part } = id.owner {
            self.rollout_task_done(room, RolloutTask { op: Op(op), part }, outcome);
            self.say(&ToKeeper::TaskTaken { id: key });
            self.link.flush()?;
            return self.tell_rollout();
        }
        if let TaskOwner::Job { job, incarnation, kind: TaskKind::Check(check) } = &id.owner
            && self.checks.has_ended(job, *incarnation, *check)
        {
            self.say(&ToKeeper::TaskTaken { id: key });
            return Ok(self.link.flush()?);
        }
        if let TaskOwner::Job { kind: TaskKind::Reload, .. } = &id.owner
            && self.rollout_job_told(id.number, &outcome)
        {
            // It may hold a secret of a file that it was told of. The rollout tells it, without.
            outcome.output.clear();
        }
        if let Some(job) = id.owner.job() {
            outcome.output = self.hide(job, std::mem::take(&mut outcome.output));
        }
        log_output(&id, &outcome);
        self.take(outgoing::task_done(id, outcome), Origin::Task(key))
    }

    /// What came in at a job's control socket is meant for the life behind that socket, a signal for
    /// the process.
    fn take_control_request(
        &mut self,
        token: u64,
        job: Name,
        incarnation: u64,
        ask: ControlRequest,
    ) -> Result<(), End> {
        let current = self.node.job(job.as_str()).is_some_and(|job| match ask {
            ControlRequest::Stop | ControlRequest::Kill => job.is_of_this_life(incarnation),
            ControlRequest::Signal(_) => job.incarnation() == incarnation,
        });
        if !current {
            self.say(&ToKeeper::Taken { token });
            return Ok(self.link.flush()?);
        }
        let request = match ask {
            ControlRequest::Stop => Request::Stop { job },
            ControlRequest::Kill => Request::Kill { job },
            ControlRequest::Signal(signal) => {
                Request::Signal { job, signal, to: SignalTarget::Leader }
            }
        };
        self.take(Input::Request(request), Origin::Token(token))
    }

    /// A text of or about a job, without its secrets.
    pub(crate) fn hide(&self, job: &Name, text: String) -> String {
        match self.node.job_plan(job.as_str()) {
            Some(plan) => secret::hide(plan, text),
            None => text,
        }
    }

    pub(crate) fn take_notification(
        &mut self,
        job: Name,
        incarnation: u64,
        fields: BTreeMap<String, String>,
    ) -> Result<(), End> {
        let says = |name: &str| fields.get(name).is_some_and(|value| value == "1");
        let watchdog_every = fields
            .get("WATCHDOG_USEC")
            .and_then(|value| value.parse().ok())
            .map(Duration::from_micros);
        let (ready, watchdog) = (says("READY"), says("WATCHDOG"));
        let fields = fields.into_iter().map(|(name, value)| (name, self.hide(&job, value)));
        let fields = fields.collect();
        self.note(&job, incarnation, fields);
        if !ready && !watchdog && watchdog_every.is_none() {
            return Ok(());
        }
        let notified = Input::Notified { job, incarnation, ready, watchdog, watchdog_every };
        self.take(notified, Origin::World)
    }

    fn note(&mut self, job: &Name, incarnation: u64, fields: BTreeMap<String, String>) {
        let facts = self.facts.entry(job.clone()).or_default();
        if incarnation > facts.incarnation {
            *facts = Facts { incarnation, ..Facts::default() };
        }
        if incarnation == facts.incarnation {
            facts.notify.extend(fields);
        }
    }
}

fn log_output(id: &TaskId, outcome: &TaskOutcome) {
    let whose = match &id.owner {
        TaskOwner::Job { job, kind: TaskKind::StopExec, .. } => format!("{job}: its stop command"),
        TaskOwner::Job { job, kind: TaskKind::Reload, .. } => format!("{job}: its reload command"),
        // Part of its answer.
        TaskOwner::Job { kind: TaskKind::Check(_), .. } => return,
        TaskOwner::Node { purpose } => format!("the command for {purpose}"),
        // Part of its answer.
        TaskOwner::Rollout { .. } => return,
    };
    // A line of its own for each, which names who has said it.
    let mut lines = outcome.output.trim_end().lines();
    for line in lines.by_ref().take(SAID_LINES) {
        tracing::info!("{whose} said: {line}");
    }
    match (lines.count(), outcome.truncated) {
        (0, false) => {}
        (more, false) => {
            tracing::info!("{whose} said {}", counted(more, "more line", "more lines"));
        }
        (more, true) => tracing::info!("{whose} said more than {more} more lines"),
    }
}

/// So many lines of what a command has said are in our log.
const SAID_LINES: usize = 20;
