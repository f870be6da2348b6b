//! What people and programs ask of a node, and what it refuses.

use super::{Command, Node, Refusal, Request};
use crate::{
    event::{Kind, Source},
    job::{Desired, Force, Job, Turn},
    name::Name,
    outbox::Outbox,
};

impl Node {
    pub(super) fn requested(&mut self, out: &mut Outbox, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Start { job, args, now } => {
                self.wanted(out, &job, |job, turn| job.asked_to_start(turn, args, now))
            }
            Request::Restart { job, args } => self.wanted(out, &job, |job, turn| {
                job.restart(turn, args);
                Ok(())
            }),
            Request::Stop { job } => self.asked(out, &job, |job, turn| {
                job.stop(turn, Force::Grace);
                Ok(())
            }),
            Request::Kill { job } => self.asked(out, &job, |job, turn| {
                job.stop(turn, Force::Kill);
                Ok(())
            }),
            Request::Signal { job, signal, to } => {
                self.asked(out, &job, |job, turn| job.signal(turn, signal, to))
            }
            Request::Reload { job } => self.asked(out, &job, |job, turn| job.reload(turn)),
            Request::Disable { job } => self.able(out, &job, Job::disable),
            Request::Enable { job } => self.able(out, &job, Job::enable),
            Request::Maintenance { on } => self.maintain(out, on),
            Request::StartApp { app } => self.app_asked(out, &app, Node::start_app),
            Request::StopApp { app } => self.app_asked(out, &app, Node::stop_app),
            Request::RestartApp { app } => self.app_asked(out, &app, Node::restart_app),
            Request::Apply { plan } => self.apply(out, *plan),
            Request::Environ { changes } => Ok(self.environ.change(changes)?),
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
        job: &Name,
        deed: impl FnOnce(&mut Job, &mut Turn<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let stopping = self.life.shutting().is_some();
        self.asked(out, job, |job, turn| {
            if stopping {
                return Err(Refusal::NodeStopping);
            }
            if job.is_leaving() {
                return Err(Refusal::NoSuchJob(turn.plan.name.to_string()));
            }
            if job.desired() == Desired::Disabled {
                return Err(Refusal::Disabled(turn.plan.name.clone()));
            }
            deed(job, turn)
        })
    }

    fn asked(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        deed: impl FnOnce(&mut Job, &mut Turn<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.one(out, job, deed).unwrap_or_else(|| Err(Refusal::NoSuchJob(job.to_string())))
    }

    /// Disables or enables, and has that kept over runs.
    fn able(
        &mut self,
        out: &mut Outbox,
        job: &Name,
        deed: fn(&mut Job, &mut Turn<'_>),
    ) -> Result<(), Refusal> {
        let before = self.disabled();
        self.asked(out, job, |job, turn| {
            deed(job, turn);
            Ok(())
        })?;
        let jobs = self.disabled();
        if jobs != before {
            out.command(Command::KeepDisabled { jobs });
        }
        Ok(())
    }

    /// Those that are not in the plan follow: they may be again.
    fn disabled(&self) -> Vec<Name> {
        let disabled = self.jobs().filter(|(_, job)| job.desired() == Desired::Disabled);
        let absent = self.life.disabled_absent.iter().filter(|it| self.job(it.as_str()).is_none());
        disabled.map(|(plan, _)| plan.name.clone()).chain(absent.cloned()).collect()
    }

    fn maintain(&mut self, out: &mut Outbox, on: bool) -> Result<(), Refusal> {
        if self.life.shutting().is_some() {
            return Err(Refusal::NodeStopping);
        }
        if std::mem::replace(&mut self.life.maintenance, on) != on {
            let kind = if on { Kind::EnterMaintenance } else { Kind::ExitMaintenance };
            out.emit(Source::NODE, kind);
            // What others are told about each follows from it.
            self.each(out, |_, _| {});
        }
        Ok(())
    }
}
