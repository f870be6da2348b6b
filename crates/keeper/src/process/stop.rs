//! Ends: those that the agent orders, those that clients of a control socket ask for, and those
//! that the keeper carries out by itself because no agent is there to do it.

use crate::{
    event_loop::deadline::Deadline,
    keeper::{Keeper, Role},
    link::node::PendingRequest,
    process::{job::Phase, tree::Leader},
};
use mainstay_core::{exit::Asked, name::Name, plan::SignalTarget, signal::Signal};
use mainstay_sys::clock;
use mainstay_wire::link::{ControlRequest, ToAgent};
use std::time::Duration;

/// An agent that has not taken an order by then is not there.
const SILENT: Duration = Duration::from_secs(1);
const INSTEAD: &str = "the agent does not answer: the keeper does what a control socket asks for";
/// The same for somebody who is impatient.
const SILENT_AGAIN: Duration = Duration::from_millis(300);
const ENDS: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HALT];

impl Keeper {
    /// Sends a signal to an incarnation, if that is the one that runs.
    pub(crate) fn signal_job(
        &mut self,
        name: &Name,
        incarnation: u64,
        signal: Signal,
        to: SignalTarget,
        asked: Asked,
    ) {
        let Some(id) = self.names.get(name).copied() else { return };
        self.signal_id(id, incarnation, signal, to, asked);
    }

