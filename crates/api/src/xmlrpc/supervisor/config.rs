//! The configuration: what was read last, and groups of it that are added and taken away.
//!
//! `reread` reads and changes nothing; `update` then takes groups away and adds them one by one.
//! Each of these steps is a plan of its own, made of the one in force, so that the agent has no
//! other way to bring one into force than it always had.

use super::{
    Supervisor,
    config_info::starts_by_itself,
    groups,
    regroup::{GroupChanges, has_group, whole, with_group, without_group},
};
use crate::xmlrpc::{
    fault::{Code, Fault},
    value::XmlValue,
};
use mainstay_core::{job::Desired, name::Name, node::Request, plan::Plan};
use mainstay_wire::api::{JobStatus, ReloadError};
use std::time::Duration;
use tokio::sync::Mutex;

/// The configuration as it was read last.
#[derive(Debug, Default)]
pub(super) struct LastRead(Mutex<Option<Read>>);

#[derive(Debug)]
struct Read {
    plan: Plan,
    /// What was in force then, or came into force by our own doing since. Once it is another,
    /// somebody has reloaded, and `plan` is out of date.
    in_force: Plan,
}

impl From<ReloadError> for Fault {
    fn from(error: ReloadError) -> Fault {
        match error {
            ReloadError::Gone(gone) => gone.into(),
            ReloadError::Invalid(invalid) => Fault::about(Code::CantReread, invalid),
            ReloadError::Refused(refusal) => refusal.into(),
            error @ (ReloadError::Listeners(_)
            | ReloadError::Unserved(_)
            | ReloadError::Stale(_)
            | ReloadError::Unreached { .. }) => Fault::about(Code::Failed, error),
        }
    }
}

impl Supervisor {
    /// The groups that are added, changed and removed, as one result.
    pub(super) async fn reread(&self) -> Result<XmlValue, Fault> {
        let (plan, in_force) = (self.state.handle.load_plan().await?, self.plan().await?);
        let GroupChanges { added, changed, removed } = GroupChanges::between(&in_force, &plan);
        *self.last_read.0.lock().await = Some(Read { plan, in_force });
        let three = [added, changed, removed].map(XmlValue::texts);
        Ok(XmlValue::Array(vec![XmlValue::Array(three.into())]))
    }

    pub(super) async fn add_group(&self, name: &str) -> Result<XmlValue, Fault> {
        self.edit(|in_force, read| match (has_group(read, name), has_group(in_force, name)) {
            (false, _) => Err(Fault::about(Code::BadName, name)),
            (true, true) => Err(Fault::about(Code::AlreadyAdded, name)),
            (true, false) => Ok(with_group(in_force, read, name)),
        })
        .await
    }

    pub(super) async fn remove_group(
        &self,
        jobs: &[JobStatus],
        name: &str,
    ) -> Result<XmlValue, Fault> {
        let of_group = jobs.iter().filter(|job| groups::group(job) == name);
        let running = of_group.into_iter().any(|job| !job.state.is_at_rest());
        self.edit(|in_force, _| match (has_group(in_force, name), running) {
            (false, _) => Err(Fault::about(Code::BadName, name)),
            (true, true) => Err(Fault::about(Code::StillRunning, name)),
            (true, false) => Ok(without_group(in_force, name)),
        })
        .await
    }

    /// Brings into force what `change` makes of the plan in force and the one that was read last.
    async fn edit(
        &self,
        change: impl FnOnce(&Plan, &Plan) -> Result<Plan, Fault> + Send,
    ) -> Result<XmlValue, Fault> {
        let mut last = self.last_read.0.lock().await;
        let mut read = None;
        let edited = self.state.handle.edit_plan(|in_force| {
            let current = last.take().filter(|last| last.in_force == *in_force);
            let plan = current.map_or_else(|| in_force.clone(), |current| current.plan);
            let edited = change(in_force, &plan).and_then(whole);
            let after = edited.as_ref().unwrap_or(in_force).clone();
            read = Some(Read { plan, in_force: after });
            edited
        });
        let edited = edited.await;
        *last = read;
        edited.map(|_| XmlValue::Bool(true))
    }

    /// Everything as after a start of the node: the configuration is read, what starts by itself
    /// is started anew, and what does not rests.
    pub(crate) async fn restart_all(&self) -> Result<XmlValue, Fault> {
        let listeners = &self.state.listeners;
        self.state.handle.reload(listeners, Duration::ZERO).await?;
        let (status, plan) = (self.status().await?, self.plan().await?);
        let (mut anew, mut rest): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
        for job in status.jobs.iter().filter(|job| job.desired != Desired::Disabled) {
            let Some(planned) = plan.job(job.name.as_str()) else { continue };
            let runs = !job.state.is_at_rest();
            // What a trigger starts waits for it.
            match (starts_by_itself(planned, &plan), planned.when.trigger.is_none() || runs) {
                (true, true) => anew.push(job.name.clone()),
                (true, false) => {}
                (false, _) if runs => rest.push(job.name.clone()),
                (false, _) => {}
            }
        }
        for job in rest {
            self.request(Request::Stop { job }).await?;
        }
        if !anew.is_empty() {
            self.request(Request::Restart { jobs: anew, args: None }).await?;
        }
        Ok(XmlValue::Bool(true))
    }

    pub(super) async fn plan(&self) -> Result<Plan, Fault> {
        Ok(self.state.handle.plan().await?)
    }

    /// The plan in force, and the one that was read last.
    pub(super) async fn plans(&self) -> Result<(Plan, Plan), Fault> {
        let in_force = self.plan().await?;
        let last = self.last_read.0.lock().await;
        let current = last.as_ref().filter(|last| last.in_force == in_force);
        let read = current.map_or_else(|| in_force.clone(), |current| current.plan.clone());
        Ok((in_force, read))
    }
}
