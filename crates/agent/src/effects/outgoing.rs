//! What goes to the keeper, in order for each job.
//!
//! Users and groups are looked up outside the loop, since that may take long, and what is started
//! waits for the files of watches that are being written. Meanwhile whatever else concerns that job
//! waits behind it in a queue; other jobs are not held up.

use crate::{
    checks::{self, Verdict},
    clock,
    effects::env::Env,
    effects::identity::{self, LookupError, NodeTask, Run},
    effects::watch_files::PendingWrite,
    inputs::link::Link,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
    node::Input,
    plan::JobPlan,
    task::{TaskId, TaskKind, TaskOutcome, TaskOwner},
};
use mainstay_pool::USERS;
use mainstay_wire::link::ToKeeper;
use std::collections::{HashMap, VecDeque};
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) struct Outgoing {
    open: HashMap<Name, VecDeque<Queued>>,
    done: mpsc::UnboundedReceiver<LookedUp>,
    report: mpsc::UnboundedSender<LookedUp>,
}

#[derive(Debug)]
enum Queued {
    Message(ToKeeper),
    Run(Box<JobPlan>, Run, Env, Option<PendingWrite>),
}

/// A finished lookup.
#[derive(Debug)]
pub(crate) struct LookedUp {
    whose: Whose,
    result: Result<ToKeeper, LookupError>,
}

/// What names were looked up for.
#[derive(Debug)]
enum Whose {
    Job(Name, Run),
    Node(TaskId),
}

impl Outgoing {
    pub(crate) fn new() -> Outgoing {
        let (report, done) = mpsc::unbounded_channel();
        Outgoing { open: HashMap::new(), done, report }
    }

    /// Sends a message, or lines it up behind what its job waits for.
    /// What comes back is an input: the message could not be sent, and that is how it ends.
    pub(crate) fn send(&mut self, link: &mut Link, message: ToKeeper) -> Option<Input> {
        match identity::job_of(&message).and_then(|job| self.open.get_mut(job)) {
            Some(queue) => {
                queue.push_back(Queued::Message(message));
                None
            }
            None => deliver(link, &message),
        }
    }

    pub(crate) fn run(
        &mut self,
        link: &mut Link,
        plan: &JobPlan,
        run: Run,
        env: Env,
        files: Option<PendingWrite>,
    ) -> Option<Input> {
        if let Some(queue) = self.open.get_mut(&plan.name) {
            queue.push_back(Queued::Run(Box::new(plan.clone()), run, env, files));
            return None;
        }
        if files.is_some() || identity::needs_lookup(plan) {
            self.open.insert(plan.name.clone(), VecDeque::new());
            self.look_up(plan.clone(), run, env, files);
            return None;
        }
        match identity::message(plan, &run, env, clock::mono()) {
            Ok(message) => deliver(link, &message),
            Err(error) => Some(never_ran(plan.name.clone(), run, error.to_string())),
        }
    }

    fn look_up(&self, plan: JobPlan, run: Run, env: Env, files: Option<PendingWrite>) {
        let report = self.report.clone();
        tokio::spawn(async move {
            if let Some(files) = files {
                files.done().await;
            }
            let whose = Whose::Job(plan.name.clone(), run.clone());
            let result = match identity::needs_lookup(&plan) {
                false => identity::message(&plan, &run, env, clock::mono()),
                true => looked_up(move || identity::message(&plan, &run, env, clock::mono())).await,
            };
            // Nobody listens only when the agent is gone.
            let _ = report.send(LookedUp { whose, result });
        });
    }

    /// Runs a task of the node itself. Nothing else waits for it.
    pub(crate) fn run_for_node(&mut self, link: &mut Link, task: NodeTask) -> Option<Input> {
        if task.spec.user.is_some() {
            let report = self.report.clone();
            tokio::spawn(async move {
                let whose = Whose::Node(task.id.clone());
                let result = looked_up(move || identity::node_message(task, clock::mono())).await;
                // Nobody listens only when the agent is gone.
                let _ = report.send(LookedUp { whose, result });
            });
            return None;
        }
        let id = task.id.clone();
        match identity::node_message(task, clock::mono()) {
            Ok(message) => deliver(link, &message),
            Err(error) => Some(task_done(id, TaskOutcome::error(error.to_string(), 0))),
        }
    }

    /// The next finished lookup. May be dropped at any time.
    pub(crate) async fn looked_up(&mut self) -> LookedUp {
        self.done.recv().await.expect("this struct holds a sender")
    }

    /// Sends what was looked up and what waited behind it.
    pub(crate) fn proceed(&mut self, link: &mut Link, found: LookedUp) -> Option<Input> {
        let LookedUp { whose, result } = found;
        let (job, failure) = match (whose, result) {
            (Whose::Node(_), Ok(message)) => return deliver(link, &message),
            (Whose::Node(id), Err(error)) => {
                return Some(task_done(id, TaskOutcome::error(error.to_string(), 0)));
            }
            (Whose::Job(job, _), Ok(message)) => (job, deliver(link, &message)),
            (Whose::Job(job, run), Err(error)) => {
                (job.clone(), Some(never_ran(job, run, error.to_string())))
            }
        };
        while let Some(item) = self.open.get_mut(&job).and_then(VecDeque::pop_front) {
            match item {
                // What concerns a run that never came about has nothing to act on: the keeper
                // ignores an incarnation that it does not hold.
                Queued::Message(message) => drop(deliver(link, &message)),
                Queued::Run(plan, run, env, files) => {
                    self.look_up(*plan, run, env, files);
                    return failure;
                }
            }
        }
        self.open.remove(&job);
        failure
    }
}

/// Looks names up, outside the loop.
async fn looked_up(
    look_up: impl FnOnce() -> Result<ToKeeper, LookupError> + Send + 'static,
) -> Result<ToKeeper, LookupError> {
    USERS.run(look_up).await?
}

fn deliver(link: &mut Link, message: &ToKeeper) -> Option<Input> {
    let error = link.push(message).err()?;
    let error = format!("arguments and environment are too long: {error}");
    match message {
        ToKeeper::Spawn(spawn) => {
            let run = Run::Incarnation { incarnation: spawn.incarnation, args: Vec::new() };
            Some(never_ran(spawn.job.clone(), run, error))
        }
        ToKeeper::RunTask(task) => Some(task_done(task.id.id()?, TaskOutcome::error(error, E2BIG))),
        _ => {
            tracing::error!("a message to the keeper is lost: {error}");
            None
        }
    }
}

const E2BIG: i32 = 7;

fn never_ran(job: Name, run: Run, error: String) -> Input {
    match run {
        Run::Incarnation { incarnation, .. } => {
            let exit = Exit::Error { error, errno: 0 };
            Input::Exited { job, incarnation, exit, usage: None, asked: Asked::None }
        }
        Run::Task { id, .. } => task_done(id, TaskOutcome::error(error, 0)),
    }
}

/// The end of a task; that of an exec check is its answer.
pub(crate) fn task_done(id: TaskId, outcome: TaskOutcome) -> Input {
    match id.owner {
        TaskOwner::Job { job, incarnation, kind: TaskKind::Check(check) } => {
            let Verdict { passed, output } = checks::of_task(&outcome.exit, &outcome.output);
            Input::Checked { job, incarnation, check, passed, output }
        }
        TaskOwner::Job { kind: TaskKind::StopExec | TaskKind::Reload, .. }
        | TaskOwner::Node { .. }
        | TaskOwner::Rollout { .. } => Input::TaskDone { id, outcome },
    }
}