    fn signal_id(
        &mut self,
        id: u64,
        incarnation: u64,
        signal: Signal,
        to: SignalTarget,
        asked: Asked,
    ) {
        let orphans = match to {
            SignalTarget::Tree => self.orphans_of(id),
            SignalTarget::Leader | SignalTarget::Group => Vec::new(),
        };
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation))
        else {
            return;
        };
        // An agent that takes over gives its orders again; a process gets its stop signal once.
        if asked == Asked::Stop && process.asked >= Asked::Stop {
            return;
        }
        process.asked = process.asked.max(asked);
        if !matches!(process.phase, Phase::Clearing { .. }) {
            process.tree.signal(process.pid, signal.number(), to, || orphans);
        }
    }

    pub(crate) fn kill_job(&mut self, name: &Name, incarnation: u64) {
        let Some(id) = self.names.get(name).copied() else { return };
        self.kill_id(id, incarnation, Asked::Kill);
    }

    pub(crate) fn kill_id(&mut self, id: u64, incarnation: u64, asked: Asked) {
        let orphans = self.orphans_of(id);
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation))
        else {
            return;
        };
        process.asked = process.asked.max(asked);
        let leader = match process.phase {
            Phase::Clearing { .. } => Leader::Reaped(process.pid),
            Phase::Execing { .. } | Phase::Failed { .. } | Phase::Up => Leader::Held(process.pid),
        };
        process.tree.kill(leader, || orphans);
    }

    /// A lease has run out: agent or no agent, it must not run on.
    pub(crate) fn fence(&mut self, id: u64, incarnation: u64) {
        let now = clock::boottime();
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation))
        else {
            return;
        };
        if process.fence_at.is_some_and(|at| at <= now) {
            process.fenced = true;
            let asked = process.asked;
            self.kill_id(id, incarnation, asked);
        }
    }

    pub(crate) fn extend(&mut self, name: &Name, incarnation: u64, fence_at: u64) {
        let Some(id) = self.names.get(name).copied() else { return };
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation))
        else {
            return;
        };
        process.fence_at = Some(fence_at);
        self.deadlines.at(fence_at, Deadline::Fence { job: id, incarnation });
    }

    /// A client of the control socket wants something.
    pub(crate) fn on_control_request(&mut self, id: u64, request: ControlRequest) {
        let Some(job) = self.jobs.get(&id) else { return };
        let (name, incarnation) = (job.name.clone(), job.highest);
        let Some(node) = self.node() else { return self.execute_request(id, incarnation, request) };
        let waits = |pending: &PendingRequest| matches!(pending, PendingRequest::Control { job, request: other, .. } if *job == id && *other == request);
        if node.pending_requests.values().any(waits) {
            return;
        }
        let token = node.await_agent(PendingRequest::Control { job: id, incarnation, request });
        self.deadlines.after(SILENT, Deadline::RequestTimeout { token });
        self.send(&ToAgent::Asked { token, job: name, incarnation, request });
    }

    /// The node itself was signalled.
    pub(crate) fn signalled(&mut self, number: i32) {
        let Some(signal) = Signal::from_number(number) else { return };
        // It comes with the end of a terminal, too.
        if signal == Signal::HUP && self.look_at_terminal() {
            return;
        }
        let ends = ENDS.contains(&signal);
        let tells = [Signal::HUP, Signal::USR1, Signal::USR2, Signal::WINCH].contains(&signal);
        match &mut self.role {
            Role::Hold(_) if ends => self.hold_signalled(),
            Role::Hold(_) => {}
            Role::Node(node) => {
                if signal == Signal::USR1 {
                    node.resources.output.rotate();
                }
                if ends && self.hurry() {
                    return;
                }
                let Role::Node(node) = &mut self.role else { return };
                let waits = |pending: &PendingRequest| matches!(pending, PendingRequest::Signal(other) if *other == signal);
                if !ends && (!tells || node.pending_requests.values().any(waits)) {
                    return;
                }
                let silent = if node.impatient { SILENT_AGAIN } else { SILENT };
                let token = node.await_agent(PendingRequest::Signal(signal));
                self.deadlines.after(silent, Deadline::RequestTimeout { token });
                self.send(&ToAgent::Signalled { token, signal });
            }
        }
    }

    /// A signal ends the node; whether that is all to do about it: somebody who asks again is in a
    /// hurry, and does not wait for an agent that has not even taken the first.
    fn hurry(&mut self) -> bool {
        let Some(node) = self.node() else { return false };
        node.impatient |= node.stop_asked.is_some();
        node.stop_asked.get_or_insert(clock::boottime());
        let waits = |pending: &PendingRequest| matches!(pending, PendingRequest::Signal(signal) if ENDS.contains(signal));
        let untaken = node.impatient && node.pending_requests.values().any(waits);
        if node.ending.is_none() && !node.stopping_alone && !untaken {
            return false;
        }
        self.stop_alone();
        self.end_own_stop();
        true
    }

    /// The agent has had its time to take something.
    pub(crate) fn request_timed_out(&mut self, token: u64) {
        let Some(pending) = self.node().and_then(|node| node.pending_requests.remove(&token))
        else {
            return;
        };
        match pending {
            PendingRequest::Control { job, incarnation, request } => {
                self.execute_late(token, job, incarnation, request);
            }
            PendingRequest::Signal(signal) => {
                if [Signal::HUP, Signal::USR1, Signal::USR2, Signal::WINCH].contains(&signal) {
                    return;
                }
                self.log(format!(
                    "the agent does not answer: the keeper stops everything on {signal}"
                ));
                self.stop_alone();
            }
        }
    }

    /// What a control socket asked for and no agent has taken. A stop is meant for the life of the
    /// job: for whatever process it has now, else for the restart that only an agent can cancel.
    fn execute_late(&mut self, token: u64, id: u64, incarnation: u64, request: ControlRequest) {
        let live = self.jobs.get(&id).and_then(|job| Some(job.process.as_ref()?.incarnation));
        match (request, live) {
            (ControlRequest::Stop | ControlRequest::Kill, None) => {
                let pending = PendingRequest::Control { job: id, incarnation, request };
                if let Some(node) = self.node() {
                    node.pending_requests.insert(token, pending);
                }
            }
            (ControlRequest::Stop | ControlRequest::Kill, Some(live)) => {
                self.log(INSTEAD);
                self.execute_request(id, live, request);
            }
            (ControlRequest::Signal(_), _) => {
                self.log(INSTEAD);
                self.execute_request(id, incarnation, request);
            }
        }
    }

    /// Without an agent: signal, and kill when its time is up.
    pub(crate) fn execute_request(&mut self, id: u64, incarnation: u64, request: ControlRequest) {
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process_of(incarnation))
        else {
            return;
        };
        let rule = process.stop;
        match request {
            ControlRequest::Stop => {
                self.signal_id(id, incarnation, rule.signal, rule.to, Asked::Stop);
                self.deadlines.after(rule.timeout, Deadline::Escalate { job: id, incarnation });
            }
            ControlRequest::Kill => self.kill_id(id, incarnation, Asked::Kill),
            ControlRequest::Signal(signal) => {
                self.signal_id(id, incarnation, signal, SignalTarget::Leader, Asked::None)
            }
        }
    }

    pub(crate) fn escalate(&mut self, id: u64, incarnation: u64) {
        self.kill_id(id, incarnation, Asked::Stop);
    }

    /// Stops the whole node without the agent, which has to go first: it would start things again.
    pub(crate) fn stop_alone(&mut self) {
        let Some(node) = self.node() else { return };
        if std::mem::replace(&mut node.stopping_alone, true) {
            return;
        }
        // What it cost to find out that there is no agent is part of the time.
        let timeout = node.stop_timeout.saturating_sub(SILENT);
        self.forget_agent();
        self.kill_spare();
        let running: Vec<(u64, u64)> = self.running();
        for (id, incarnation) in running {
            self.execute_request(id, incarnation, ControlRequest::Stop);
        }
        self.deadlines.after(timeout, Deadline::NodeStop);
    }

    pub(crate) fn running(&self) -> Vec<(u64, u64)> {
        let live =
            |job: &crate::process::job::Job| Some((job.id, job.process.as_ref()?.incarnation));
        self.jobs.values().filter_map(live).collect()
    }

    /// Its time is up, or somebody is impatient.
    pub(crate) fn end_own_stop(&mut self) {
        let Some(node) = self.node() else { return };
        if node.stopping_alone {
            let code = node.main_exit.unwrap_or(0);
            self.end(code);
        }
    }
}
