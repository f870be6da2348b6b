//! What the API asks: a request becomes an input, a question is answered.

use crate::{
    agent::{Agent, End, Origin},
    clock,
    fleet::FleetRoom,
    handle::Call,
    journal::plan_file::OnDisk,
    reload::{
        Applied,
        previews::{Previewed, WantedPlan},
    },
    view::{self, why},
};
use mainstay_core::{
    fleet::RequestAnswer,
    name::Name,
    node::{Blockers, Input, ReloadPreview, Request},
    plan::JobPlan,
};
use mainstay_wire::{
    api::{AppDetail, AppStatus, Changes, JobStatus, NodeStatus, Selection, StartPlan},
    link::ToKeeper,
};
use std::sync::Arc;
use tokio::{sync::oneshot, time::Instant};

impl Agent {
    pub(crate) fn on_call(&mut self, call: Call) -> Result<(), End> {
        let begun = Instant::now();
        match call {
            Call::Request(request, caller) if request.disables().is_some() => {
                return self.keep_first(request, caller);
            }
            Call::Request(request, caller) => {
                return self.take(Input::Request(request), Origin::Caller(caller));
            }
            Call::Status(caller) => {
                let others = self.share_status(caller);
                self.meter.busy(begun.elapsed());
                others.into_iter().try_for_each(|call| self.on_call(call))?;
            }
            Call::Look(look) => look(self),
            Call::Compare(plan, caller) => {
                self.previews.answer(&self.node, clock::now(), plan, caller);
            }
            Call::Apply(plan, caller) => {
                let wanted = WantedPlan::new(plan, caller);
                self.previews.begin(&self.node, clock::now(), wanted);
            }
            Call::HandOver(on) => return self.hand_over(on),
            Call::AskFleet(request, caller) => return self.ask_fleet(request, caller),
            Call::AskRollout(request, caller) => return self.ask_rollout(request, caller),
            Call::Figures(caller) => {
                let id = self.inspections.expect(caller);
                self.say(&ToKeeper::Inspect { id });
            }
            Call::Upgrade(binary, caller) => {
                let id = self.upgrades.expect(caller);
                if let Err(error) = self.link.push(&ToKeeper::Upgrade { id, binary }) {
                    self.upgrades.answer(id, error.to_string());
                }
            }
        }
        self.meter.busy(begun.elapsed());
        Ok(self.link.flush()?)
    }

    /// One status for all who wait for it now: with many jobs it takes its time. What else is
    /// asked for comes back.
    fn share_status(&mut self, first: oneshot::Sender<Arc<NodeStatus>>) -> Vec<Call> {
        let status = Arc::new(self.status());
        let _ = first.send(status.clone());
        let mut others = Vec::new();
        while let Ok(call) = self.calls.try_recv() {
            match call {
                Call::Status(caller) => drop(caller.send(status.clone())),
                other => others.push(other),
            }
        }
        others
    }

    /// Brings a plan into force whose preview is made. Where the node has moved on meanwhile the
    /// preview is made anew, so that what is applied and what is answered are the same.
    pub(crate) fn apply(&mut self, previewed: Previewed) -> Result<(), End> {
        // Also what came of a plan that changes nothing.
        self.give_back.ask();
        let Previewed { wanted, preview, changes } = previewed;
        match self.node.is_current(&preview, &wanted.plan) {
            true => self.apply_as_previewed(wanted, preview, changes),
            false => {
                self.previews.begin_again(&self.node, clock::now(), wanted);
                Ok(())
            }
        }
    }

    fn apply_as_previewed(
        &mut self,
        WantedPlan { plan, caller, .. }: WantedPlan,
        preview: Box<ReloadPreview>,
        changes: Changes,
    ) -> Result<(), End> {
        let incarnation =
            |job: &Name| Some((job.clone(), self.node.job(job.as_str())?.incarnation()));
        let before = changes.jobs.iter().filter_map(|change| incarnation(&change.job)).collect();
        let (sender, mut answer) = oneshot::channel();
        self.take(
            Input::Request(Request::Apply { plan, preview: Some(preview) }),
            Origin::Caller(sender),
        )?;
        // A step answers before it returns.
        if let Ok(answer) = answer.try_recv() {
            let behind = self.plan_on_disk == OnDisk::Behind;
            let written = behind.then(|| self.plan_writer.when_written());
            let applied = answer.map(|_| Applied { changes, before, written });
            let _ = caller.send(applied.map_err(Into::into));
        }
        Ok(())
    }

