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

/// A plan whose preview is made, to be applied now.
#[derive(Debug)]
pub(crate) struct Previewed {
    pub(crate) plan: Box<Plan>,
    pub(crate) preview: Box<ReloadPreview>,
    /// The preview, for people.
    pub(crate) changes: Changes,
    pub(crate) caller: oneshot::Sender<Result<Applied, Refusal>>,
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
    pub(crate) fn begin(
        &self,
        node: Node,
        now: Now,
        plan: Box<Plan>,
        caller: oneshot::Sender<Result<Applied, Refusal>>,
    ) {
        let report = self.report.clone();
        spawn_blocking(move || match node.preview(now, &plan) {
            Ok(preview) => {
                let (changes, preview) = (view::changes(&preview), Box::new(preview));
                // Nobody listens only when the agent is gone.
                let _ = report.send(Previewed { plan, preview, changes, caller });
            }
            Err(refusal) => drop(caller.send(Err(refusal))),
        });
    }

    /// The next one. May be dropped at any time.
    pub(crate) async fn finished(&mut self) -> Previewed {
        self.done.recv().await.expect("this struct holds a sender")
    }
}
