//! Between the room of the rollout and the loop: what it wants of jobs becomes requests to the node,
//! what it wants to be run becomes tasks of the keeper, and how it stands becomes events.

use super::{
    RequestCaller, RolloutAction, RolloutRoom, RolloutWake,
    job_service::{self, JobWait},
    probe,
    tasks::{RolloutTask, TaskPurpose},
};
use crate::{
    agent::{Agent, End, Origin},
    clock,
    effects::identity::NodeTask,
};
use mainstay_core::{
    clock::Mono,
    event::{Event, Kind},
    job::Phase,
    name::Name,
    node::{Input, NodePhase},
    plan::{
        HealthComparison, HealthSource, ReloadMethod, ServiceCheck, ServicePlan, ServiceTarget,
    },
    rollout::{
        FailureReport, JobTelling, Op, ProbeOutcome, ProbeTarget, ReadyHold, RolloutCommand,
        RolloutInput, RolloutRequest, ServiceAction, ServiceFacts, Trouble,
    },
    task::{TaskId, TaskOutcome, TaskOwner, TaskSpec},
};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long `on_failure` may take.
const HOOK_TIME: Duration = Duration::from_secs(60);

impl Agent {
    pub(crate) fn on_rollout(&mut self, wake: RolloutWake) -> Result<(), End> {
        match (wake, self.rollout.room_mut()) {
            (wake, Some(room)) => room.take(clock::now(), wake),
            (RolloutWake::Opened(opened), None) => {
                if let Some(plan) = &self.node.plan().rollout {
                    self.rollout.fill(plan, &self.node.plan().node.name, *opened);
                    // A reload has brought the first thing that is rolled out.
                    self.begin_rollout(false)?;
                }
            }
            (RolloutWake::Answer(_) | RolloutWake::Kept(_) | RolloutWake::Due, None) => {}
        }
        self.tell_rollout()?;
        self.tell_fleet()
    }

    /// Before the first decision: whoever started the node hears that it is ready once what is rolled
    /// out is in place.
    pub(crate) fn hold_ready(&mut self, takes_over: bool) {
        if let Some(room) = self.rollout.room_mut() {
            room.hold = ReadyHold::begin(&room.rollout, clock::mono(), takes_over);
        }
    }

    /// The first input of the rollout.
    pub(crate) fn begin_rollout(&mut self, takes_over: bool) -> Result<(), End> {
        let maintenance = self.node.phase() == NodePhase::Maintenance;
        if let Some(room) = self.rollout.room_mut() {
            room.maintenance = maintenance;
            room.step(clock::now(), RolloutInput::Maintenance { on: maintenance });
            room.step(clock::now(), RolloutInput::Start { takes_over });
        }
        self.tell_rollout()
    }

    /// The service that is told is finished first, as long as the time of the shutdown allows.
    pub(crate) fn rollout_finishes(&self) -> bool {
        self.rollout.room().is_some_and(|room| room.finishes(clock::mono()))
    }

    /// A user asks something of the rollout. Where there is none the caller is let go.
    pub(crate) fn ask_rollout(
        &mut self,
        request: RolloutRequest,
        caller: RequestCaller,
    ) -> Result<(), End> {
        if let Some(room) = self.rollout.room_mut() {
            room.ask(clock::now(), request, caller);
        }
        self.tell_rollout()
    }

    /// The reload of a job has ended; whether the rollout has asked for it.
    pub(crate) fn rollout_job_told(&mut self, number: u64, outcome: &TaskOutcome) -> bool {
        let Some(room) = self.rollout.room_mut() else { return false };
        let Some(op) = room.job_waits.take_task(number) else { return false };
        room.performers.report_end(op, TaskPurpose::Reload, outcome.clone());
        true
    }

