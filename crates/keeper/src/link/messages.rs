//! Messages over the link: what the agent orders, and what it is told.

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Ready, Source},
    },
    keeper::{Keeper, Role},
    link::{
        agent::{Agent, LinkRead},
        node::PendingRequest,
    },
    process::{job::Phase, tree},
    run::LAST,
    upgrade::UpgradeRequester,
};
use mainstay_core::{
    exit::{Asked, Exit},
    name::Name,
};
use mainstay_sys::{memory, nonblocking, signal};
use mainstay_wire::{
    format::Format,
    frame::Message,
    link::{self, ExitRecord, HeldJob, LiveProcess, PendingControl, ToAgent, ToKeeper, Welcome},
};
use std::{collections::BTreeMap, time::Duration};

/// Frames handled at a time, so that spawning a thousand jobs does not keep the dead waiting.
const FRAMES: usize = 16;
/// Between the end of the link and the end of the agent.
const DYING: Duration = Duration::from_millis(500);
/// Ends that an agent without room for its journal does not acknowledge.
const RECORDS: usize = 8192;

impl Keeper {
    /// Queues a message for the agent; one that does not listen gets it all when it says hello.
    pub(crate) fn send(&mut self, message: &ToAgent) {
        let Some(node) = self.node() else { return };
        if let Some(agent) = &mut node.agent {
            agent.queue(message);
        }
    }

    /// What is done once after each of these.
    pub(crate) fn after_events(&mut self) {
        self.flush_agent();
        // Only to an agent that has read what came before, so after that was sent.
        self.send_notifications();
        self.send_log_gaps();
        self.flush_agent();
        self.try_end();
        self.tell_service_manager();
        self.tell_starter();
    }

    /// Sends what the agent takes now.
    pub(crate) fn flush_agent(&mut self) {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        if let Some(agent) = &mut node.agent
            && !agent.is_idle()
        {
            let interest = if agent.flush() { Interest::ReadWrite } else { Interest::Read };
            if agent.listens_for(interest) {
                poller.change(agent.fd(), Source::Link, 0, interest);
            }
        }
    }

    pub(crate) fn link_has_more(&self) -> bool {
        matches!(&self.role, Role::Node(node) if node.frames_left && node.agent.is_some())
    }

    pub(crate) fn link_ready(&mut self, event: Ready) {
        let Some(agent) = self.node().and_then(|node| node.agent.as_mut()) else { return };
        if event.readable && agent.read() == LinkRead::End {
            // Usually it is dying, and its exit code counts: it gets a moment for that.
            let Keeper { role: Role::Node(node), poller, deadlines, .. } = self else { return };
            if let Some(agent) = &node.agent {
                poller.remove(agent.fd());
                deadlines.after(DYING, Deadline::AgentDying { pid: agent.pid });
            }
        }
        self.handle_frames();
    }

    pub(crate) fn handle_frames(&mut self) {
        for _ in 0..FRAMES {
            if !self.handle_frame() {
                return;
            }
        }
    }

    /// Handles the next frame of the agent; false when there is none.
    fn handle_frame(&mut self) -> bool {
        let Some(node) = self.node() else { return false };
        let Some(agent) = &mut node.agent else { return false };
        let next = agent.next();
        node.frames_left = matches!(next, Ok(Some(_)));
        match next {
            Ok(Some(Message::Known(message))) => {
                self.on_message(message);
                true
            }
            Ok(Some(Message::Unknown(name))) => {
                self.log(format!("the agent says '{name}', which this version does not know"));
                true
            }
            Ok(None) => false,
            Err(error) => {
                let pid = agent.pid;
                self.log(format!("the agent talks nonsense and is replaced: {error}"));
                let _ = signal::send(pid, tree::KILL);
                false
            }
        }
    }

    /// Handles everything that the agent has sent.
    pub(crate) fn drain_link(&mut self) {
        loop {
            while self.handle_frame() {}
            match self.node().and_then(|node| node.agent.as_mut()).map(Agent::read) {
                Some(LinkRead::Some) => {}
                Some(LinkRead::Nothing | LinkRead::End) | None => return,
            }
        }
    }

