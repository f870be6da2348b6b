//! What the keeper holds of a job: at most one process, its sockets, who listens to it.

use crate::process::{exec_error::ExecContext, listen_sockets::HeldSocket, tree::Tree};
use mainstay_core::{
    exit::{Asked, Exit},
    job::{Desired, JobSummary},
    name::Name,
    plan::{Log, SignalTarget},
    signal::Signal,
};
use mainstay_sys::{cgroup::Group, clock, proc, reap::Death};
use mainstay_wire::{
    link::LiveSettings,
    state::{ContainerMetrics, ContainerState, HeldRun},
};
use std::{collections::BTreeMap, fs::File, os::fd::OwnedFd, path::PathBuf, time::Duration};

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: Name,
    pub(crate) dir: PathBuf,
    /// The highest incarnation ever spawned.
    pub(crate) highest: u64,
    pub(crate) spawns: u64,
    pub(crate) ooms: u64,
    pub(crate) sockets: Vec<HeldSocket>,
    pub(crate) notify: Option<OwnedFd>,
    pub(crate) process: Option<Process>,
    /// Its process had begun by then: CLOCK_BOOTTIME, ns.
    pub(crate) started: Option<u64>,
    /// The run of a `hold`.
    pub(crate) held: Option<HeldRun>,
    /// How its last incarnation ended, while there is no other.
    pub(crate) down: Option<ContainerState>,
    /// The listening control socket of the life that goes on.
    pub(crate) control: Option<OwnedFd>,
    pub(crate) clients: Vec<u64>,
    /// Why the state file is not what it should be.
    pub(crate) state_error: Option<String>,
    /// Why nobody can connect.
    pub(crate) control_error: Option<String>,
    /// What an agent that has lost its journal goes by; `None`: it is to run.
    pub(crate) summary: Option<JobSummary>,
    /// No longer in the plan: goes when its process has gone.
    pub(crate) forgotten: bool,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) incarnation: u64,
    pub(crate) pid: u32,
    pub(crate) main: bool,
    pub(crate) tree: Tree,
    pub(crate) unenforced: Vec<String>,
    pub(crate) phase: Phase,
    pub(crate) asked: Asked,
    pub(crate) fenced: bool,
    pub(crate) fence_at: Option<u64>,
    pub(crate) stop: StopRule,
    /// As it is at the writer; `None`: an older image did not say.
    pub(crate) log: Option<Log>,
    /// Keys of its pipes at the writer.
    pub(crate) streams: Vec<u64>,
    pub(crate) oom_before: u64,
    /// What it has said by sd_notify, the latest of each.
    pub(crate) notified: BTreeMap<String, String>,
    /// Where it writes a newline once it is ready; closed when it has.
    pub(crate) ready: Option<OwnedFd>,
    pub(crate) exec_context: ExecContext,
}

/// How the keeper stops it when there is no agent to do so.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct StopRule {
    pub(crate) signal: Signal,
    pub(crate) to: SignalTarget,
    pub(crate) timeout: Duration,
}

impl StopRule {
    pub(crate) fn of(settings: &LiveSettings) -> StopRule {
        StopRule {
            signal: settings.stop_signal,
            to: settings.stop_to,
            timeout: Duration::from_millis(settings.stop_timeout_ms),
        }
    }
}