    /// What a step of the node means to the rollout.
    pub(crate) fn rollout_hears(&mut self, events: &[Event]) {
        let Some(room) = self.rollout.room_mut() else { return };
        if room.job_waits.is_empty() {
            return;
        }
        for event in events {
            let Kind::TaskEnded { number, .. } = &event.kind else { continue };
            let told = room.job_waits.take_earlier(*number);
            room.actions.extend(told.into_iter().map(RolloutAction::Perform));
        }
        for (op, outcome) in room.job_waits.heard(events) {
            room.performers.report_end(op, TaskPurpose::Reload, outcome);
        }
    }

    /// Does what the rollout wants, and tells it what has changed here, until both are done.
    pub(crate) fn tell_rollout(&mut self) -> Result<(), End> {
        match (self.rollout.room(), &self.node.plan().rollout) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {}
            (None, Some(_)) => {
                self.rollout.begin_opening();
                return Ok(());
            }
            (Some(_), None) => {
                self.rollout.clear();
                self.take_alone(Input::Rollout(Box::default()))?;
                return self.report_waves();
            }
        }
        loop {
            while let Some(action) = self.rollout.room_mut().and_then(RolloutRoom::next_action) {
                self.do_rollout_action(action)?;
            }
            let Some(room) = self.rollout.room_mut() else { return Ok(()) };
            let now = clock::now();
            for (op, outcome) in room.job_waits.ended(&self.node) {
                room.step(now, RolloutInput::Told { op, outcome });
            }
            if let Some(plan) = &self.node.plan().rollout {
                room.apply(now, plan);
            }
            let maintenance = self.node.phase() == NodePhase::Maintenance;
            if room.maintenance != maintenance {
                room.maintenance = maintenance;
                room.step(now, RolloutInput::Maintenance { on: maintenance });
            }
            if self.node.phase() == NodePhase::Stopping && room.ends_by.is_none() {
                let by = now.mono.after(self.node.plan().node.stop_timeout);
                room.ends_by = Some(by);
                room.step(now, RolloutInput::Ending { by });
            }
            room.hold = room.hold.unless_failed(&room.rollout);
            if room.actions.is_empty() {
                break;
            }
        }
        self.tell_progress();
        self.link.flush()?;
        self.report_waves()
    }

    fn do_rollout_action(&mut self, action: RolloutAction) -> Result<(), End> {
        match action {
            RolloutAction::Tell(facts) => self.take_alone(Input::Rollout(facts)),
            RolloutAction::Perform(command) => self.perform_for_rollout(command),
        }
    }

    fn service_plan(&self, name: &Name) -> Option<ServicePlan> {
        let plan = self.rollout.room()?.rollout.plan();
        plan.services.iter().find(|it| it.name == *name).cloned()
    }

    fn rollout_step(&mut self, input: RolloutInput) {
        if let Some(room) = self.rollout.room_mut() {
            room.step(clock::now(), input);
        }
    }

    fn perform_for_rollout(&mut self, command: RolloutCommand) -> Result<(), End> {
        match command {
            RolloutCommand::Inspect { op, service } => {
                let Some(plan) = self.service_plan(&service) else { return Ok(()) };
                self.inspect_job(op, &plan);
            }
            RolloutCommand::Tell { op, service, action, deadline } => {
                let Some(plan) = self.service_plan(&service) else { return Ok(()) };
                return self.tell_job_service(op, &plan, &action, deadline);
            }
            RolloutCommand::Probe { op, service, check, target, deadline } => {
                let Some(plan) = self.service_plan(&service) else { return Ok(()) };
                self.probe_job_service(op, &plan, check, &target, deadline);
            }
            RolloutCommand::Check { op, template, staged } => {
                let room = self.rollout.room();
                let plan = room.and_then(|room| {
                    room.rollout.plan().templates.iter().find(|it| it.name == template).cloned()
                });
                let Some((plan, check)) = plan.and_then(|it| Some((it.clone(), it.check?))) else {
                    self.rollout_step(RolloutInput::Checked { op, outcome: Ok(()) });
                    return Ok(());
                };
                let staged = mainstay_core::text::bytes::from_os(staged.as_os_str());
                let fill = |word: &String| {
                    word.replace("{{ staged }}", &staged).replace("{{staged}}", &staged)
                };
                let exec = check.iter().map(fill).collect();
                let deadline = clock::mono().after(plan.check_timeout);
                self.run_for_rollout(op.into(), TaskPurpose::Check, exec, Vec::new(), deadline);
            }
            RolloutCommand::RunHook { op, failure } => self.run_hook(op, failure),
            RolloutCommand::Ready => {
                if let Some(room) = self.rollout.room_mut() {
                    room.hold = ReadyHold::Over;
                }
            }
            RolloutCommand::Exit => {
                tracing::error!("the rollout has failed: the node ends");
                self.take_alone(Input::RolloutEnds)?;
            }
            // Done beside the loop.
            RolloutCommand::Load { .. }
            | RolloutCommand::Store { .. }
            | RolloutCommand::Note { .. }
            | RolloutCommand::Publish { .. }
            | RolloutCommand::Stage { .. }
            | RolloutCommand::Switch { .. }
            | RolloutCommand::Restore { .. }
            | RolloutCommand::Retain { .. } => {}
        }
        Ok(())
    }

    fn inspect_job(&mut self, op: Op, plan: &ServicePlan) {
        let facts = job_service::facts(&self.node, &plan.target);
        let counts = plan.checks.iter().any(|it| matches!(it, ServiceCheck::ChangeChildPid { .. }));
        match (facts, counts, self.rollout.room()) {
            (Ok(facts), true, Some(room)) => {
                room.performers.read_children(facts.main_pid, move |children| {
                    let facts = ServiceFacts { children, ..facts };
                    RolloutInput::Inspected { op, outcome: Ok(facts) }
                });
            }
            (outcome, _, _) => self.rollout_step(RolloutInput::Inspected { op, outcome }),
        }
    }

    fn tell_job_service(
        &mut self,
        op: Op,
        plan: &ServicePlan,
        action: &ServiceAction,
        deadline: Mono,
    ) -> Result<(), End> {
        let job = match (&plan.target, action) {
            (_, ServiceAction::Exec) => {
                let ReloadMethod::Exec(exec) = &plan.reload else {
                    return Ok(());
                };
                let purpose = TaskPurpose::Reload;
                self.run_for_rollout(op.into(), purpose, exec.clone(), Vec::new(), deadline);
                return Ok(());
            }
            (ServiceTarget::Job(job), _) => job.clone(),
            (ServiceTarget::Unit(_) | ServiceTarget::Command, _) => return Ok(()),
        };
        let reload = self.node.job_plan(job.as_str()).and_then(|it| it.reload.as_ref());
        let found = self.node.job(job.as_str());
        let stands = found.map_or((Phase::Unknown, 0), |it| (it.phase(), it.incarnation()));
        let telling = match JobTelling::new(action, &job, reload, stands) {
            Ok(telling) => telling,
            Err(trouble) => {
                self.rollout_step(RolloutInput::Told { op, outcome: Err(trouble) });
                return Ok(());
            }
        };
        if let (Some(until), Some(room)) =
            (telling.waits_for(self.node.open_reload(&job)), self.rollout.room_mut())
        {
            let (service, action) = (plan.name.clone(), action.clone());
            let then_tell = Some(RolloutCommand::Tell { op, service, action, deadline });
            room.job_waits.add(op, JobWait { job, until, deadline, then_tell });
            return Ok(());
        }
        let (sender, mut answer) = oneshot::channel();
        let input = Input::Request(telling.request.clone());
        self.take_alone_then(input, Origin::Caller(sender), |agent| {
            let goal = match answer.try_recv() {
                Ok(Ok(accepted)) => telling.accepted(accepted.task),
                Ok(Err(refusal)) => Err(Trouble(refusal.to_string())),
                Err(_) => Err(Trouble("the node has not answered".to_owned())),
            };
            let Some(room) = agent.rollout.room_mut() else { return };
            match goal {
                Ok(Some(until)) => {
                    let then_tell = None;
                    room.job_waits.add(op, JobWait { job, until, deadline, then_tell });
                }
                Ok(None) => room.step(clock::now(), RolloutInput::Told { op, outcome: Ok(()) }),
                Err(trouble) => {
                    room.step(clock::now(), RolloutInput::Told { op, outcome: Err(trouble) });
                }
            }
        })
    }

    fn probe_job_service(
        &mut self,
        op: Op,
        plan: &ServicePlan,
        check: usize,
        target: &ProbeTarget,
        deadline: Mono,
    ) {
        match plan.checks.get(check) {
            Some(ServiceCheck::Exec(exec)) => {
                let exec = probe::of_instance(exec, target);
                self.run_for_rollout(op.into(), TaskPurpose::Probe, exec, Vec::new(), deadline);
            }
            Some(ServiceCheck::HealthComparison(HealthComparison {
                source: HealthSource::Exec(exec),
                ..
            })) => {
                for (part, exec) in probe::of_both(exec, target) {
                    let task = RolloutTask { op, part };
                    let purpose = TaskPurpose::Count;
                    self.run_for_rollout(task, purpose, exec, Vec::new(), deadline);
                }
            }
            Some(ServiceCheck::ChangeChildPid { .. }) => {
                let facts = job_service::facts(&self.node, &plan.target);
                let main_pid = facts.ok().and_then(|facts| facts.main_pid);
                if let Some(room) = self.rollout.room() {
                    room.performers.read_children(main_pid, move |children| {
                        let outcome = ProbeOutcome::Children { main_pid, children };
                        RolloutInput::Probed { op, outcome }
                    });
                }
            }
            Some(ServiceCheck::HealthComparison(_) | ServiceCheck::Http(_)) | None => {
                let why = Trouble("this check cannot be asked of a job".to_owned());
                let outcome = ProbeOutcome::Failed(why);
                self.rollout_step(RolloutInput::Probed { op, outcome });
            }
        }
    }

    fn run_hook(&mut self, op: Op, failure: FailureReport) {
        let plan = self.rollout.room().map(|room| room.rollout.plan().clone());
        let Some(exec) = plan.and_then(|plan| plan.on_failure.clone()) else {
            return self.rollout_step(RolloutInput::HookDone { op, outcome: Ok(()) });
        };
        let version = failure.version.map_or_else(String::new, |it| it.to_string());
        let profile = failure.profile.map_or_else(String::new, |it| it.to_string());
        let env = [
            ("MAINSTAY_PROFILE", profile),
            ("MAINSTAY_VERSION", version),
            ("MAINSTAY_FAILURE", failure.failure),
            ("MAINSTAY_NUMBER", failure.number.to_string()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let deadline = clock::mono().after(HOOK_TIME);
        self.run_for_rollout(op.into(), TaskPurpose::Hook, exec, env, deadline);
    }

    fn run_for_rollout(
        &mut self,
        task: RolloutTask,
        purpose: TaskPurpose,
        exec: Vec<String>,
        env: Vec<(String, String)>,
        deadline: Mono,
    ) {
        let Some(room) = self.rollout.room_mut() else { return };
        room.performers.expect_task(task, purpose);
        let number = room.begun;
        let owner = TaskOwner::Rollout { room: number, op: task.op.0, part: task.part };
        let id = TaskId { number: 0, owner };
        let spec = Box::new(TaskSpec { exec, env, ..TaskSpec::default() });
        let run = NodeTask { id, deadline, spec, env: self.env_for_node() };
        if let Some(Input::TaskDone { outcome, .. }) =
            self.outgoing.run_for_node(&mut self.link, run)
        {
            self.rollout_task_done(number, task, outcome);
        }
    }

    /// A task of the rollout has ended, or was never run. Nobody waits for one of another room.
    pub(crate) fn rollout_task_done(&mut self, room: u64, task: RolloutTask, outcome: TaskOutcome) {
        if let Some(room) = self.rollout.room_mut().filter(|it| it.begun == room) {
            room.performers.task_done(task, outcome);
        }
    }
}
