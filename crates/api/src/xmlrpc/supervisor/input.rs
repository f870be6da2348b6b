//! What a process reads: characters that somebody sends to its stdin.
//!
//! A job with `stdin = "open"` reads from a pipe that nobody else holds. What is sent goes straight
//! into it, so that it is there whatever becomes of the agent; what does not fit is refused.

use super::{Supervisor, groups};
use crate::xmlrpc::{
    fault::{Code, Fault},
    value::XmlValue,
};
use mainstay_core::{job::Phase, plan::Stdin};
use mainstay_sys::nonblocking::InputPipe;
use mainstay_wire::api::{JobStatus, Selection};
use std::io;

impl Supervisor {
    pub(super) async fn send(
        &self,
        jobs: &[JobStatus],
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<XmlValue, Fault> {
        let job = groups::process(jobs, name)?;
        let not_running = || Fault::about(Code::NotRunning, name);
        let no_file = || Fault::about(Code::NoFile, name);
        let pid = match job.state {
            Phase::Running | Phase::Starting => job.pid.ok_or_else(not_running)?,
            Phase::Stopped
            | Phase::Backoff
            | Phase::Stopping
            | Phase::Exited
            | Phase::Fatal
            | Phase::Unknown => return Err(not_running()),
        };
        let plan = self.job_plan(&job.name).await?.ok_or_else(no_file)?;
        if plan.stdin != Stdin::Open {
            return Err(no_file());
        }
        let pipe = InputPipe::of(pid).map_err(|_| no_file())?;
        // The pid is still that of the job: what was opened is its input.
        let these = Selection::These(vec![job.name.clone()]);
        let now = self.state.handle.jobs(these).await?;
        if !now.iter().any(|now| now.incarnation == job.incarnation && now.pid == Some(pid)) {
            return Err(not_running());
        }
        match pipe.write(&bytes) {
            Ok(()) => Ok(XmlValue::Bool(true)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Fault::about(Code::Failed, error))
            }
            Err(_) => Err(no_file()),
        }
    }
}
