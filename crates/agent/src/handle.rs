//! What the API asks the agent, and how it gets its answers.

use crate::{
    agent::Agent,
    event_log::EventLog,
    fleet::{FleetPeers, FleetRoom, PeerStates},
    metrics::user_metrics::UserMetrics,
    reload::{Applied, options::Options, previews::PreviewError},
    rollout::RequestCaller,
    wait::Wait,
};
use mainstay_core::{
    environ::Environ,
    fleet::{FleetRequest, RequestAnswer},
    name::Name,
    node::{Refusal, Request},
    plan::{ApiPlan, Listeners, Plan},
    rollout::RolloutRequest,
};
use mainstay_import::Loaded;
use mainstay_net::BoxedStream;
use mainstay_pool::{CONFIGURATION, RUN_FILES};
use mainstay_wire::{
    api::{
        Accepted, AppDetail, AppStatus, Changes, FleetStatus, Gone, JobStatus, Measures,
        NodeStatus, ReloadError, Selection, StartPlan,
    },
    link::Figures,
    run_dir::Dirs,
};
use std::{io, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

/// So many callers may be in line; the next one waits.
const LINE: usize = 64;

pub(crate) enum Call {
    Request(Request, oneshot::Sender<Result<Accepted, Refusal>>),
    Status(oneshot::Sender<Arc<NodeStatus>>),
    /// A question that a look at the agent answers.
    Look(Box<dyn FnOnce(&Agent) + Send>),
    Compare(Box<Plan>, oneshot::Sender<Result<Changes, PreviewError>>),
    Apply(Box<Plan>, oneshot::Sender<Result<Applied, PreviewError>>),
    Figures(oneshot::Sender<Figures>),
    Upgrade(Option<PathBuf>, oneshot::Sender<String>),
    HandOver(bool),
    AskFleet(FleetRequest, oneshot::Sender<RequestAnswer>),
    AskRollout(RolloutRequest, RequestCaller),
}

/// Asks the agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    event_log: Arc<EventLog>,
    options: Arc<Options>,
    /// Held by the one that is under way.
    reloads: Arc<Mutex<()>>,
    shared: Arc<Shared>,
}

/// What can be seen without asking the loop.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dirs: Dirs,
    pub(crate) api: watch::Receiver<ApiPlan>,
    pub(crate) user_metrics: Arc<UserMetrics>,
    pub(crate) listeners: watch::Receiver<Listeners>,
    /// The other nodes of its fleet, if it has one.
    pub(crate) peers: Option<FleetPeers>,
    /// Counts what happens to the rollout.
    pub(crate) rollout_changes: watch::Receiver<u64>,
}

impl Handle {
    pub(crate) fn new(
        event_log: Arc<EventLog>,
        options: Options,
        shared: Shared,
    ) -> (Handle, mpsc::Receiver<Call>) {
        let (calls, line) = mpsc::channel(LINE);
        let (options, shared) = (Arc::new(options), Arc::new(shared));
        (Handle { calls, event_log, options, reloads: Arc::default(), shared }, line)
    }

    /// `[api]` as it is in force; changes with every plan that is applied, the same or not.
    #[must_use]
    pub fn api(&self) -> watch::Receiver<ApiPlan> {
        self.shared.api.clone()
    }

    #[must_use]
    pub fn dirs(&self) -> &Dirs {
        &self.shared.dirs
    }

    /// What users measure themselves.
    #[must_use]
    pub fn user_metrics(&self) -> &Arc<UserMetrics> {
        &self.shared.user_metrics
    }

    /// What is to be open besides the API; changes with the plan.
    #[must_use]
    pub fn listeners(&self) -> watch::Receiver<Listeners> {
        self.shared.listeners.clone()
    }

    /// Its name in its fleet; `None`: it belongs to none.
    #[must_use]
    pub fn node_name(&self) -> Option<&Name> {
        self.shared.peers.as_ref().map(FleetPeers::me)
    }

    /// The other nodes of the fleet by name, as this one sees them.
    #[must_use]
    pub fn peer_states(&self) -> Option<watch::Receiver<PeerStates>> {
        self.shared.peers.as_ref().map(FleetPeers::states)
    }

    /// Changes with whatever happens in the fleet.
    #[must_use]
    pub fn fleet_changes(&self) -> Option<watch::Receiver<u64>> {
        self.shared.peers.as_ref().map(FleetPeers::changes)
    }

