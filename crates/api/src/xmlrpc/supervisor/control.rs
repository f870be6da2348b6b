//! Starting, stopping and signalling processes, one by one, by groups, and all.
//!
//! Several are asked at once and waited for together. What comes of each is told in the order of the
//! configuration, but first of those that nobody had to wait for.

use super::{
    Supervisor,
    groups::{self, Named},
    namespec, outcome, program,
};
use crate::xmlrpc::{
    fault::{Code, Fault},
    value::XmlValue,
};
use mainstay_core::{
    job::{Desired, Phase},
    name::Name,
    node::{Refusal, Request},
    plan::{JobPlan, SignalTarget},
    signal::Signal,
};
use mainstay_pool::CONFIGURATION;
use mainstay_wire::api::{Goal, JobStatus, Selection, WaitError};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// Supervisor waits for as long as its client does.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let code = match &refusal {
            Refusal::NoSuchJob(_) | Refusal::NoSuchApp(_) => Code::BadName,
            Refusal::NotRunning(_) => Code::NotRunning,
            Refusal::RunsAlready(_) => Code::AlreadyStarted,
            Refusal::NodeStopping => Code::ShutdownState,
            // Clients have no other word for one that is not let start.
            Refusal::Disabled(_) => Code::SpawnError,
            Refusal::Environ(_)
            | Refusal::InputTooLong(_)
            | Refusal::NoReload(_)
            | Refusal::NewRun(_)
            | Refusal::TaskUnderWay
            | Refusal::NotKept(_) => Code::Failed,
        };
        Fault::about(code, refusal)
    }
}

/// What is done to each of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Start,
    Stop,
}

impl Action {
    /// Whether it concerns a process as it is now.
    fn concerns(self, job: &JobStatus) -> bool {
        match self {
            Action::Start => !is_up(job.state),
            Action::Stop => can_be_stopped(job),
        }
    }
}

impl Supervisor {
    /// A process, or all of a group that is named as one.
    pub(super) async fn one(
        &self,
        action: Action,
        jobs: &[JobStatus],
        name: &str,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        match groups::named(jobs, name)? {
            Named::Process(job) => {
                self.perform(action, job, name, wait).await?;
                Ok(XmlValue::Bool(true))
            }
            Named::Group(group) => self.group(action, jobs, group, wait).await,
        }
    }

    pub(super) async fn group(
        &self,
        action: Action,
        jobs: &[JobStatus],
        group: &str,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        self.perform_all(action, groups::of_group(jobs, group)?, wait).await
    }

    pub(super) async fn all(
        &self,
        action: Action,
        jobs: &[JobStatus],
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        self.perform_all(action, jobs.iter().collect(), wait).await
    }

    async fn perform_all(
        &self,
        action: Action,
        jobs: Vec<&JobStatus>,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let mut under_way = JoinSet::new();
        for (at, job) in jobs.into_iter().filter(|job| action.concerns(job)).enumerate() {
            let (supervisor, job) = (self.clone(), job.clone());
            under_way.spawn(async move {
                let name = namespec(&job);
                let result = supervisor.perform(action, &job, &name, wait).await;
                ((was_waited_for(&result), at), outcome(&job, result))
            });
        }
        let mut results = under_way.join_all().await;
        results.sort_by_key(|(order, _)| *order);
        Ok(XmlValue::Array(results.into_iter().map(|(_, result)| result).collect()))
    }

    /// `name`: as it was called.
    async fn perform(
        &self,
        action: Action,
        job: &JobStatus,
        name: &str,
        wait: bool,
    ) -> Result<(), Fault> {
        match action {
            Action::Start => self.start_with(job, name, None, wait).await,
            Action::Stop => self.stop_one(job, name, wait).await,
        }
    }

