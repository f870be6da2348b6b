//! The calls of the namespace `supervisor`, by what they are about.

mod config;
mod config_info;
mod control;
pub(super) mod groups;
pub(super) mod info;
mod input;
pub(super) mod log;
mod program;
mod regroup;

use super::{
    fault::{Code, Fault},
    methods::Call,
    value::{Params, XmlValue},
};
use crate::{RouterState, routes::v1::node::figures};
use config::LastRead;
use control::Action;
use groups::namespec;
use mainstay_core::node::{NodePhase, Request};
use mainstay_wire::api::{JobStatus, NodeStatus};
use std::sync::Arc;

/// What `supervisorctl` looks for before it says anything else.
const API_VERSION: &str = "3.0";

/// Answers as supervisord would.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    pub(super) state: RouterState,
    last_read: Arc<LastRead>,
}

impl Supervisor {
    pub(super) fn new(state: RouterState) -> Supervisor {
        Supervisor { state, last_read: Arc::default() }
    }

    pub(super) async fn call(&self, call: Call, params: &Params) -> Result<XmlValue, Fault> {
        let status = self.status().await?;
        // A node that ends answers nothing else.
        if status.state == NodePhase::Stopping {
            return Err(Fault::of(Code::ShutdownState));
        }
        let wait = |at| params.truth_or(at, true);
        let jobs = &status.jobs;
        match call {
            Call::ApiVersion => Ok(XmlValue::text(API_VERSION)),
            Call::Version => Ok(XmlValue::text(status.version.as_str())),
            Call::Identification => Ok(XmlValue::text(status.node.as_str())),
            Call::State => Ok(running()),
            Call::Pid => self.pid().await,
            Call::AllInfo => self.all_info(jobs).await,
            Call::Info => self.info(jobs, params.text(0)?).await,
            Call::ConfigInfo => self.config_info().await,
            Call::Start => self.one(Action::Start, jobs, params.text(0)?, wait(1)?).await,
            Call::StartGroup => self.group(Action::Start, jobs, params.text(0)?, wait(1)?).await,
            Call::StartAll => self.all(Action::Start, jobs, wait(0)?).await,
            Call::Stop => self.one(Action::Stop, jobs, params.text(0)?, wait(1)?).await,
            Call::StopGroup => self.group(Action::Stop, jobs, params.text(0)?, wait(1)?).await,
            Call::StopAll => self.all(Action::Stop, jobs, wait(0)?).await,
            Call::Signal => self.signal(jobs, params.text(0)?, params.text(1)?).await,
            Call::SignalGroup => self.signal_group(jobs, params.text(0)?, params.text(1)?).await,
            Call::SignalAll => self.signal_all(jobs, params.text(0)?).await,
            Call::Reread => self.reread().await,
            Call::AddGroup => self.add_group(params.text(0)?).await,
            Call::RemoveGroup => self.remove_group(jobs, params.text(0)?).await,
            Call::RestartAll => self.restart_all().await,
            Call::Shutdown => {
                self.request(Request::Shutdown).await?;
                Ok(XmlValue::Bool(true))
            }
            Call::ReadMain => self.read_main(params).await,
            Call::ClearMain => self.clear_main().await,
            Call::ReadStdout => self.read(jobs, log::Channel::Stdout, params).await,
            Call::ReadStderr => self.read(jobs, log::Channel::Stderr, params).await,
            Call::TailStdout => self.tail(jobs, log::Channel::Stdout, params).await,
            Call::TailStderr => self.tail(jobs, log::Channel::Stderr, params).await,
            Call::Clear => self.clear(jobs, params.text(0)?).await,
            Call::ClearAll => self.clear_all(&status.jobs).await,
            Call::SendStdin => self.send(jobs, params.text(0)?, params.bytes(1)?).await,
            // Nothing here is an event listener.
            Call::SendEvent => Err(Fault::of(Code::NotApplicable)),
            Call::ListMethods
            | Call::MethodHelp
            | Call::MethodSignature
            | Call::Multicall
            | Call::Fleet(_) => Err(Fault::of(Code::UnknownMethod)),
        }
    }

    pub(super) async fn status(&self) -> Result<Arc<NodeStatus>, Fault> {
        Ok(self.state.handle.status().await?)
    }

    /// One that is refused says why.
    async fn request(&self, request: Request) -> Result<u64, Fault> {
        let answer = self.state.handle.request(request).await?;
        Ok(answer.map_err(Fault::from)?.before)
    }

    async fn pid(&self) -> Result<XmlValue, Fault> {
        let figures = figures(&self.state.handle).await;
        let figures = figures.map_err(|problem| Fault::about(Code::Failed, problem.into_parts().1));
        match figures? {
            Some(figures) => Ok(XmlValue::int(i64::from(figures.pid))),
            None => Err(Fault::about(Code::Failed, "the keeper does not answer")),
        }
    }
}

fn running() -> XmlValue {
    XmlValue::pairs([("statecode", XmlValue::Int(1)), ("statename", XmlValue::text("RUNNING"))])
}

/// The result for one of several processes.
fn outcome(job: &JobStatus, result: Result<(), Fault>) -> XmlValue {
    let (code, text) = match result {
        Ok(()) => (Code::Success, "OK".to_owned()),
        Err(fault) => (fault.code, fault.text),
    };
    XmlValue::pairs([
        ("name", XmlValue::text(job.name.as_str())),
        ("group", XmlValue::text(groups::group(job))),
        ("status", XmlValue::int(code.number())),
        ("description", XmlValue::Text(text)),
    ])
}
