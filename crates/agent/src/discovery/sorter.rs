//! Instances in the order in which they are kept: a long list is sorted outside the loop.

use mainstay_core::{discovery::Instance, name::Name};
use mainstay_pool::COMPUTE;
use tokio::sync::mpsc;

type Answer = (Name, Vec<Instance>);

/// Answers about watches, in the order in which they came.
#[derive(Debug)]
pub(super) struct Sorter {
    answers: mpsc::UnboundedSender<Answer>,
    sorted: mpsc::UnboundedReceiver<Answer>,
}

impl Sorter {
    /// Must be called inside the runtime.
    pub(super) fn start() -> Sorter {
        let (answers, mut queue) = mpsc::unbounded_channel::<Answer>();
        let (done, sorted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some((watch, mut instances)) = queue.recv().await {
                let done = done.clone();
                let sort = move || {
                    instances.sort();
                    instances.dedup();
                    // Nobody listens only when the agent is gone.
                    let _ = done.send((watch, instances));
                };
                // The next answer of this watch says it again.
                if let Err(unserved) = COMPUTE.run(sort).await {
                    tracing::error!("an answer of service discovery is dropped: {unserved}");
                }
            }
        });
        Sorter { answers, sorted }
    }

    pub(super) fn sort(&self, watch: Name, instances: Vec<Instance>) {
        // The task ends with the runtime only.
        let _ = self.answers.send((watch, instances));
    }

    /// The next answer. May be dropped at any time.
    pub(super) async fn sorted(&mut self) -> Answer {
        match self.sorted.recv().await {
            Some(answer) => answer,
            // The task ends with the runtime only.
            None => std::future::pending().await,
        }
    }
}
