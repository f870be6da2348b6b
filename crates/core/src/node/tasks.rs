//! Tasks as the node sees them: whom their outcome concerns, and which are said again.

use super::{Node, NodeStage, Refusal};
use crate::{
    event::{Kind, Outbox, Source},
    job::JobInput,
    name::Name,
    node::Command,
    task::{MAX_INPUT, OpenTask, TaskId, TaskKind, TaskOutcome, TaskOwner, TaskSpec},
};
use std::time::Duration;

/// What an event says of a task's output.
const OUTPUT_TOLD: usize = 4 << 10;

impl Node {
    pub(super) fn run_node_task(
        &mut self,
        out: &mut Outbox,
        purpose: String,
        timeout: Duration,
        task: Box<TaskSpec>,
    ) -> Result<(), Refusal> {
        if task.input.0.len() > MAX_INPUT {
            return Err(Refusal::InputTooLong(task.input.0.len()));
        }
        if let NodeStage::Stopping(_) = self.state.stage {
            return Err(Refusal::NodeStopping);
        }
        let owner = TaskOwner::Node { purpose };
        if out.tasks.find(&owner).is_some() {
            return Err(Refusal::TaskUnderWay);
        }
        let deadline = out.now.mono.after(timeout);
        out.run_task(OpenTask { owner, deadline, spec: Some(task) });
        Ok(())
    }

    /// The number of the reload of a job, while that is under way.
    #[must_use]
    pub fn open_reload(&self, job: &Name) -> Option<u64> {
        let incarnation = self.job(job.as_str())?.incarnation();
        let owner = TaskOwner::Job { job: job.clone(), incarnation, kind: TaskKind::Reload };
        self.tasks.find(&owner).map(|id| id.number)
    }

    /// The end of a task, told to its owner the first time that it is heard of.
    pub(super) fn task_done(&mut self, out: &mut Outbox, id: &TaskId, outcome: TaskOutcome) {
        let Some(TaskId { number, owner }) = out.tasks.find_same(id) else { return };
        out.tasks.edit().close(number);
        match owner {
            TaskOwner::Job { job, incarnation, kind: TaskKind::StopExec } => {
                self.tell_job(out, &job, JobInput::StopExecDone { incarnation });
            }
            TaskOwner::Job { job, kind: TaskKind::Reload, .. } => {
                let ended = ended(number, "reload".to_owned(), outcome);
                out.emit(Source::Job(job), ended);
            }
            // The agent asks for it and makes a verdict of its outcome.
            TaskOwner::Job { kind: TaskKind::Check(_), .. } => {}
            // The agent's affair: none is journaled.
            TaskOwner::Rollout { .. } => {}
            TaskOwner::Node { purpose } => {
                out.emit(Source::NODE, ended(number, purpose, outcome));
            }
        }
    }

    /// Says every open task again: the keeper may not have heard of it. A stop that has gone on
    /// without its command has no use for it.
    pub(super) fn resume_tasks(&mut self, out: &mut Outbox) {
        let said: Vec<u64> = out.commands.iter().filter_map(number_of).collect();
        out.tasks.edit().retain(|number, task| match &task.owner {
            TaskOwner::Job { kind: TaskKind::StopExec, .. } => said.contains(&number),
            TaskOwner::Job { kind: TaskKind::Reload | TaskKind::Check(_), .. }
            | TaskOwner::Node { .. }
            | TaskOwner::Rollout { .. } => true,
        });
        let unsaid: Vec<OpenTask> = out
            .tasks
            .all()
            .filter(|(number, _)| !said.contains(number))
            .map(|(_, task)| task.clone())
            .collect();
        for task in unsaid {
            out.run_task(task);
        }
    }
}

fn number_of(command: &Command) -> Option<u64> {
    match command {
        Command::RunTask { id, .. } => Some(id.number),
        _ => None,
    }
}

fn ended(number: u64, task: String, outcome: TaskOutcome) -> Kind {
    let TaskOutcome { exit, mut output, .. } = outcome;
    output.truncate(output.floor_char_boundary(OUTPUT_TOLD));
    Kind::TaskEnded { number, task, exit, output }
}