    /// `args`: behind those of its command.
    pub(crate) async fn start_with(
        &self,
        job: &JobStatus,
        name: &str,
        args: Option<Vec<String>>,
        wait: bool,
    ) -> Result<(), Fault> {
        if let Some(plan) = self.job_plan(&job.name).await? {
            CONFIGURATION.run(move || program::look(&plan)).await??;
        }
        if is_up(job.state) {
            return Err(Fault::about(Code::AlreadyStarted, name));
        }
        if job.state == Phase::Unknown {
            let text = format!("{name} is in an unknown process state");
            return Err(Fault::about(Code::Failed, text));
        }
        let start = Request::Start { jobs: vec![job.name.clone()], args, now: false };
        let beyond = self.request(start).await?;
        let reached = self.wait_for(&job.name, Goal::Up { beyond }, wait).await;
        reached.map_err(|error| match error {
            WaitError::Gone(gone) => gone.into(),
            WaitError::Failed(job) => match job.state {
                Phase::Backoff | Phase::Fatal => Fault::about(Code::SpawnError, name),
                Phase::Stopped
                | Phase::Starting
                | Phase::Running
                | Phase::Stopping
                | Phase::Exited
                | Phase::Unknown => Fault::about(Code::AbnormalTermination, name),
            },
            error @ (WaitError::Hopeless(_)
            | WaitError::TimeOver { .. }
            | WaitError::TaskFailed { .. }
            | WaitError::TaskTimeOver { .. }
            | WaitError::RolloutFailed(_)
            | WaitError::RolloutTimeOver { .. }) => Fault::about(Code::AbnormalTermination, error),
        })
    }

    async fn stop_one(&self, job: &JobStatus, name: &str, wait: bool) -> Result<(), Fault> {
        if !can_be_stopped(job) {
            return Err(Fault::about(Code::NotRunning, name));
        }
        self.request(Request::Stop { job: job.name.clone() }).await?;
        let reached = self.wait_for(&job.name, Goal::Down, wait).await;
        reached.map_err(|error| Fault::about(Code::Failed, error))
    }

    async fn wait_for(&self, job: &Name, goal: Goal, wait: bool) -> Result<(), WaitError> {
        let patience = if wait { PATIENCE } else { Duration::ZERO };
        let these = Selection::These(vec![job.clone()]);
        self.state.handle.wait(patience).wait(these, |_| Some(goal)).await
    }

    /// The job in the plan in force.
    pub(super) async fn job_plan(&self, job: &Name) -> Result<Option<Arc<JobPlan>>, Fault> {
        let plan = self.state.handle.plan().await?;
        Ok(plan.jobs.into_iter().find(|known| known.name == *job))
    }

    pub(super) async fn signal(
        &self,
        jobs: &[JobStatus],
        name: &str,
        signal: &str,
    ) -> Result<XmlValue, Fault> {
        match groups::named(jobs, name)? {
            Named::Process(job) => {
                self.signal_one(job, name, signal).await?;
                Ok(XmlValue::Bool(true))
            }
            Named::Group(group) => self.signal_group(jobs, group, signal).await,
        }
    }

    pub(super) async fn signal_group(
        &self,
        jobs: &[JobStatus],
        group: &str,
        signal: &str,
    ) -> Result<XmlValue, Fault> {
        self.signal_these(groups::of_group(jobs, group)?, signal).await
    }

    pub(super) async fn signal_all(
        &self,
        jobs: &[JobStatus],
        signal: &str,
    ) -> Result<XmlValue, Fault> {
        self.signal_these(jobs.iter().collect(), signal).await
    }

    async fn signal_these(&self, jobs: Vec<&JobStatus>, signal: &str) -> Result<XmlValue, Fault> {
        let mut results = Vec::new();
        for job in jobs.into_iter().filter(|job| job.state.may_have_process()) {
            let result = self.signal_one(job, &namespec(job), signal).await;
            results.push(outcome(job, result));
        }
        Ok(XmlValue::Array(results))
    }

    async fn signal_one(&self, job: &JobStatus, name: &str, signal: &str) -> Result<(), Fault> {
        let signal: Signal = signal.parse().map_err(|_| Fault::about(Code::BadSignal, signal))?;
        if !job.state.may_have_process() {
            return Err(Fault::about(Code::NotRunning, name));
        }
        let job = job.name.clone();
        self.request(Request::Signal { job, signal, to: SignalTarget::Leader }).await?;
        Ok(())
    }
}

/// Whether it could be known only after a while.
fn was_waited_for(result: &Result<(), Fault>) -> bool {
    let Err(fault) = result else { return true };
    matches!(fault.code, Code::SpawnError | Code::AbnormalTermination)
}

/// Supervisor's RUNNING_STATES.
fn is_up(phase: Phase) -> bool {
    match phase {
        Phase::Starting | Phase::Running | Phase::Backoff => true,
        Phase::Stopped | Phase::Stopping | Phase::Exited | Phase::Fatal | Phase::Unknown => false,
    }
}

/// One that waits to be started can be kept from it.
fn can_be_stopped(job: &JobStatus) -> bool {
    let waits = job.desired == Desired::Run && !job.waiting.is_empty();
    is_up(job.state) || (job.state == Phase::Stopped && waits)
}
