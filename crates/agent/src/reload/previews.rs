//! Previews of plans, made outside the loop: a copy of the node tries the plan.

use super::Applied;
use crate::view;
use mainstay_core::{
    clock::Now,
    node::{Node, Refusal, ReloadPreview},
    plan::Plan,
};
use mainstay_wire::api::Changes;
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
};

/// So often a preview is made outside the loop for one plan.
const TRIES: u32 = 3;

/// A plan that somebody wants to be applied.
#[derive(Debug)]
pub(crate) struct WantedPlan {
    pub(crate) plan: Box<Plan>,
    pub(crate) caller: oneshot::Sender<Result<Applied, Refusal>>,
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

impl WantedPlan {
    pub(crate) fn new(
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Applied, Refusal>>,
    ) -> WantedPlan {
        WantedPlan { plan, caller, tries: 0 }
    }

    pub(crate) fn may_be_tried_again(&self) -> bool {
        self.tries < TRIES
    }

    /// With its preview; `None`: it is refused, and its caller knows.
    pub(crate) fn preview(mut self, node: &Node, now: Now) -> Option<Previewed> {
        self.tries += 1;
        match node.preview(now, &self.plan) {
            Ok(preview) => {
                let (changes, preview) = (view::changes(&preview), Box::new(preview));
                Some(Previewed { wanted: self, preview, changes })
            }
            Err(refusal) => {
                let _ = self.caller.send(Err(refusal));
                None
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Previews {
    done: mpsc::UnboundedReceiver<Previewed>,
    report: mpsc::UnboundedSender<Previewed>,
}

impl Previews {
    pub(crate) fn new() -> Previews {
        let (report, done) = mpsc::unbounded_channel();
        Previews { done, report }
    }

    /// Answers what a plan would change.
    pub(crate) fn answer(
        node: Node,
        now: Now,
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Changes, Refusal>>,
    ) {
        spawn_blocking(move || {
            // Nobody is left only when the client went away.
            let _ = caller.send(node.preview(now, &plan).map(|preview| view::changes(&preview)));
        });
    }

    /// Finds out what a plan changes that is to be applied: it comes back by [`Previews::finished`].
    pub(crate) fn begin(&self, node: Node, now: Now, wanted: WantedPlan) {
        let report = self.report.clone();
        spawn_blocking(move || {
            if let Some(previewed) = wanted.preview(&node, now) {
                // Nobody listens only when the agent is gone.
                let _ = report.send(previewed);
            }
        });
    }

    /// The next one. May be dropped at any time.
    pub(crate) async fn finished(&mut self) -> Previewed {
        self.done.recv().await.expect("this struct holds a sender")
    }
}
