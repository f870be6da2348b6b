//! What the keeper of a node holds besides its jobs: the agent, and all that it has to be told.

use crate::{
    RunOptions,
    control::keeper_socket::KeeperClient,
    link::{
        agent::Agent, log_gaps::LogGaps, service_manager::ServiceManager, spare::Spare,
        starter::Starter, succession::Succession,
    },
    output::Output,
    process::outcomes::Outcomes,
    run::{dirs::RunDir, shutdown::LastOutput, terminal::ForegroundTerminal},
    upgrade::{OpenedBinary, Upgrade},
};
use mainstay_core::{plan::NodeLog, signal::Signal};
use mainstay_sys::offload::Offload;
use mainstay_wire::link::{ControlRequest, ExitRecord, NodeSummary, Upgraded};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    os::fd::OwnedFd,
    path::PathBuf,
    time::Duration,
};

/// Until an agent has said what the configuration says.
const FIRST_STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) struct Node {
    pub(crate) resources: Resources,
    pub(crate) state_dir: PathBuf,
    pub(crate) options: RunOptions,
    pub(crate) agent: Option<Agent>,
    /// The next agent.
    pub(crate) spare: Option<Spare>,
    pub(crate) succession: Succession,
    /// Not known to be told yet.
    pub(crate) upgraded: Vec<Upgraded>,
    pub(crate) upgrades: u64,
    /// Not acknowledged yet.
    pub(crate) records: VecDeque<ExitRecord>,
    pub(crate) next_record: u64,
    /// Told to the agent, and not in its hands yet.
    pub(crate) pending_requests: BTreeMap<u64, PendingRequest>,
    pub(crate) next_token: u64,
    pub(crate) log_gaps: LogGaps,
    /// The latest sd_notify fields of (job, incarnation).
    pub(crate) notifications: BTreeMap<(u64, u64), BTreeMap<String, String>>,
    pub(crate) outcomes: Outcomes,
    /// Who started the node and wants to be told.
    pub(crate) service_manager: Option<ServiceManager>,
    /// The last summary of the node, by its agent.
    pub(crate) told: Option<NodeSummary>,
    pub(crate) stop_timeout: Duration,
    /// How lines are forwarded, as far as that is not a job's affair.
    pub(crate) log: NodeLog,
    /// When a signal first asked for the end (CLOCK_BOOTTIME, ns).
    pub(crate) stop_asked: Option<u64>,
    /// A second one did.
    pub(crate) impatient: bool,
    /// The keeper carries out a node stop by itself.
    pub(crate) stopping_alone: bool,
    /// How the main job ended, should the keeper have to end the run.
    pub(crate) main_exit: Option<i32>,
    /// The run ends with this code as soon as everything is gone.
    pub(crate) ending: Option<i32>,
    /// Another run begins then, in its place.
    pub(crate) begins_anew: bool,
    pub(crate) last_output: Option<LastOutput>,
    /// Killed at the end, and told of.
    pub(crate) strays: HashSet<u32>,
    pub(crate) keeper_clients: BTreeMap<u64, KeeperClient>,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) frames_left: bool,
    /// Who waits until it has started.
    pub(crate) starter: Option<Starter>,
    /// The one whose end is the end of the run.
    pub(crate) terminal: Option<ForegroundTerminal>,
}

/// What a node has from its first moment to its last.
pub(crate) struct Resources {
    pub(crate) dir: RunDir,
    /// Held against another node that would write into the same logs.
    pub(crate) state_lock: Option<OwnedFd>,
    /// Our own executable: the agent is started from it, whatever lies at its path by now.
    pub(crate) exe: OwnedFd,
    /// The listening socket of the API, lent to every agent.
    pub(crate) api: OwnedFd,
    /// `keeper.sock`.
    pub(crate) socket: OwnedFd,
    pub(crate) output: Output,
    /// Opens new binaries, which may lie anywhere.
    pub(crate) opener: Offload<OpenedBinary>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PendingRequest {
    /// Asked for at a control socket.
    #[serde(rename = "Ask")]
    Control {
        job: u64,
        incarnation: u64,
        #[serde(rename = "ask")]
        request: ControlRequest,
    },
    Signal(Signal),
}

impl Node {
    pub(crate) fn new(resources: Resources, state_dir: PathBuf, options: RunOptions) -> Node {
        Node {
            resources,
            state_dir,
            options,
            agent: None,
            spare: None,
            succession: Succession::default(),
            upgraded: Vec::new(),
            upgrades: 0,
            records: VecDeque::new(),
            next_record: 0,
            pending_requests: BTreeMap::new(),
            log_gaps: LogGaps::default(),
            next_token: 0,
            notifications: BTreeMap::new(),
            outcomes: Outcomes::default(),
            service_manager: ServiceManager::from_env(),
            told: None,
            stop_timeout: FIRST_STOP_TIMEOUT,
            log: NodeLog::default(),
            stop_asked: None,
            impatient: false,
            stopping_alone: false,
            main_exit: None,
            ending: None,
            begins_anew: false,
            last_output: None,
            strays: HashSet::new(),
            keeper_clients: BTreeMap::new(),
            upgrade: None,
            frames_left: false,
            starter: None,
            terminal: None,
        }
    }

    /// The next binary takes over in a moment: until then there is no agent.
    pub(crate) fn becomes_another(&self) -> bool {
        self.upgrade.as_ref().is_some_and(Upgrade::is_imminent)
    }

    pub(crate) fn await_agent(&mut self, pending: PendingRequest) -> u64 {
        self.next_token += 1;
        self.pending_requests.insert(self.next_token, pending);
        self.next_token
    }
}