impl Process {
    pub(crate) fn settings(&self) -> Option<LiveSettings> {
        let StopRule { signal, to, timeout } = self.stop;
        Some(LiveSettings {
            main: self.main,
            log: self.log.clone()?,
            stop_signal: signal,
            stop_to: to,
            stop_timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// Cloned; exec has neither succeeded nor failed.
    Execing {
        failure: OwnedFd,
    },
    /// Exec has failed; the child is on its way out.
    Failed {
        exit: Exit,
    },
    Up,
    /// The leader is gone, others of its tree are not.
    Clearing {
        ended: Ended,
        /// Tells when the cgroup becomes empty.
        events: Option<File>,
        /// A time is set to look again.
        recheck: bool,
    },
}

/// How the leader ended, and what it had used.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) cpu_user_us: u64,
    pub(crate) cpu_system_us: u64,
    pub(crate) max_rss_kib: u64,
}

impl Ended {
    pub(crate) fn new(exit: Exit, death: Option<&Death>) -> Ended {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Ended {
            exit,
            cpu_user_us: death.map_or(0, |death| micros(death.user)),
            cpu_system_us: death.map_or(0, |death| micros(death.system)),
            max_rss_kib: death.map_or(0, |death| death.max_rss_kib),
        }
    }
}

impl Job {
    pub(crate) fn new(id: u64, name: Name, dir: PathBuf) -> Job {
        Job {
            id,
            name,
            dir,
            highest: 0,
            spawns: 0,
            ooms: 0,
            sockets: Vec::new(),
            notify: None,
            process: None,
            started: None,
            held: None,
            down: None,
            control: None,
            clients: Vec::new(),
            state_error: None,
            control_error: None,
            summary: None,
            forgotten: false,
        }
    }

    /// What is wanted of it.
    pub(crate) fn desired(&self) -> Desired {
        self.summary.as_ref().map_or(Desired::Run, |summary| summary.desired)
    }

    pub(crate) fn control_file(&self) -> PathBuf {
        self.dir.join("control")
    }

    /// The process of this incarnation, if it is the one we hold.
    pub(crate) fn process_of(&mut self, incarnation: u64) -> Option<&mut Process> {
        self.process.as_mut().filter(|process| process.incarnation == incarnation)
    }

    pub(crate) fn state_starting(&self) -> ContainerState {
        ContainerState {
            incarnation: Some(self.highest),
            held: self.held.clone(),
            desired: Some(self.desired()),
            ..ContainerState::starting(clock::wall())
        }
    }

    /// The state of the process that is there, or of the last one.
    pub(crate) fn state_now(&self) -> Option<ContainerState> {
        match &self.process {
            Some(process) => Some(self.state_of(process, self.metrics(process))),
            None => self.down.clone(),
        }
    }

    /// The same for one that has only just come: it has used nothing yet.
    pub(crate) fn state_first(&self) -> Option<ContainerState> {
        self.process.as_ref().map(|process| self.state_of(process, self.counts()))
    }

    fn state_of(&self, process: &Process, metrics: ContainerMetrics) -> ContainerState {
        let mut state = match process.phase {
            Phase::Execing { .. } | Phase::Failed { .. } => self.state_starting(),
            Phase::Up => ContainerState {
                started: self.started,
                held: self.held.clone(),
                ..ContainerState::up(clock::wall(), process.pid, metrics)
            },
            // The leader is gone, but the job is not down before its tree is.
            Phase::Clearing { .. } => {
                let mut state = self.state_starting();
                state.container_process_state.container_metrics = Some(metrics);
                state
            }
        };
        (state.incarnation, state.desired) = (Some(process.incarnation), Some(self.desired()));
        state.err = self.trouble();
        state
    }

    /// What clients should know about socket and state file.
    fn trouble(&self) -> String {
        let troubles = self.state_error.iter().chain(&self.control_error);
        troubles.map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn state_down(&self, ended: &Ended) -> ContainerState {
        let cpu_time = (ended.cpu_user_us + ended.cpu_system_us) * 1000;
        let metrics = ContainerMetrics { cpu_time, ..self.counts() };
        let mut state = ContainerState::down(clock::wall(), &ended.exit, metrics);
        (state.incarnation, state.desired) = (Some(self.highest), Some(self.desired()));
        if state.err.is_empty() {
            state.err = self.trouble();
        }
        state
    }

    fn counts(&self) -> ContainerMetrics {
        ContainerMetrics {
            restarts: self.spawns.saturating_sub(1),
            ooms: self.ooms,
            ..ContainerMetrics::default()
        }
    }

    fn metrics(&self, process: &Process) -> ContainerMetrics {
        let group = process.tree.group();
        let memory = group.and_then(Group::memory_current);
        let limit = group.and_then(Group::memory_max);
        let cpu = process.tree.cpu_time().or_else(|| proc::cpu_time(process.pid));
        ContainerMetrics {
            cpu_time: cpu.unwrap_or(0),
            memory_usage: memory.or_else(|| proc::resident(process.pid)).unwrap_or(0),
            memory_limit: limit.unwrap_or(0),
            ..self.counts()
        }
    }
}
