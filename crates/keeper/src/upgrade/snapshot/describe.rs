//! From a keeper to its description, and with it out of its hands: from then on nobody owns the
//! descriptors, until the next image takes them by their numbers.

use super::{Bytes, Handover, HeldClient, HeldJob, HeldPhase, HeldProcess, HeldStream, HeldTask};
use crate::{
    control::client::Client,
    keeper::{Keeper, Part},
    link::node::{Means, NodePart, Wanting},
    output::{Other, Stream, Told},
    process::{
        job::{Job, Phase, Process},
        task::Task,
    },
};
use mainstay_sys::fd;
use mainstay_wire::link::FORMAT;
use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd, OwnedFd},
};

impl Keeper {
    /// All but what the threads hold.
    pub(in crate::upgrade) fn describe(&self) -> Handover {
        let Part::Node(node) = &self.part else { unreachable!("only a node is upgraded") };
        let raw = |fd: &OwnedFd| fd.as_raw_fd();
        Handover {
            format: FORMAT,
            version: crate::VERSION.to_owned(),
            exe: raw(&node.means.exe),
            wanting: None,
            options: node.options.clone(),
            state_dir: node.state_dir.clone(),
            run_dir: node.means.dir.path().to_owned(),
            lock: node.means.dir.lock_file().as_raw_fd(),
            state_lock: node.means.state_lock.as_ref().map(AsRawFd::as_raw_fd),
            api: raw(&node.means.api),
            socket: raw(&node.means.socket),
            null: raw(&self.ground.null),
            run: self.ground.run.clone(),
            env: self.ground.env.clone(),
            ignored: self.ground.ignored.clone(),
            nofile: self.ground.nofile,
            cgroup: self.ground.cgroup.as_ref().map(|root| root.path().to_owned()),
            jobs: self.jobs.values().map(describe_job).collect(),
            clients: self.clients.iter().map(|(id, client)| describe_client(*id, client)).collect(),
            tasks: self.tasks.iter().map(|(id, task)| describe_task(*id, task)).collect(),
            askers: node.askers.iter().map(|(id, asker)| (*id, raw(&asker.fd))).collect(),
            deadlines: self.deadlines.all(),
            records: node.records.iter().cloned().collect(),
            untaken: node.untaken.iter().map(|(token, untaken)| (*token, *untaken)).collect(),
            lost: node.lost.clone(),
            done: node.done.clone(),
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
        }
    }

    /// Stops the threads; nothing is closed, and nobody owns the descriptors any more.
    pub(in crate::upgrade) fn into_handover(self, wanting: Wanting) -> Handover {
        let mut handover = self.describe();
        handover.wanting = Some(wanting);
        let Keeper { part, jobs, clients, tasks, ground, .. } = self;
        let Part::Node(node) = part else { unreachable!("only a node is upgraded") };
        let NodePart { means: Means { output, dir, state_lock, exe, api, socket }, askers, .. } =
            *node;
        let rest = output.stop();
        handover.streams = rest.streams.iter().map(describe_stream).collect();
        handover.figures = rest.figures;
        handover.gaps = rest.gaps;
        for told in rest.told {
            match told {
                Told::Gap { job, lines } => handover.lost.add(job, lines),
                // The next agent looks for files that are not compressed yet.
                Told::Closed { .. } => {}
            }
        }
        handover.forward = rest.forward.map(|bytes| Bytes::from(&bytes[..]));
        handover.forward_dropped = rest.forward_dropped;
        std::mem::forget((jobs, clients, tasks, ground, rest.streams));
        std::mem::forget((dir, state_lock, exe, api, socket, askers));
        fd::release(&handover.descriptors());
        handover
    }
}

fn describe_job(job: &Job) -> HeldJob {
    HeldJob {
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
        state_error: job.state_error.clone(),
        forgotten: job.forgotten,
        process: job.process.as_ref().map(describe_process),
    }
}

fn describe_process(process: &Process) -> HeldProcess {
    HeldProcess {
        incarnation: process.incarnation,
        pid: process.pid,
        main: process.main,
        cgroup: process.tree.group().map(|group| group.path().to_owned()),
        unenforced: process.unenforced.clone(),
        phase: match &process.phase {
            Phase::Execing { failure } => HeldPhase::Execing { failure: failure.as_raw_fd() },
            Phase::Failed { exit } => HeldPhase::Failed { exit: exit.clone() },
            Phase::Up => HeldPhase::Up,
            Phase::Clearing { ended, .. } => HeldPhase::Clearing { ended: ended.clone() },
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
        attempt: process.attempt.clone(),
    }
}

fn describe_client(id: u64, client: &Client) -> HeldClient {
    let (unsent, newest) = client.unsent();
    HeldClient {
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

fn describe_task(id: u64, task: &Task) -> HeldTask {
    HeldTask {
        id,
        task: task.id.clone(),
        pid: task.pid,
        cgroup: task.tree.group().map(|group| group.path().to_owned()),
        failure: task.failure.as_ref().map(AsRawFd::as_raw_fd),
        pipe: task.words.pipe.as_ref().map(AsRawFd::as_raw_fd),
        output: task.words.text[..].into(),
        truncated: task.words.truncated,
        timed_out: task.timed_out,
        attempt: task.attempt.clone(),
    }
}

fn describe_stream(stream: &Stream) -> HeldStream {
    HeldStream {
        key: stream.key,
        owner: stream.owner.clone(),
        channel: stream.channel,
        log: stream.log.clone(),
        fd: stream.fd.as_raw_fd(),
        terminal: match &stream.other {
            Other::Terminal(end) => end.as_ref().map(AsRawFd::as_raw_fd),
            Other::Pipe => None,
        },
        partial: stream.partial[..].into(),
    }
}
