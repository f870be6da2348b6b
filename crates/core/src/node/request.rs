//! What people and programs ask of a node, and what it refuses.

use super::{Command, Node, Refusal, Request};
use crate::{
    app::AppInput,
    event::{Kind, Source},
    job::{Desired, Force, JobInput},
    name::Name,
    outbox::Outbox,
};

impl Node {
    pub(super) fn requested(&mut self, out: &mut Outbox, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Start { job, args, now } => {
                self.wanted(out, &job, JobInput::Start { args, now })
            }
            Request::Restart { job, args } => self.wanted(out, &job, JobInput::Restart { args }),
            Request::Stop { job } => self.asked_to_stop(out, &job, Force::Grace),
            Request::Kill { job } => self.asked_to_stop(out, &job, Force::Kill),
            Request::Signal { job, signal, to } => {
                self.asked(out, &job, JobInput::Signal { signal, to })
            }
            Request::Reload { job } => self.asked(out, &job, JobInput::Reload),
            Request::Disable { job } => self.able(out, &job, JobInput::Disable),
            Request::Enable { job } => self.able(out, &job, JobInput::Enable),
            Request::Maintenance { on } => self.maintain(out, on),
            Request::StartApp { app } => self.app_asked(out, &app, AppInput::Start),
            Request::StopApp { app } => self.app_asked(out, &app, AppInput::Stop),
            Request::RestartApp { app } => self.app_asked(out, &app, AppInput::Restart),
            Request::Apply { plan, preview } => self.apply(out, *plan, preview.map(|it| *it)),
            Request::Environ { changes } => Ok(self.environ.edit().change(changes)?),
            Request::RunTask { purpose, timeout, task } => {
                self.run_node_task(out, purpose, timeout, task)
            }
            Request::Shutdown => {
                self.shut_down_asked(out);
                Ok(())
            }
        }
    }

    /// Something that makes a job run, which a node that stops does not do.
    fn wanted(
        &mut self,
        out: &mut Outbox,
        name: &Name,
        input: JobInput<'_>,
    ) -> Result<(), Refusal> {
        match self.job(name.as_str()) {
            Some(job) if self.state.shutting().is_none() => {
                if self.is_leaving(name.as_str()) {
                    return Err(Refusal::NoSuchJob(name.to_string()));
                }
                if job.desired() == Desired::Disabled {
                    return Err(Refusal::Disabled(name.clone()));
                }
            }
            Some(_) => return Err(Refusal::NodeStopping),
            None => {}
        }
        self.asked(out, name, input)
    }

    fn asked(&mut self, out: &mut Outbox, name: &Name, input: JobInput<'_>) -> Result<(), Refusal> {
        self.tell_job(out, name, input).unwrap_or_else(|| Err(Refusal::NoSuchJob(name.to_string())))
    }

    /// From now on it rests because a user wants it to, whatever its app had in mind.
    fn asked_to_stop(
        &mut self,
        out: &mut Outbox,
        name: &Name,
        force: Force,
    ) -> Result<(), Refusal> {
        self.release(name);
        self.asked(out, name, JobInput::Stop(force))
    }

    /// Disables or enables, and has that kept over runs.
    fn able(&mut self, out: &mut Outbox, name: &Name, input: JobInput<'_>) -> Result<(), Refusal> {
        let before = self.disabled();
        self.asked(out, name, input)?;
        let jobs = self.disabled();
        if jobs != before {
            out.command(Command::KeepDisabled { jobs });
        }
        Ok(())
    }

    /// Those that are not in the plan follow: they may be again.
    fn disabled(&self) -> Vec<Name> {
        let disabled = self.jobs().filter(|(_, job)| job.desired() == Desired::Disabled);
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
            // What others are told about each follows from it.
            self.tell_all(out, |_| JobInput::MaintenanceChanged);
        }
        Ok(())
    }
}
