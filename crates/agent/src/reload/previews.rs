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

/// So often a preview is made of one plan.
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
    #[error("the node has moved on under each of {0} previews of the plan; try again")]
    Stale(u32),
}

impl WantedPlan {
    pub(crate) fn new(
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Applied, PreviewError>>,
    ) -> WantedPlan {
        WantedPlan { plan: plan.into(), caller, tries: 0 }
    }

    /// With its preview; `None`: it is refused, and its caller knows.
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

    /// The node has moved on since the preview of this plan was made: it is made anew, a few times.
    /// A node that never rests refuses the plan then: its loop has no time for a preview.
    pub(crate) fn begin_again(&self, node: &Node, now: Now, wanted: WantedPlan) {
        match wanted.tries < TRIES {
            true => self.begin(node, now, wanted),
            false => drop(wanted.caller.send(Err(PreviewError::Stale(wanted.tries)))),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_config::Context;
    use mainstay_core::{
        clock::Mono,
        name::Name,
        node::{Input, Request},
    };
    use std::time::Duration;
    use tokio::{sync::oneshot::error::TryRecvError, time::timeout};

    const AT: Now = Now { mono: Mono(0), wall: 0 };

    fn plan(text: &str) -> Box<Plan> {
        let loaded = mainstay_config::parse("m.toml", text, &Context::default()).expect("valid");
        Box::new(mainstay_import::located(loaded))
    }

    /// The job is taken down and up again by somebody else, as often as a preview is made.
    #[tokio::test]
    async fn a_node_that_never_rests_refuses_a_plan_after_some_previews() {
        let mut node = Node::new(*plan("[jobs.web]\nexec = \"web\"\n"));
        node.step(AT, Input::Boot);
        let web = || Name::new("web").expect("a name");
        let (caller, mut answer) = oneshot::channel();
        let mut previews = Previews::new();
        let wanted = WantedPlan::new(plan("[jobs.web]\nexec = \"web --new\"\n"), caller);
        previews.begin(&node, AT, wanted);
        for round in 0..TRIES {
            let finished = timeout(Duration::from_secs(60), previews.finished());
            let Previewed { wanted, preview, .. } = finished.await.expect("in time");
            assert!(node.is_current(&preview, &wanted.plan), "nothing has happened yet");
            let request = match round % 2 {
                0 => Request::Stop { job: web() },
                _ => Request::Start { jobs: vec![web()], args: None, now: false },
            };
            node.step(AT, Input::Request(request));
            assert!(!node.is_current(&preview, &wanted.plan), "the job is told something else now");
            assert!(matches!(answer.try_recv(), Err(TryRecvError::Empty)), "it is tried again");
            previews.begin_again(&node, AT, wanted);
        }
        // At once, and without a preview that the loop has made.
        let refused = answer.try_recv().expect("it is answered").expect_err("it is refused");
        assert!(matches!(refused, PreviewError::Stale(TRIES)), "{refused}");
        assert!(previews.done.try_recv().is_err(), "no other preview is on its way");
    }
}