    fn status(&self) -> NodeStatus {
        let plan = self.node.plan();
        NodeStatus {
            node: plan.node.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: self.node.phase(),
            run: self.about.run.clone(),
            run_dir: self.about.run_dir.clone(),
            state_dir: self.about.state_dir.clone(),
            agent_restarts: self.about.agent_restarts,
            stop_timeout: plan.node.stop_timeout.as_secs_f64(),
            journal_lost: self.node.journal_loss().map(view::journal_lost),
            keeper: None,
            jobs: self.jobs(),
            telemetry: None,
            containerpilot: None,
            xmlrpc: Vec::new(),
            apps: self.apps(),
            watches: view::watches(&self.node, &self.discovery),
            discovery: view::discovery(plan, &self.discovery),
            fleet: self.fleet.as_ref().map(FleetRoom::status),
            rollout: self.rollout_status(clock::now()).map(Box::new),
            strays: None,
        }
    }

    /// Those of the fleet, if there is one.
    pub(crate) fn apps(&self) -> Vec<AppStatus> {
        match &self.fleet {
            Some(room) => room.apps(),
            None => view::apps(&self.node),
        }
    }

    pub(crate) fn app(&self, name: &str) -> Option<AppDetail> {
        match &self.fleet {
            Some(room) => room.app(name),
            None => view::app(&self.node, name),
        }
    }

    pub(crate) fn plan_start(&self, app: &Name) -> Result<StartPlan, RequestAnswer> {
        match &self.fleet {
            Some(room) => room.plan_start(clock::mono(), app),
            None => view::plan_start(&self.node, app).ok_or(RequestAnswer::NoSuchApp),
        }
    }

    pub(crate) fn selected(&self, which: &Selection) -> Vec<JobStatus> {
        let blockers = self.node.blockers();
        let one = |name: &str| self.job(&blockers, name);
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

    fn job(&self, blockers: &Blockers<'_>, name: &str) -> Option<JobStatus> {
        let plan = self.node.job_plan(name)?;
        let job = self.node.job(name)?;
        let mut status = view::job(blockers, plan, job, self.facts.get(name));
        status.start = view::start_stage(&self.node, plan, job, clock::now().mono);
        status.announced = self.discovery.announced(name);
        status.placed = self.fleet.as_ref().and_then(|room| room.placed(&plan.name));
        status.node = self.fleet.as_ref().map(|room| room.me().clone());
        Some(status)
    }

    /// Where the fleet has it comes before how it is here.
    pub(crate) fn why(&self, name: &str) -> Option<Vec<String>> {
        let mut here = why::why(&self.node, clock::now(), name)?;
        let job = self.node.job_plan(name).map(|plan| &plan.name);
        let placed = self.fleet.as_ref().zip(job);
        if placed.is_some_and(|(room, job)| room.is_disabled(job)) {
            // What can be done is said for the fleet.
            here.truncate(1);
        }
        let there = placed.map(|(room, job)| room.why(job));
        let rolled_out = self.why_not_rolled_out(name);
        Some(there.unwrap_or_default().into_iter().chain(here).chain(rolled_out).collect())
    }

    fn jobs(&self) -> Vec<JobStatus> {
        let mut jobs = view::jobs(&self.node, &self.facts);
        let placed = self.fleet.as_ref().map(FleetRoom::all_placed).unwrap_or_default();
        for job in &mut jobs {
            job.announced = self.discovery.announced(job.name.as_str());
            job.placed = placed.get(&job.name).cloned();
            job.node = self.fleet.as_ref().map(|room| room.me().clone());
        }
        jobs
    }
}
