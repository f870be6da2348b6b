//! From a keeper to its description: descriptors by the numbers by which the next image takes them.

use super::{
    Bytes, ClientSnapshot, Handover, JobSnapshot, PhaseSnapshot, ProcessSnapshot, StreamSnapshot,
    TaskSnapshot,
};
use crate::{
    control::client::Client,
    keeper::{Keeper, Role},
    output::{Output, Stream, WriteEnd},
    process::{
        job::{Job, Phase, Process},
        task::Task,
    },
    upgrade::{UpgradeRequester, os_text},
};
use mainstay_core::plan::Log;
use mainstay_wire::format::{LOWEST, NUMBER};
use std::{
    collections::BTreeMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

impl Keeper {
    /// All but what the threads hold.
    pub(in crate::upgrade) fn describe(&self) -> Handover {
        let Role::Node(node) = &self.role else { unreachable!("only a node is upgraded") };
        let raw = |fd: &OwnedFd| fd.as_raw_fd();
        Handover {
            format: NUMBER,
            lowest: Some(LOWEST),
            version: crate::VERSION.to_owned(),
            exe: raw(&node.resources.exe),
            requester: None,
            options: node.options.clone(),
            state_dir: node.state_dir.clone(),
            run_dir: node.resources.dir.path().to_owned(),
            lock: node.resources.dir.lock_file().as_raw_fd(),
            state_lock: node.resources.state_lock.as_ref().map(AsRawFd::as_raw_fd),
            api: raw(&node.resources.api),
            socket: raw(&node.resources.socket),
            null: raw(&self.context.null),
            run: self.context.run.clone(),
            env: os_text::texts(&self.context.env),
            raw_env: os_text::raw(&self.context.env),
            ignored: self.context.ignored.clone(),
            nofile: self.context.nofile,
            cgroup: self.context.cgroup.as_ref().map(|root| root.path().to_owned()),
            jobs: self.jobs.values().map(|job| Box::new(describe_job(job))).collect(),
            clients: self.clients.iter().map(|(id, client)| describe_client(*id, client)).collect(),
            tasks: self.tasks.iter().map(|(id, task)| describe_task(*id, task)).collect(),
            keeper_clients: node
                .keeper_clients
                .iter()
                .map(|(id, client)| (*id, raw(&client.fd)))
                .collect(),
            deadlines: self.deadlines.all(),
            records: node.records.iter().cloned().collect(),
            pending_requests: node
                .pending_requests
                .iter()
                .map(|(token, pending)| (*token, *pending))
                .collect(),
            log_gaps: node.log_gaps.clone(),
            outcomes: node.outcomes.all().collect(),
            told: node.told,
            upgraded: node.upgraded.clone(),
            upgrades: node.upgrades,
            next_record: node.next_record,
            next_token: node.next_token,
            next_id: self.next_id,
            next_stream: self.next_stream,
            restarts: node.succession.restarts,
            stop_timeout: node.stop_timeout,
            main_exit: node.main_exit,
            streams: Vec::new(),
            figures: BTreeMap::new(),
            gaps: Vec::new(),
            forward: [Bytes::default(), Bytes::default()],
            forward_dropped: 0,
            forward_untold: [0; 2],
            notes: Vec::new(),
            rotate: false,
            log: node.log.clone(),
            forward_file: Bytes::default(),
            forward_file_untold: 0,
            stale: Vec::new(),
            terminal: node.terminal.is_some(),
        }
    }

    /// All, with what the threads hold: they are at rest.
    pub(in crate::upgrade) fn describe_all(&self, requester: UpgradeRequester) -> Handover {
        let mut handover = self.describe();
        handover.requester = Some(requester);
        handover.stale.push(self.poller.as_raw_fd());
        handover.stale.extend(self.output().map(Output::pipes_fd));
        let Some(held) = self.output().and_then(|output| output.held(describe_stream)) else {
            return handover;
        };
        handover.streams = held.streams;
        handover.figures = held.figures;
        handover.gaps = held.gaps;
        handover.notes = held.notes;
        handover.rotate = held.rotate;
        let [stdout, stderr, file] = held.forward.rest.map(|bytes| Bytes::from(&bytes[..]));
        let [untold @ .., file_untold] = held.forward.untold;
        handover.forward = [stdout, stderr];
        handover.forward_dropped = held.forward.dropped;
        handover.forward_untold = untold;
        (handover.forward_file, handover.forward_file_untold) = (file, file_untold);
        handover
    }
}

fn describe_job(job: &Job) -> JobSnapshot {
    JobSnapshot {
        id: job.id,
        name: job.name.clone(),
        dir: job.dir.clone(),
        highest: job.highest,
        spawns: job.spawns,
        ooms: job.ooms,
        sockets: job
            .sockets
            .iter()
            .map(|held| (held.socket.clone(), held.fd.as_raw_fd()))
            .collect(),
        notify: job.notify.as_ref().map(AsRawFd::as_raw_fd),
        control: job.control.as_ref().map(AsRawFd::as_raw_fd),
        started: job.started,
        down: job.down.clone(),
        state_error: job.state_error.clone(),
        summary: job.summary.clone(),
        forgotten: job.forgotten,
        process: job.process.as_ref().map(describe_process),
    }
}

fn describe_process(process: &Process) -> ProcessSnapshot {
    ProcessSnapshot {
        incarnation: process.incarnation,
        pid: process.pid,
        main: process.main,
        cgroup: process.tree.group().map(|group| group.path().to_owned()),
        unenforced: process.unenforced.clone(),
        phase: match &process.phase {
            Phase::Execing { failure } => PhaseSnapshot::Execing { failure: failure.as_raw_fd() },
            Phase::Failed { exit } => PhaseSnapshot::Failed { exit: exit.clone() },
            Phase::Up => PhaseSnapshot::Up,
            Phase::Clearing { ended, .. } => PhaseSnapshot::Clearing { ended: ended.clone() },
        },
        asked: process.asked,
        fenced: process.fenced,
        fence_at: process.fence_at,
        stop: process.stop,
        log: process.log.clone(),
        streams: process.streams.clone(),
        oom_before: process.oom_before,
        notified: process.notified.clone(),
        ready: process.ready.as_ref().map(AsRawFd::as_raw_fd),
        exec_context: process.exec_context.clone(),
    }
}

fn describe_client(id: u64, client: &Client) -> ClientSnapshot {
    let (unsent, newest) = client.unsent();
    ClientSnapshot {
        id,
        job: client.job,
        fd: client.fd.as_raw_fd(),
        decoder: client.decoder.clone(),
        unsent: unsent.into(),
        newest: newest.map(Bytes::from),
        deaf: client.deaf,
        leaving: client.leaving,
    }
}

fn describe_task(id: u64, task: &Task) -> TaskSnapshot {
    let (output, truncated) = task.output.kept();
    TaskSnapshot {
        id,
        task: task.id.clone(),
        ends_with: task.ends_with.clone(),
        pid: task.pid,
        cgroup: task.tree.group().map(|group| group.path().to_owned()),
        failure: task.failure.as_ref().map(AsRawFd::as_raw_fd),
        pipe: task.output.pipe.as_ref().map(AsRawFd::as_raw_fd),
        output: output[..].into(),
        truncated,
        timed_out: task.timed_out,
        forward: task.forward.clone(),
        job: task.job.clone(),
        exec_context: task.exec_context.clone(),
    }
}

fn describe_stream(stream: &Stream, log: &Log) -> StreamSnapshot {
    StreamSnapshot {
        key: stream.key,
        owner: stream.owner.clone(),
        channel: stream.channel,
        log: log.clone(),
        pid: stream.pid,
        fd: stream.end.as_fd().as_raw_fd(),
        terminal: match &stream.write_end {
            WriteEnd::Terminal(end) => end.as_ref().map(AsRawFd::as_raw_fd),
            WriteEnd::Pipe => None,
        },
        partial: stream.partial[..].into(),
    }
}
