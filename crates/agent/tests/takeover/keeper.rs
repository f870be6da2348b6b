//! A keeper that is played: it holds processes that are only numbers.

use mainstay_core::{
    exit::{Asked, Exit},
    job::JobSummary,
    name::Name,
    signal::Signal,
    task::TaskOutcome,
};
use mainstay_wire::{
    format::Format,
    frame::{self, FrameDecoder},
    link::{ExitRecord, HeldJob, LiveProcess, NodeSummary, ToAgent, ToKeeper, TreeKind, Welcome},
    task::{TaskDone, TaskKey},
};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    thread::{self, JoinHandle},
};

/// What a keeper holds over the deaths of agents.
#[derive(Default)]
pub(super) struct World {
    pub(super) run_dir: PathBuf,
    pub(super) agent_restarts: u64,
    pub(super) jobs: BTreeMap<Name, (u64, Option<u64>)>,
    pub(super) records: Vec<ExitRecord>,
    next_record: u64,
    pub(super) signals: Vec<(u64, Signal)>,
    pub(super) next_token: u64,
    /// Every spawn, in order; a second one of the same incarnation would be a second process.
    pub(super) spawned: Vec<(Name, u64)>,
    pub(super) tasks: Vec<TaskKey>,
    pub(super) heard: Vec<&'static str>,
    summaries: BTreeMap<Name, JobSummary>,
    told: Option<NodeSummary>,
    pub(super) link: Option<UnixStream>,
    serving: Option<JoinHandle<()>>,
}

impl World {
    pub(super) fn say(&mut self, message: &ToAgent) {
        if let Some(link) = &mut self.link {
            // A dead agent hears nothing; the next one is told.
            let _ = link.write_all(&frame::encode(message).expect("short"));
        }
    }

    pub(super) fn on_message(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Hello { .. } => self.welcome(),
            ToKeeper::Spawn(spawn) => self.spawn(spawn.job.clone(), spawn.incarnation),
            ToKeeper::Stop { job, incarnation, signal, .. } => {
                self.end(&job, incarnation, Exit::Signal { signal, oom: false }, Asked::Stop);
            }
            ToKeeper::Kill { job, incarnation } => {
                let exit = Exit::Signal { signal: Signal::KILL, oom: false };
                self.end(&job, incarnation, exit, Asked::Kill);
            }
            ToKeeper::RunTask(task) => {
                self.tasks.push(task.id.clone());
                let exit = Exit::Code { code: 0 };
                // One of the node itself says what it was given.
                let output = match &task.job {
                    Some(_) => String::new(),
                    None => format!("{:?} {:?}", task.exec.argv, task.input.0),
                };
                let outcome = TaskOutcome { exit, output, truncated: false };
                self.say(&ToAgent::TaskDone(TaskDone { id: task.id, outcome }));
            }
            ToKeeper::TaskTaken { .. } => {}
            ToKeeper::Ack { record } => self.records.retain(|kept| kept.record != record),
            ToKeeper::Taken { token } => self.signals.retain(|(kept, _)| *kept != token),
            ToKeeper::Ready { .. } => self.heard.push("ready"),
            ToKeeper::Forget { job } => {
                let live = self.jobs.remove(&job).and_then(|(_, live)| live);
                assert_eq!(live, None, "{job} is forgotten and runs");
            }
            ToKeeper::UpdateSettings { .. }
            | ToKeeper::Rest { .. }
            | ToKeeper::NodeLog(_)
            | ToKeeper::Reloaded => {}
            ToKeeper::Remember { job, summary } => match summary {
                Some(summary) => drop(self.summaries.insert(job, *summary)),
                None => drop(self.summaries.remove(&job)),
            },
            ToKeeper::Told(told) => self.told = Some(told),
            other => panic!("not expected: {other:?}"),
        }
    }

    pub(super) fn welcome(&mut self) {
        let jobs = self.jobs.iter().map(|(job, (highest, live))| HeldJob {
            job: job.clone(),
            highest: *highest,
            live: live.map(|incarnation| LiveProcess {
                incarnation,
                pid: 100,
                tree: TreeKind::Group,
                unenforced: Vec::new(),
                spawned: true,
                notified: Default::default(),
                settings: None,
            }),
            open: live.is_some(),
            summary: self.summaries.get(job).cloned(),
        });
        let welcome = Welcome {
            format: Format::OURS,
            run: "0123456789abcdef".into(),
            run_dir: self.run_dir.clone(),
            state_dir: PathBuf::new(),
            agent_restarts: self.agent_restarts,
            upgraded: Vec::new(),
            jobs: jobs.collect(),
            records: self.records.clone(),
            signals: self.signals.clone(),
            asked: Vec::new(),
            told: self.told,
        };
        self.say(&ToAgent::Welcome(Box::new(welcome)));
    }

    pub(super) fn spawn(&mut self, job: Name, incarnation: u64) {
        let (highest, live) = self.jobs.entry(job.clone()).or_default();
        if incarnation <= *highest {
            return;
        }
        assert!(live.is_none(), "{job} has a live incarnation already");
        (*highest, *live) = (incarnation, Some(incarnation));
        self.spawned.push((job.clone(), incarnation));
        let (tree, unenforced) = (TreeKind::Group, Vec::new());
        self.say(&ToAgent::Spawned { job, incarnation, pid: 100, tree, unenforced });
    }

    pub(super) fn end(&mut self, job: &Name, incarnation: u64, exit: Exit, asked: Asked) {
        let Some((_, live)) = self.jobs.get_mut(job) else { return };
        if *live != Some(incarnation) {
            return;
        }
        *live = None;
        self.next_record += 1;
        let record = ExitRecord {
            record: self.next_record,
            job: job.clone(),
            incarnation,
            exit,
            asked,
            fenced: false,
            ended: 0,
            cpu_user_us: 0,
            cpu_system_us: 0,
            max_rss_kib: 0,
        };
        self.records.push(record.clone());
        self.say(&ToAgent::Exited(record));
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        self.next_token += 1;
        self.signals.push((self.next_token, signal));
        self.say(&ToAgent::Signalled { token: self.next_token, signal });
    }
}

#[derive(Clone, Default)]
pub(super) struct Keeper(Arc<Mutex<World>>);

impl Keeper {
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("the keeper lives")
    }

    /// A link to a new agent, served by a thread until the agent is gone.
    pub(super) fn link(&self) -> OwnedFd {
        self.drain();
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let keeper = self.clone();
        let link = ours.try_clone().expect("a descriptor");
        let serving = thread::spawn(move || keeper.serve(ours));
        let mut world = self.world();
        (world.link, world.serving) = (Some(link), Some(serving));
        theirs.into()
    }

    /// Takes in all that an agent has said before it went away.
    pub(super) fn drain(&self) {
        let serving = self.world().serving.take();
        if let Some(serving) = serving {
            serving.join().expect("the keeper lives");
        }
    }

    pub(super) fn serve(&self, mut link: UnixStream) {
        let mut decoder = FrameDecoder::default();
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = link.read(&mut bytes) {
            decoder.push(&bytes[..length]);
            while let Ok(Some(message)) = decoder.next() {
                self.world().on_message(message);
            }
        }
    }
}
