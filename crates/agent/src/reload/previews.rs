//! Previews of plans, made outside the loop: a copy of the node tries the plan.

use super::Applied;
use crate::view;
use mainstay_core::{
    clock::Now,
    node::{Node, Refusal, ReloadPreview},
    plan::Plan,
    record::Encoded,
};
use mainstay_pool::{COMPUTE, Unserved};
use mainstay_wire::api::Changes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// So often a preview is made outside the loop for one plan.
const TRIES: u32 = 3;
/// Copies of the node at a time: each is as large as the node.
const COPIES: usize = 4;

/// A plan that somebody wants to be applied.
#[derive(Debug)]
pub(crate) struct WantedPlan {
    pub(crate) plan: Encoded<Plan>,
    pub(crate) caller: oneshot::Sender<Result<Applied, PreviewError>>,
    /// How many previews were made of it.
    tries: u32,
}

/// A plan whose preview is made, to be applied now.
#[derive(Debug)]
pub(crate) struct Previewed {
    pub(crate) wanted: WantedPlan,
    pub(crate) preview: Box<ReloadPreview>,
    /// The preview, for people.
    pub(crate) changes: Changes,
}

/// Why there is no preview of a plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreviewError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

impl WantedPlan {
    pub(crate) fn new(
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Applied, PreviewError>>,
    ) -> WantedPlan {
        WantedPlan { plan: plan.into(), caller, tries: 0 }
    }

    pub(crate) fn may_be_tried_again(&self) -> bool {
        self.tries < TRIES
    }

    /// With its preview; `None`: it is refused, and its caller knows.
    pub(crate) fn preview(self, node: &Node, now: Now) -> Option<Previewed> {
        let WantedPlan { plan, caller, tries } = self;
        WantedPlan::tried(preview(node, now, plan), caller, tries)
    }

    fn tried(
        tried: Result<Tried, PreviewError>,
        caller: oneshot::Sender<Result<Applied, PreviewError>>,
        tries: u32,
    ) -> Option<Previewed> {
        match tried {
            Ok((plan, changes, preview)) => {
                let wanted = WantedPlan { plan, caller, tries: tries + 1 };
                Some(Previewed { wanted, preview, changes })
            }
            Err(error) => {
                let _ = caller.send(Err(error));
                None
            }
        }
    }
}

/// A plan, what it would change, and how.
type Tried = (Encoded<Plan>, Changes, Box<ReloadPreview>);

fn preview(node: &Node, now: Now, plan: Encoded<Plan>) -> Result<Tried, PreviewError> {
    let preview = node.preview(now, &plan)?;
    Ok((plan, view::changes(&preview), Box::new(preview)))
}

/// As [`preview`], of a plan that is journaled next, unless there is nothing new in it.
fn preview_to_apply(node: &Node, now: Now, plan: Encoded<Plan>) -> Result<Tried, PreviewError> {
    let (plan, changes, preview) = preview(node, now, plan)?;
    let plan = if preview.is_unchanged() { plan } else { plan.encode() };
    Ok((plan, changes, preview))
}

#[derive(Debug)]
pub(crate) struct Previews {
    copies: Arc<Semaphore>,
    done: mpsc::UnboundedReceiver<Previewed>,
    report: mpsc::UnboundedSender<Previewed>,
}

impl Previews {
    pub(crate) fn new() -> Previews {
        let (report, done) = mpsc::unbounded_channel();
        Previews { copies: Arc::new(Semaphore::new(COPIES)), done, report }
    }

    /// Answers what a plan would change.
    pub(crate) fn answer(
        &self,
        node: &Node,
        now: Now,
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Changes, PreviewError>>,
    ) {
        let copy = self.copy(node);
        tokio::spawn(async move {
            let changes = async {
                let (_, changes, _) =
                    copy?.run(move |node| preview(node, now, plan.into())).await?;
                Ok(changes)
            };
            // Nobody is left only when the client went away.
            let _ = caller.send(changes.await);
        });
    }

    /// Finds out what a plan changes that is to be applied: it comes back by [`Previews::finished`].
    pub(crate) fn begin(&self, node: &Node, now: Now, wanted: WantedPlan) {
        let (copy, report) = (self.copy(node), self.report.clone());
        let WantedPlan { plan, caller, tries } = wanted;
        tokio::spawn(async move {
            let tried = async { copy?.run(move |node| preview_to_apply(node, now, plan)).await };
            if let Some(previewed) = WantedPlan::tried(tried.await, caller, tries) {
                // Nobody listens only when the agent is gone.
                let _ = report.send(previewed);
            }
        });
    }

    fn copy(&self, node: &Node) -> Result<NodeCopy, Unserved> {
        let full = |_| Unserved::Full { what: "try a plan" };
        let counted = self.copies.clone().try_acquire_owned().map_err(full)?;
        Ok(NodeCopy { node: node.clone(), _counted: counted })
    }

    /// The next one. May be dropped at any time.
    pub(crate) async fn finished(&mut self) -> Previewed {
        self.done.recv().await.expect("this struct holds a sender")
    }
}

/// A copy of the node, counted for as long as it is there.
struct NodeCopy {
    node: Node,
    _counted: OwnedSemaphorePermit,
}

impl NodeCopy {
    /// Tries a plan with it, outside the loop.
    async fn run(
        self,
        work: impl FnOnce(&Node) -> Result<Tried, PreviewError> + Send + 'static,
    ) -> Result<Tried, PreviewError> {
        COMPUTE.run(move || work(&self.node)).await?
    }
}
