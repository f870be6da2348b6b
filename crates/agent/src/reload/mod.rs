//! The one reload: whoever asks for it, it goes this way, and changes nothing before it can have all.
//!
//! ```text
//!  load the configuration ─► open its listeners ─► apply the plan ─► wait for the jobs it touches, and
//!        │ Invalid                 │ Listeners           │ Refused     for the update of what it rolls out
//!        └─────────────── nothing is changed ────────────┘                   └─ Unreached: it is in force
//! ```
//!
//! One goes on at a time up to the point where its plan is in force, so that the listeners that are
//! opened are those of the plan that follows.

pub(crate) mod options;
pub(crate) mod previews;

use crate::{handle::Handle, wait::Wait};
use mainstay_core::{
    name::Name,
    node::Effect,
    plan::{ApiPlan, Plan},
};
use mainstay_wire::api::{Changes, Goal, Incarnations, JobStatus, ReloadError, Selection};
use previews::PreviewError;
use std::{collections::BTreeMap, fmt::Display, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

/// A file system that takes longer than that holds up no answer.
const TO_WRITE: Duration = Duration::from_secs(2);

/// Opens what a plan wants to listen on before that plan is in force.
pub trait PrepareListeners {
    type Error: Display;

    /// Opens them; they are used once the plan is in force.
    fn prepare(&self, plan: &ApiPlan) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The plan was not applied after all.
    fn give_up(&self);
}

impl From<PreviewError> for ReloadError {
    fn from(error: PreviewError) -> ReloadError {
        match error {
            PreviewError::Refused(refusal) => ReloadError::Refused(refusal),
            PreviewError::Unserved(unserved) => ReloadError::Unserved(unserved.to_string()),
            stale @ PreviewError::Stale(_) => ReloadError::Stale(stale.to_string()),
        }
    }
}

/// A plan that is in force now.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) changes: Changes,
    /// The incarnations that its jobs had before.
    pub(crate) before: Incarnations,
    /// Comes when it is in plan.json, or cannot be written; `None`: it is there.
    pub(crate) written: Option<oneshot::Receiver<()>>,
}

impl Applied {
    /// Who reads the files of the node after the answer finds the plan that it is about.
    async fn is_written(&mut self) {
        if let Some(written) = self.written.take() {
            // It is in force whatever becomes of the file: the journal has it.
            let _ = timeout(TO_WRITE, written).await;
        }
    }
}

impl Handle {
    /// What a reload would change.
    ///
    /// # Errors
    /// It would not be made.
    pub async fn preview(&self) -> Result<Changes, ReloadError> {
        let loaded = self.load().await?;
        let changes = self.compare(loaded.plan).await??;
        Ok(Changes { warnings: loaded.warnings, ..changes })
    }

    /// Brings the configuration into force as it is written now; what that changes, once every job
    /// that it touches has got there.
    ///
    /// # Errors
    /// [`ReloadError::Unreached`]: it is in force. Any other: nothing is changed.
    pub async fn reload<L: PrepareListeners + Sync>(
        &self,
        listeners: &L,
        patience: Duration,
    ) -> Result<Changes, ReloadError> {
        let (wait, deadline) = (Wait::begin(self, patience), Instant::now() + patience);
        let (applied, rolls_out) = self.bring_into_force(listeners).await?;
        let Applied { changes, before, .. } = applied;
        let goals: BTreeMap<Name, Goal> = changes
            .jobs
            .iter()
            .filter_map(|change| Some((change.job.clone(), goal_of(change.effect)?)))
            .collect();
        let touched = changes.jobs.iter().map(|change| &change.job);
        let touched = touched.filter(|job| goals.contains_key(*job)).cloned().collect();
        let goal = |job: &JobStatus| goals.get(&job.name)?.after(&before, job);
        let mut reached = wait.wait(Selection::These(touched), goal).await;
        if reached.is_ok() && rolls_out && !patience.is_zero() {
            reached = self.rollout_settles(patience, deadline).await;
        }
        match reached {
            Ok(()) => Ok(changes),
            Err(error) => Err(ReloadError::Unreached { changes: Box::new(changes), error }),
        }
    }

    /// The plan that a reload would bring into force.
    ///
    /// # Errors
    /// There is none.
    pub async fn load_plan(&self) -> Result<Plan, ReloadError> {
        Ok(self.load().await?.plan)
    }

    /// Brings into force what `edit` makes of the plan in force: another one in its jobs and apps
    /// and nothing else. It does not wait for what that starts and stops.
    ///
    /// # Errors
    /// Nothing is changed.
    pub async fn edit_plan<E: From<ReloadError>>(
        &self,
        edit: impl FnOnce(&Plan) -> Result<Plan, E>,
    ) -> Result<Changes, E> {
        let _one_at_a_time = self.reloads().lock().await;
        let plan = self.plan().await.map_err(ReloadError::from)?;
        let applied = self.apply(edit(&plan)?).await.map_err(ReloadError::from)?;
        let mut applied = applied.map_err(ReloadError::from)?;
        applied.is_written().await;
        Ok(applied.changes)
    }

    /// Also: whether it is another rollout.
    async fn bring_into_force<L: PrepareListeners + Sync>(
        &self,
        listeners: &L,
    ) -> Result<(Applied, bool), ReloadError> {
        let _one_at_a_time = self.reloads().lock().await;
        let loaded = self.load().await?;
        let rolls_out = self.plan().await?.rollout != loaded.plan.rollout;
        let prepared = listeners.prepare(&loaded.plan.api).await;
        prepared.map_err(|error| ReloadError::Listeners(error.to_string()))?;
        let applied = self.apply(loaded.plan).await;
        if !matches!(applied, Ok(Ok(_))) {
            listeners.give_up();
        }
        let mut applied = applied??;
        applied.is_written().await;
        applied.changes.warnings = loaded.warnings;
        Ok((applied, rolls_out))
    }
}

/// What a reload is to lead to; `None`: the job need not be waited for.
fn goal_of(effect: Effect) -> Option<Goal> {
    match effect {
        Effect::Restart => Some(Goal::Anew),
        Effect::Start => Some(Goal::Begun),
        Effect::Stop => Some(Goal::Down),
        Effect::Keep
        | Effect::Live
        | Effect::Wait
        | Effect::StopAndWait
        | Effect::NotAgain
        | Effect::Later => None,
    }
}