    fn on_message(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { format, version: _ } => self.welcome(format),
            ToKeeper::Ready { stop_timeout_ms, unjournaled } => {
                if let Some(node) = self.node() {
                    node.stop_timeout = Duration::from_millis(stop_timeout_ms);
                    node.succession.became_ready();
                    if !unjournaled {
                        // It has written down that there was an upgrade.
                        node.upgraded.clear();
                    }
                    if let Some(agent) = &mut node.agent {
                        agent.ready = true;
                    }
                }
                // Said again when the agent has calmed down.
                memory::give_back();
            }
            ToKeeper::NodeLog(log) => {
                if let Some(node) = self.node() {
                    node.resources.output.follow(&log);
                    node.log = *log;
                }
            }
            ToKeeper::Reloaded => {
                if let Some(manager) = self.node().and_then(|node| node.service_manager.as_mut()) {
                    manager.reloaded();
                }
            }
            ToKeeper::Spawn(spawn) => self.spawn(&spawn),
            ToKeeper::Stop { job, incarnation, signal, to } => {
                self.signal_job(&job, incarnation, signal, to, Asked::Stop);
            }
            ToKeeper::Kill { job, incarnation } => self.kill_job(&job, incarnation),
            ToKeeper::Signal { job, incarnation, signal, to } => {
                self.signal_job(&job, incarnation, signal, to, Asked::None);
            }
            ToKeeper::Extend { job, incarnation, fence_at } => {
                self.extend(&job, incarnation, fence_at)
            }
            ToKeeper::UpdateSettings { job, settings } => self.update_settings(&job, &settings),
            ToKeeper::Rest { job, incarnation } => self.rest(&job, incarnation),
            ToKeeper::Forget { job } => self.forget(&job),
            ToKeeper::RunTask(task) => self.run_task(&task),
            ToKeeper::TaskTaken { id } => {
                if let Some(node) = self.node() {
                    node.outcomes.acknowledged(&id);
                }
            }
            ToKeeper::Ack { record } => {
                if let Some(node) = self.node() {
                    node.records.retain(|kept| kept.record != record);
                }
            }
            ToKeeper::Remember { job, summary } => self.remember(&job, summary.map(|it| *it)),
            ToKeeper::Told(told) => {
                if let Some(node) = self.node() {
                    node.told = Some(told);
                }
            }
            ToKeeper::Taken { token } => {
                if let Some(node) = self.node() {
                    node.pending_requests.remove(&token);
                    node.log_gaps.acknowledged(token);
                }
            }
            ToKeeper::Inspect { id } => {
                let figures = self.figures();
                self.send(&ToAgent::Figures { id, figures });
            }
            ToKeeper::Upgrade { id, binary } => {
                self.begin_upgrade(binary, UpgradeRequester::Agent(id))
            }
            ToKeeper::Exit { code, again } => {
                if let Some(node) = self.node() {
                    node.begins_anew = again;
                }
                self.end(code);
            }
        }
    }

    fn welcome(&mut self, format: Format) {
        let jobs = self.jobs.values().map(|job| HeldJob {
            job: job.name.clone(),
            highest: job.highest,
            live: job.process.as_ref().map(|process| LiveProcess {
                incarnation: process.incarnation,
                pid: process.pid,
                tree: process.tree.kind(),
                unenforced: process.unenforced.clone(),
                spawned: matches!(process.phase, Phase::Up | Phase::Clearing { .. }),
                notified: process.notified.clone(),
                settings: process.settings(),
            }),
            open: job.control.is_some(),
            summary: job.summary.clone(),
        });
        let jobs = jobs.collect();
        let run = self.context.run.clone();
        let names: BTreeMap<u64, Name> =
            self.jobs.values().map(|job| (job.id, job.name.clone())).collect();
        let Some(node) = self.node() else { return };
        let signals = node.pending_requests.iter().filter_map(|(token, pending)| match pending {
            PendingRequest::Signal(signal) => Some((*token, *signal)),
            PendingRequest::Control { .. } => None,
        });
        let asked = node.pending_requests.iter().filter_map(|(token, pending)| match pending {
            PendingRequest::Signal(_) => None,
            PendingRequest::Control { job, incarnation, request } => Some(PendingControl {
                token: *token,
                job: names.get(job)?.clone(),
                incarnation: *incarnation,
                request: *request,
            }),
        });
        let asked: Vec<PendingControl> = asked.collect();
        let again = asked.iter().cloned().map(|asked| {
            let PendingControl { token, job, incarnation, request } = asked;
            ToAgent::Asked { token, job, incarnation, request }
        });
        let again: Vec<ToAgent> = again.chain(node.log_gaps.messages()).collect();
        let welcome = Welcome {
            format: Format::OURS,
            run,
            run_dir: node.resources.dir.path().to_owned(),
            state_dir: node.state_dir.clone(),
            agent_restarts: node.succession.restarts,
            upgraded: node.upgraded.clone(),
            jobs,
            records: node.records.iter().cloned().collect(),
            signals: signals.collect(),
            asked,
            told: node.told,
        };
        let done: Vec<ToAgent> = node.outcomes.all().map(ToAgent::TaskDone).collect();
        let Some(agent) = &mut node.agent else { return };
        if !format.is_readable_since(link::OLDEST) {
            let _ = signal::send(agent.pid, tree::KILL);
            return;
        }
        if !agent.queue(&ToAgent::Welcome(Box::new(welcome))) {
            let pid = agent.pid;
            let _ = signal::send(pid, tree::KILL);
            self.log("there is too much to tell a new agent: it is replaced");
            return;
        }
        for message in again.iter().chain(&done) {
            agent.queue(message);
        }
        if node.succession.restarts == 0 {
            // Before the first job that this one starts.
            self.start_spare();
        } else {
            self.start_spare_soon();
        }
    }

    /// An incarnation has ended: kept until an agent has written it down.
    pub(crate) fn ended(&mut self, mut record: ExitRecord, main: bool) {
        match &mut self.role {
            Role::Hold(hold) => {
                if let Exit::Error { error, .. } = &record.exit {
                    nonblocking::tell_stderr(&format!("mainstay: {error}"));
                }
                hold.ending = Some(record.exit.shell_code());
                self.deadlines.after(LAST, Deadline::Last);
            }
            Role::Node(node) => {
                node.next_record += 1;
                record.record = node.next_record;
                if main {
                    node.main_exit = Some(record.exit.shell_code());
                }
                if node.records.len() == RECORDS {
                    node.records.pop_front();
                }
                node.records.push_back(record.clone());
                self.send(&ToAgent::Exited(record));
            }
        }
    }
}
