//! Commands that the rollout has run by the keeper, and what comes of them: whatever they say may
//! hold a secret that they were given in a file.

use super::perform::Performers;
use mainstay_core::{
    exit::Exit,
    rollout::{Op, ProbeOutcome, RolloutInput, Trouble},
    task::TaskOutcome,
};
use mainstay_pool::ROLLOUT;
use mainstay_rollout::{service::request_count, store::Store};

/// So many of its last lines are told of a command that has failed.
const MOST_LINES: usize = 5;

/// What a task of the rollout is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskPurpose {
    Check,
    Reload,
    Probe,
    Hook,
    /// Prints what an instance has counted: a part each.
    Count,
}

/// The part of a comparison that is about the new instance, and about the old one.
pub(super) const NEW: u8 = 1;
pub(super) const OLD: u8 = 2;

/// A task of the rollout, within a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RolloutTask {
    pub(crate) op: Op,
    pub(crate) part: u8,
}

impl From<Op> for RolloutTask {
    fn from(op: Op) -> RolloutTask {
        RolloutTask { op, part: 0 }
    }
}

impl Performers {
    /// A task is going to be run.
    pub(super) fn expect_task(&mut self, task: RolloutTask, purpose: TaskPurpose) {
        // Nobody waits for the tasks of an earlier operation any more, once others are run.
        self.counts.retain(|op, _| *op >= task.op);
        self.tasks.insert(task, purpose);
    }

    /// A task has ended; what came of it follows as an input.
    pub(super) fn task_done(&mut self, task: RolloutTask, outcome: TaskOutcome) {
        match self.tasks.remove(&task) {
            Some(TaskPurpose::Count) => self.counted(task, &outcome),
            Some(
                purpose @ (TaskPurpose::Check
                | TaskPurpose::Reload
                | TaskPurpose::Probe
                | TaskPurpose::Hook),
            ) => self.report_end(task.op, purpose, outcome),
            None => {}
        }
    }

    /// What an instance has counted; once both are there they are compared.
    fn counted(&mut self, RolloutTask { op, part }: RolloutTask, outcome: &TaskOutcome) {
        let count = match &outcome.exit {
            Exit::Code { code: 0 } => request_count(outcome.output.trim().as_bytes())
                .map_err(|error| Trouble(error.to_string())),
            exit => Err(Trouble(exit.to_string())),
        };
        let outcome = match (self.counts.remove(&op), part) {
            (None, _) => {
                self.counts.insert(op, count);
                return;
            }
            (Some(old), NEW) => ProbeOutcome::Requests { new: count, old },
            (Some(new), _) => ProbeOutcome::Requests { new, old: count },
        };
        self.answer(async move { RolloutInput::Probed { op, outcome } });
    }

    pub(super) fn report_end(&self, op: Op, purpose: TaskPurpose, outcome: TaskOutcome) {
        let store = self.store.clone();
        self.answer(async move { input(op, purpose, verdict(&store, outcome).await) });
    }
}

async fn verdict(store: &Store, outcome: TaskOutcome) -> Result<(), Trouble> {
    let TaskOutcome { exit, output, truncated: _ } = outcome;
    if exit == (Exit::Code { code: 0 }) {
        return Ok(());
    }
    // The keeper leaves no half of a line, which could be half of a secret.
    let said = masked(store, last_lines(output.trim())).await;
    match said.is_empty() {
        true => Err(Trouble(exit.to_string())),
        false => Err(Trouble(format!("{exit}: {said}"))),
    }
}

fn input(op: Op, purpose: TaskPurpose, outcome: Result<(), Trouble>) -> RolloutInput {
    match purpose {
        TaskPurpose::Check => RolloutInput::Checked { op, outcome },
        TaskPurpose::Reload => RolloutInput::Told { op, outcome },
        TaskPurpose::Hook => {
            if let Err(trouble) = &outcome {
                tracing::error!("on_failure: {trouble}");
            }
            RolloutInput::HookDone { op, outcome }
        }
        TaskPurpose::Probe | TaskPurpose::Count => {
            let outcome = match outcome {
                Ok(()) => ProbeOutcome::Passed,
                Err(trouble) => ProbeOutcome::Failed(trouble),
            };
            RolloutInput::Probed { op, outcome }
        }
    }
}

/// A text without the secrets of any version that is stored; nothing of it if they are not known.
pub(super) async fn masked(store: &Store, text: String) -> String {
    if text.is_empty() {
        return text;
    }
    let store = store.clone();
    match ROLLOUT.run(move || store.mask().map(|mask| mask.apply(&text))).await {
        Ok(Ok(masked)) => masked,
        Ok(Err(unknown)) => {
            tracing::warn!("what a command has said is not shown: {unknown}");
            String::new()
        }
        Err(unserved) => {
            tracing::warn!("what a command has said is not shown: {unserved}");
            String::new()
        }
    }
}

/// What is most likely to say why.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(MOST_LINES)..].join("; ")
}
