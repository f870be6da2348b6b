//! Running tasks for the agent.

use crate::{
    attempt::Attempt,
    deadline::Deadline,
    keeper::{Child, Keeper},
    launch,
    poller::{Interest, Kind},
    task::{Task, TaskDone, Words},
    tree,
};
use mainstay_core::{exit::Exit, node::TaskKind, signal::Signal};
use mainstay_sys::{
    reap::{self, How},
    signal,
    spawn::{self, Descriptors, Failure},
};
use mainstay_wire::link::RunTask;
use std::{io, os::fd::AsFd, time::Duration};

/// Tasks whose outcome an agent without room for its journal does not acknowledge.
const DONE: usize = 64;

impl Keeper {
    /// Starts it, unless it runs or ran already: an agent that came back asks again, and hears
    /// what came of it.
    pub(crate) fn run_task(&mut self, run: &RunTask) {
        let over = self.node().is_some_and(|node| node.done.iter().any(|done| done.id == run.id));
        if over || self.tasks.values().any(|task| task.id == run.id) {
            return;
        }
        match self.start_task(run) {
            Ok(task) => {
                let id = self.fresh_id();
                if let Some(pipe) = &task.words.pipe {
                    let _ = self.poller.add(pipe, Kind::Task, id, Interest::Read);
                }
                self.children.insert(task.pid, Child::Task(id));
                self.deadlines
                    .after(Duration::from_millis(run.timeout_ms), Deadline::Task { task: id });
                self.tasks.insert(id, task);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let exit = Exit::Error { error: format!("cannot start the task: {error}"), errno };
                let (id, output) = (run.id.clone(), String::new());
                self.task_done(TaskDone { id, exit, output, truncated: false });
            }
        }
    }

    fn start_task(&mut self, run: &RunTask) -> io::Result<Task> {
        let program = self.ground.program(&run.exec, &run.id.job, &[])?;
        let (read, write) = launch::pipe()?;
        let stdio = Some([self.ground.null.as_fd(), write.as_fd(), write.as_fd()]);
        let cloned =
            spawn::spawn(&program, &Descriptors { stdio, extra: Vec::new(), placed: None }, None)?;
        Ok(Task {
            id: run.id.clone(),
            pid: cloned.pid,
            failure: Some(cloned.failure),
            words: Words::from(read),
            timed_out: false,
            attempt: Attempt::new(&run.exec, &program),
        })
    }

    pub(crate) fn task_ready(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if !task.words.read()
            && let Some(pipe) = task.words.pipe.take()
        {
            self.poller.remove(&pipe);
        }
    }

    pub(crate) fn task_late(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.timed_out = true;
            let _ = signal::send_group(task.pid, tree::KILL);
        }
    }

    /// Nobody wants to know any more whether a job that has died is well.
    pub(crate) fn cancel_checks(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let checks = self.tasks.values().filter(|task| {
            let of_check = match task.id.what {
                TaskKind::Check(_) => true,
                TaskKind::StopExec | TaskKind::Reload => false,
            };
            of_check && task.id.job == job.name && task.id.incarnation == job.highest
        });
        for task in checks {
            let _ = signal::send_group(task.pid, tree::KILL);
        }
    }

    pub(crate) fn task_died(&mut self, id: u64, pid: u32) {
        let _ = signal::send_group(pid, tree::KILL);
        let how = reap::reap(pid).map_or(How::Code(1), |death| death.how);
        let Some(mut task) = self.tasks.remove(&id) else { return };
        task.words.read_rest();
        if let Some(pipe) = &task.words.pipe {
            self.poller.remove(pipe);
        }
        let mut bytes = [0; 16];
        let failed =
            task.failure.as_ref().and_then(|failure| rustix::io::read(failure, &mut bytes).ok());
        let exit = match (failed.and_then(|count| Failure::from_bytes(&bytes[..count])), how) {
            (Some(failed), _) => {
                Exit::Error { error: task.attempt.describe(failed), errno: failed.errno }
            }
            (None, How::Code(code)) => Exit::Code { code },
            (None, How::Signal(_)) if task.timed_out => {
                Exit::Error { error: "its time was up: it was killed".to_owned(), errno: 110 }
            }
            (None, How::Signal(number)) => Exit::Signal {
                signal: Signal::from_number(number).unwrap_or(Signal::KILL),
                oom: false,
            },
        };
        let (output, truncated) = (task.words.to_text(), task.words.truncated);
        self.task_done(TaskDone { id: task.id, exit, output, truncated });
    }

    fn task_done(&mut self, done: TaskDone) {
        self.tell(&done.message());
        if let Some(node) = self.node() {
            if node.done.len() == DONE {
                node.done.remove(0);
            }
            node.done.push(done);
        }
    }
}
