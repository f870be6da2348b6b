//! What the API asks the agent, and how it gets its answers.

use crate::{
    effects::listeners::Listeners,
    event_log::EventLog,
    metrics::Measures,
    metrics::user_metrics::UserMetrics,
    reload::{
        Applied,
        source::{Invalid, Loaded, Source},
    },
};
use mainstay_core::{
    environ::Environ,
    name::Name,
    node::{Refusal, Request},
    plan::{ApiPlan, Plan},
};
use mainstay_wire::{
    api::{Changes, JobStatus, NodeStatus, Why},
    link::Figures,
};
use std::{path::PathBuf, sync::Arc};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

/// So many callers may be in line; the next one waits.
const LINE: usize = 64;

pub(crate) enum Call {
    Request(Request, oneshot::Sender<Result<Accepted, Refusal>>),
    Status(oneshot::Sender<Arc<NodeStatus>>),
    Jobs(Selection, oneshot::Sender<Vec<JobStatus>>),
    Why(String, oneshot::Sender<Option<Why>>),
    Compare(Box<Plan>, oneshot::Sender<Result<Changes, Refusal>>),
    Apply(Box<Plan>, oneshot::Sender<Result<Applied, Refusal>>),
    Figures(oneshot::Sender<Figures>),
    Measures(oneshot::Sender<Measures>),
    Environ(oneshot::Sender<Environ>),
    Upgrade(Option<PathBuf>, oneshot::Sender<String>),
}

/// A request that was taken, journaled, and is being carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The incarnation that the job had before; 0 also for requests to the node.
    pub before: u64,
    /// The number of the task that it has begun, or joined.
    pub task: Option<u64>,
}

/// Which jobs are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The job of this name, else the instances of what is written under it.
    Named(String),
    OfApp(Name),
    /// Those that start with their app.
    StartedWith(Name),
    /// Those of them that there are.
    These(Vec<Name>),
}

/// The agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is ending")]
pub struct Gone;

/// Asks the agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    event_log: Arc<EventLog>,
    source: Arc<Source>,
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
}

/// Where the node lives.
#[derive(Debug, Clone, Default)]
pub struct Dirs {
    pub run: PathBuf,
    pub state: PathBuf,
}

impl Handle {
    pub(crate) fn new(
        event_log: Arc<EventLog>,
        source: Source,
        shared: Shared,
    ) -> (Handle, mpsc::Receiver<Call>) {
        let (calls, line) = mpsc::channel(LINE);
        let (source, shared) = (Arc::new(source), Arc::new(shared));
        (Handle { calls, event_log, source, reloads: Arc::default(), shared }, line)
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

    pub(crate) fn reloads(&self) -> &Mutex<()> {
        &self.reloads
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
        self.call(|answer| Call::Jobs(which, answer)).await
    }

    /// Why a job is as it is.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn why(&self, name: &str) -> Result<Option<Why>, Gone> {
        self.call(|answer| Call::Why(name.to_owned(), answer)).await
    }

    /// What applying a plan would change.
    ///
    /// # Errors
    /// [`Gone`], or inside: why it would not be taken.
    pub(crate) async fn compare(&self, plan: Plan) -> Result<Result<Changes, Refusal>, Gone> {
        self.call(|answer| Call::Compare(Box::new(plan), answer)).await
    }

    /// Brings a plan into force.
    pub(crate) async fn apply(&self, plan: Plan) -> Result<Result<Applied, Refusal>, Gone> {
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
        self.call(Call::Measures).await
    }

    /// What users have changed for whatever is started from now on.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn environ(&self) -> Result<Environ, Gone> {
        self.call(Call::Environ).await
    }

    /// Comes back only with the reason why it failed: on success this agent is replaced.
    ///
    /// # Errors
    /// [`Gone`]
    pub async fn upgrade(&self, binary: Option<PathBuf>) -> Result<String, Gone> {
        let metrics = self.user_metrics().clone();
        // This agent may have no time to do it later.
        let _ = tokio::task::spawn_blocking(move || metrics.flush()).await;
        self.call(|answer| Call::Upgrade(binary, answer)).await
    }

    /// The configuration as it is written now.
    ///
    /// # Errors
    /// [`Gone`], or inside: the diagnostics, ready to be printed.
    pub(crate) async fn load(&self) -> Result<Result<Loaded, Invalid>, Gone> {
        let (source, environ) = (self.source.clone(), self.environ().await?);
        tokio::task::spawn_blocking(move || source.load(&environ)).await.map_err(|_| Gone)
    }

    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Gone> {
        let (sender, answer) = oneshot::channel();
        self.calls.send(call(sender)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}
