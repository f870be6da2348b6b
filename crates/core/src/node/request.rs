//! What people and programs ask of a node, and what it refuses.

use super::{Node, Refusal, Request};
use crate::{
    app::AppInput,
    event::{Kind, Outbox, Source},
    job::{Desired, Force, Job, JobInput},
    name::Name,
    plan::JobPlan,
};
use std::collections::BTreeSet;

impl Node {
    pub(super) fn requested(&mut self, out: &mut Outbox, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Start { jobs, args, now } => {
                self.by_hand(&jobs);
                let start = |_| JobInput::Start { args: args.clone(), now };
                self.wanted(out, &jobs, start)
            }
            Request::Restart { jobs, args } => {
                self.by_hand(&jobs);
                self.wanted(out, &jobs, |alone| {
                    let args = args.clone();
                    match alone {
                        true => JobInput::Restart { args },
                        false => JobInput::RestartInOrder { args },
                    }
                })
            }
            Request::Stop { job } => {
                self.by_hand(std::slice::from_ref(&job));
                self.asked_to_stop(out, &job, Force::Grace)
            }
            Request::StopInOrder { jobs } => {
                self.by_hand(&jobs);
                self.asked_to_stop_in_order(&jobs)
            }
            Request::Kill { job } => {
                self.by_hand(std::slice::from_ref(&job));
                self.asked_to_stop(out, &job, Force::Kill)
            }
            Request::Signal { job, signal, to } => {
                self.asked(out, &job, JobInput::Signal { signal, to })
            }
            Request::Reload { job } => self.asked(out, &job, JobInput::Reload),
            Request::Disable { job } => self.asked(out, &job, JobInput::Disable),
            Request::Enable { job } => {
                // What the fleet places it may place here again.
                let plan = self.job_plan(job.as_str());
                let placed = plan.is_some_and(|plan| self.plan().is_placed(plan));
                self.asked(out, &job, JobInput::Enable { rests: placed })
            }
            Request::Maintenance { on } => self.maintain(out, on),
            Request::StartApp { app } => self.app_asked(out, &app, AppInput::Start),
            Request::StopApp { app } => self.app_asked(out, &app, AppInput::Stop),
            Request::RestartApp { app, wave } => {
                let waves = wave.map(|size| AppInput::RestartInWaves { size });
                self.app_asked(out, &app, waves.unwrap_or(AppInput::Restart))
            }
            Request::Apply { plan, preview } => self.apply(out, plan, preview.map(|it| *it)),
            Request::Environ { changes } => Ok(self.environ.edit().change(changes)?),
            Request::RunTask { purpose, timeout, task } => {
                self.run_node_task(out, purpose, timeout, task)
            }
            Request::Shutdown => {
                self.shut_down_asked(out);
                Ok(())
            }
            Request::BeginAnew => {
                self.begin_anew_asked(out);
                Ok(())
            }
        }
    }

    /// Something that makes jobs run, which a node that stops does not do. One that cannot is a
    /// refusal for all. `input` is told if there is one job alone.
    pub(super) fn wanted<'a>(
        &mut self,
        out: &mut Outbox,
        names: &[Name],
        input: impl Fn(bool) -> JobInput<'a>,
    ) -> Result<(), Refusal> {
        names.iter().try_for_each(|name| self.may_be_wanted(name))?;
        self.leave_out_of_joint_stop(names);
        let alone = names.len() == 1;
        let running = |name: &&Name| self.job(name.as_str()).is_some_and(|it| it.phase().is_up());
        let starts = matches!(input(alone), JobInput::Start { .. });
        let launched = names.iter().filter(|name| !(starts && running(name))).cloned().collect();
        self.announce_launches(out, &launched);
        names.iter().try_for_each(|name| self.asked(out, name, input(alone)))
    }

    fn may_be_wanted(&self, name: &Name) -> Result<(), Refusal> {
        match self.job(name.as_str()) {
            Some(_) if self.state.shutting().is_some() => Err(Refusal::NodeStopping),
            Some(job) if job.desired() == Desired::Disabled => Err(Refusal::Disabled(name.clone())),
            Some(_) if !self.is_leaving(name.as_str()) => Ok(()),
            Some(_) | None => Err(Refusal::NoSuchJob(name.to_string())),
        }
    }

    /// A request is about to launch these: what they have said counts no more but for their end, and
    /// those of them that wait for others of them wait for what is said from now on.
    pub(super) fn announce_launches(&mut self, out: &mut Outbox, jobs: &BTreeSet<Name>) {
        for job in jobs {
            let id = self.jobs.id(job.as_str());
            if let Some(id) = id.filter(|id| self.jobs[*id].desired() != Desired::Disabled) {
                self.step_job(out, id, JobInput::LaunchAhead { along: jobs });
            }
        }
    }

    fn asked(&mut self, out: &mut Outbox, name: &Name, input: JobInput<'_>) -> Result<(), Refusal> {
        self.tell_job(out, name, input).unwrap_or_else(|| Err(Refusal::NoSuchJob(name.to_string())))
    }

    /// From now on it rests because a user wants it to, whatever its app had in mind.
    pub(super) fn asked_to_stop(
        &mut self,
        out: &mut Outbox,
        name: &Name,
        force: Force,
    ) -> Result<(), Refusal> {
        self.leave_out_of_joint_stop(std::slice::from_ref(name));
        self.release(name);
        self.asked(out, name, JobInput::Stop(force))
    }

    fn asked_to_stop_in_order(&mut self, names: &[Name]) -> Result<(), Refusal> {
        let missing = names.iter().find(|name| self.job(name.as_str()).is_none());
        if let Some(name) = missing {
            return Err(Refusal::NoSuchJob(name.to_string()));
        }
        for name in names {
            self.release(name);
            self.state.edit().joint_stop.add(name.clone());
        }
        Ok(())
    }

    pub(super) fn leave_out_of_joint_stop(&mut self, names: &[Name]) {
        if !self.state.joint_stop.is_over() {
            let stop = &mut self.state.edit().joint_stop;
            names.iter().for_each(|name| stop.leave_out(name));
        }
    }

    /// The jobs that stay disabled over runs. Those that are not in the plan follow: they may be
    /// again.
    #[must_use]
    pub fn disabled(&self) -> Vec<Name> {
        self.disabled_where(|_, job| job.desired() == Desired::Disabled)
    }

    /// The jobs that stay disabled over runs once a request is taken, if they are others than
    /// before. They are on the disk before it is taken: its answer promises that.
    #[must_use]
    pub fn disabled_after(&self, request: &Request) -> Option<Vec<Name>> {
        let (name, disables) = request.disables()?;
        let before = self.job(name.as_str())?.desired() == Desired::Disabled;
        let after = |plan: &JobPlan, job: &Job| match plan.name == *name {
            true => disables,
            false => job.desired() == Desired::Disabled,
        };
        (before != disables).then(|| self.disabled_where(after))
    }

    fn disabled_where(&self, is_disabled: impl Fn(&JobPlan, &Job) -> bool) -> Vec<Name> {
        let disabled = self.jobs().filter(|(plan, job)| is_disabled(plan, job));
        let absent = self.state.disabled_absent.iter().filter(|it| self.job(it.as_str()).is_none());
        disabled.map(|(plan, _)| plan.name.clone()).chain(absent.cloned()).collect()
    }

    fn maintain(&mut self, out: &mut Outbox, on: bool) -> Result<(), Refusal> {
        if self.state.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        if self.state.maintenance != on {
            self.state.edit().maintenance = on;
            let kind = if on { Kind::EnterMaintenance } else { Kind::ExitMaintenance };
            out.emit(Source::NODE, kind);
            // What is checked of each, and what others are told about it, follows from it.
            self.tell_all(out, |_| JobInput::MaintenanceChanged);
            if !on {
                self.follow_after_maintenance(out);
            }
        }
        Ok(())
    }
}
