//! What the keeper and the API say, turned into inputs and answers.

use crate::{
    agent::{Agent, End, Origin},
    ask::{Ask, Selection},
    clock, lane, secret,
    view::{self, Changes, Facts, JobStatus, Status},
    why,
};
use mainstay_core::{
    name::Name,
    node::{Input, Outlook, Refusal, Request, TaskId, TaskKind},
    plan::{JobPlan, Plan, Reach},
};
use mainstay_wire::link::{self, ExitRecord, ToAgent, ToKeeper};
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
    fn expect(&mut self, asker: oneshot::Sender<T>) -> u64 {
        self.waiting.retain(|_, asker| !asker.is_closed());
        self.next += 1;
        self.waiting.insert(self.next, asker);
        self.next
    }

    fn answer(&mut self, id: u64, answer: T) {
        if let Some(asker) = self.waiting.remove(&id) {
            let _ = asker.send(answer);
        }
    }
}

impl Agent {
    pub(crate) fn hear(&mut self, message: ToAgent) -> Result<(), End> {
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
            ToAgent::TaskDone { id, exit, output, truncated } => {
                let output = self.hide(&id.job, output);
                tell_output(&id, &output, truncated);
                self.take(lane::task_done(id.clone(), exit, &output), Origin::Task(id))
            }
            // An earlier agent has written it down: only its thanks got lost.
            ToAgent::Asked { token, .. }
            | ToAgent::Signalled { token, .. }
            | ToAgent::LogGap { token, .. }
                if self.taken.contains(token) =>
            {
                self.say(&ToKeeper::Taken { token });
                Ok(self.link.flush()?)
            }
            ToAgent::Asked { token, job, incarnation, ask } => {
                self.take_ask(token, job, incarnation, ask)
            }
            ToAgent::Signalled { token, signal } => {
                self.take(Input::Signalled { signal }, Origin::Token(token))
            }
            ToAgent::Notified { job, incarnation, fields } => {
                self.take_notice(job, incarnation, fields)
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
        let ExitRecord { record, job, incarnation, exit, asked, .. } = record;
        self.take(Input::Exited { job, incarnation, exit, asked }, Origin::Record(record))
    }

    /// What came in at a job's control socket is meant for the incarnation behind that socket.
    fn take_ask(
        &mut self,
        token: u64,
        job: Name,
        incarnation: u64,
        ask: link::Ask,
    ) -> Result<(), End> {
        let current = self.node.job(job.as_str()).map(mainstay_core::job::Job::incarnation);
        if current != Some(incarnation) {
            self.say(&ToKeeper::Taken { token });
            return Ok(self.link.flush()?);
        }
        let request = match ask {
            link::Ask::Stop => Request::Stop { job },
            link::Ask::Kill => Request::Kill { job },
            link::Ask::Signal(signal) => Request::Signal { job, signal, to: Reach::Leader },
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

    pub(crate) fn take_notice(
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

    pub(crate) fn answer(&mut self, ask: Ask) -> Result<(), End> {
        match ask {
            Ask::Request(request, asker) => {
                return self.take(Input::Request(request), Origin::Asker(asker));
            }
            Ask::Status(asker) => drop(asker.send(self.status())),
            Ask::Jobs(which, asker) => drop(asker.send(self.selected(&which))),
            Ask::Why(name, asker) => drop(asker.send(why::why(&self.node, clock::now(), &name))),
            Ask::Compare(plan, asker) => {
                drop(asker.send(view::changes(&self.node, clock::now(), &plan)));
            }
            Ask::Apply(plan, asker) => return self.apply(plan, asker),
            Ask::Measures(asker) => drop(asker.send(self.measures())),
            Ask::Environ(asker) => drop(asker.send(self.node.environ().clone())),
            Ask::Figures(asker) => {
                let id = self.inspections.expect(asker);
                self.say(&ToKeeper::Inspect { id });
            }
            Ask::Upgrade(binary, asker) => {
                let id = self.upgrades.expect(asker);
                if let Err(error) = self.link.push(&ToKeeper::Upgrade { id, binary }) {
                    self.upgrades.answer(id, error.to_string());
                }
            }
        }
        Ok(self.link.flush()?)
    }

    fn apply(
        &mut self,
        plan: Box<Plan>,
        asker: oneshot::Sender<Result<Changes, Refusal>>,
    ) -> Result<(), End> {
        let changes = match view::changes(&self.node, clock::now(), &plan) {
            Ok(changes) => changes,
            Err(refusal) => {
                let _ = asker.send(Err(refusal));
                return Ok(());
            }
        };
        let (sender, mut answer) = oneshot::channel();
        self.take(Input::Request(Request::Apply { plan }), Origin::Asker(sender))?;
        // A step answers before it returns.
        if let Ok(answer) = answer.try_recv() {
            let _ = asker.send(answer.map(|_| changes));
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let plan = self.node.plan();
        Status {
            node: plan.node.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: self.node.phase(),
            run: self.about.run.clone(),
            run_dir: self.about.run_dir.clone(),
            state_dir: self.about.state_dir.clone(),
            agent_restarts: self.about.agent_restarts,
            keeper: None,
            jobs: self.jobs(),
            telemetry: None,
            containerpilot: None,
            watches: view::watches(&self.node, &self.discovery),
            discovery: view::discovery(plan, &self.discovery),
            fleet: None,
            rollout: None,
            strays: None,
        }
    }

    fn selected(&self, which: &Selection) -> Vec<JobStatus> {
        let outlook = self.node.outlook();
        let one = |name: &str| self.job(&outlook, name);
        let those = |wanted: &dyn Fn(&JobPlan) -> bool| {
            let jobs = self.node.jobs().filter(|(plan, _)| wanted(plan));
            jobs.filter_map(|(plan, _)| one(plan.name.as_str())).collect()
        };
        let is = |name: &Option<Name>, text: &str| {
            name.as_ref().is_some_and(|name| name.as_str() == text)
        };
        match which {
            Selection::Named(name) => match one(name) {
                Some(job) => vec![job],
                None => those(&|plan| is(&plan.instance_of, name)),
            },
            Selection::OfApp(app) => those(&|plan| is(&plan.app, app.as_str())),
            Selection::StartedWith(app) => {
                those(&|plan| is(&plan.app, app.as_str()) && plan.place.start_sequence > 0)
            }
            Selection::These(names) => names.iter().filter_map(|name| one(name.as_str())).collect(),
        }
    }

    fn job(&self, outlook: &Outlook<'_>, name: &str) -> Option<JobStatus> {
        let plan = self.node.job_plan(name)?;
        let mut status = view::job(outlook, plan, self.node.job(name)?, self.facts.get(name));
        status.announced = self.discovery.announced(name);
        Some(status)
    }

    fn jobs(&self) -> Vec<JobStatus> {
        let mut jobs = view::jobs(&self.node, &self.facts);
        for job in &mut jobs {
            job.announced = self.discovery.announced(job.name.as_str());
        }
        jobs
    }
}

fn tell_output(id: &TaskId, output: &str, truncated: bool) {
    let what = match id.what {
        TaskKind::StopExec => "stop",
        TaskKind::Reload => "reload",
        // Part of its answer.
        TaskKind::Check(_) => return,
    };
    if !output.is_empty() {
        let cut = if truncated { " (cut)" } else { "" };
        tracing::info!("{}: its {what} command said{cut}: {}", id.job, output.trim_end());
    }
}