    /// A connection to the API of another node, over the mesh.
    ///
    /// # Errors
    /// When it cannot be reached, or there is no fleet.
    pub async fn connect(&self, node: &Name) -> io::Result<BoxedStream> {
        match &self.shared.peers {
            Some(peers) => peers.connect(node).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The next connection of another node to this API; `None`: there is no fleet. May be dropped
    /// at any time.
    pub async fn next_peer(&self) -> Option<(Name, BoxedStream)> {
        self.shared.peers.as_ref()?.next_stream().await
    }

    pub(crate) fn calls(&self) -> &mpsc::Sender<Call> {
        &self.calls
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn reloads(&self) -> &Mutex<()> {
        &self.reloads
    }

    /// The wait for what follows from requests that are made from now on.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> Wait<'_> {
        Wait::begin(self, patience)
    }

    #[must_use]
    pub fn events(&self) -> &Arc<EventLog> {
        &self.event_log
    }

    /// # Errors
    /// [`Gone`], or inside: why it was not taken.
    pub async fn request(&self, request: Request) -> Result<Result<Accepted, Refusal>, Gone> {
        self.call(|answer| Call::Request(request, answer)).await
    }

    /// # Errors
    /// [`Gone`]
    pub async fn status(&self) -> Result<Arc<NodeStatus>, Gone> {
        self.call(Call::Status).await
    }

    /// # Errors
    /// [`Gone`]
    pub async fn jobs(&self, which: Selection) -> Result<Vec<JobStatus>, Gone> {
        self.look(move |agent| agent.selected(&which)).await
    }

    /// Why a job is as it is.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn why(&self, name: &str) -> Result<Option<Vec<String>>, Gone> {
        let name = name.to_owned();
        self.look(move |agent| agent.why(&name)).await
    }

    /// The plan in force.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn plan(&self) -> Result<Plan, Gone> {
        self.look(|agent| agent.node.plan().clone()).await
    }

    /// What applying a plan would change.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it would not be taken.
    pub(crate) async fn compare(&self, plan: Plan) -> Result<Result<Changes, PreviewError>, Gone> {
        self.call(|answer| Call::Compare(Box::new(plan), answer)).await
    }

    /// Brings a plan into force.
    pub(crate) async fn apply(&self, plan: Plan) -> Result<Result<Applied, PreviewError>, Gone> {
        self.call(|answer| Call::Apply(Box::new(plan), answer)).await
    }

    /// What the keeper counts: takes as long as the keeper does.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn figures(&self) -> Result<Figures, Gone> {
        self.call(Call::Figures).await
    }

    /// What the loop counts: a plain copy.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn measures(&self) -> Result<Measures, Gone> {
        self.look(Agent::measures).await
    }

    /// What users have changed for whatever is started from now on.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn environ(&self) -> Result<Environ, Gone> {
        self.look(|agent| agent.node.environ().clone()).await
    }

    /// The fleet as this node sees it; `None`: it belongs to none.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn fleet(&self) -> Result<Option<FleetStatus>, Gone> {
        self.look(|agent| agent.fleet.as_ref().map(FleetRoom::status)).await
    }

    /// The apps of the fleet, or of the node if it belongs to none.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn apps(&self) -> Result<Vec<AppStatus>, Gone> {
        self.look(Agent::apps).await
    }

    /// One of them, with its jobs.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn app(&self, name: &str) -> Result<Option<AppDetail>, Gone> {
        let name = name.to_owned();
        self.look(move |agent| agent.app(&name)).await
    }

    /// What a start of an app would do.
    ///
    /// # Errors
    /// [`Gone`], or inside: what a start would be answered with.
    pub async fn plan_start(&self, app: &Name) -> Result<Result<StartPlan, RequestAnswer>, Gone> {
        let app = app.clone();
        self.look(move |agent| agent.plan_start(&app)).await
    }

    /// The node hands over what it runs to others of its fleet, to end after that, or does not any
    /// more.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn hand_over(&self, on: bool) -> Result<(), Gone> {
        self.calls.send(Call::HandOver(on)).await.map_err(|_| Gone)
    }

    /// Asks the master of the fleet, whoever that is. It may take until there is one.
    ///
    /// # Errors
    /// [`Gone`], also where there is no fleet.
    pub async fn ask_fleet(&self, request: FleetRequest) -> Result<RequestAnswer, Gone> {
        self.call(|answer| Call::AskFleet(request, answer)).await
    }

    /// Comes back only with the reason why it failed: on success this agent is replaced.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn upgrade(&self, binary: Option<PathBuf>) -> Result<String, Gone> {
        let metrics = self.user_metrics().clone();
        // This agent may have no time to do it later.
        let _ = RUN_FILES.run(move || metrics.flush()).await;
        self.call(|answer| Call::Upgrade(binary, answer)).await
    }

    /// The configuration as it is written now.
    ///
    /// # Errors
    /// [`ReloadError::Gone`], [`ReloadError::Unserved`], [`ReloadError::Invalid`]
    pub(crate) async fn load(&self) -> Result<Loaded, ReloadError> {
        let (options, environ) = (self.options.clone(), self.environ().await?);
        let loaded = CONFIGURATION.run(move || options.load(&environ)).await;
        Ok(loaded.map_err(PreviewError::from)??)
    }

    /// Answers between two steps, with what the agent is then.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Agent) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        // Nobody is left only when the client went away.
        let answered =
            |answer: oneshot::Sender<T>| move |agent: &Agent| drop(answer.send(look(agent)));
        self.call(|answer| Call::Look(Box::new(answered(answer)))).await
    }

    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Gone> {
        let (sender, answer) = oneshot::channel();
        self.calls.send(call(sender)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}
