//! Running tasks for the agent.
//!
//! A task has a tree as a job has: a cgroup of its own, else its process group and the adopted
//! orphans that carry its cookie. It is killed as a whole at the end of the task or of its time;
//! what came of the task is told at once, and its left-overs are looked after until they are gone.

use crate::{
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Child, Keeper},
    output::CheckLines,
    process::{
        exec_error::ExecContext,
        launch::{self, RunContext},
        task::{CapturedOutput, Leftover, Task},
        tree::{self, Leader, Tree},
    },
};
use mainstay_core::{
    exit::Exit,
    signal::Signal,
    task::{Bytes, TaskOutcome},
};
use mainstay_sys::{
    cookie,
    reap::{self, ExitStatus},
    spawn::{Descriptors, Failure, IntoCgroup},
};
use mainstay_wire::{
    link::ToAgent,
    task::{RunTask, TaskDone, TaskKey},
};
use rustix::fs::MemfdFlags;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

/// EBUSY.
const BUSY: i32 = 16;

impl Keeper {
    /// Starts it, unless it runs or ran already: an agent that came back asks again, and hears
    /// what came of it.
    pub(crate) fn run_task(&mut self, run: &RunTask) {
        let over = self.node().is_some_and(|node| node.outcomes.identify(&run.id));
        let running = self.tasks.values_mut().find(|task| task.id.is_same(&run.id));
        if let Some(task) = running {
            task.id.clone_from(&run.id);
            return;
        }
        if over {
            return;
        }
        if self.has_left_something(&run.id) {
            let error = "what its last run has started has not ended".to_owned();
            let outcome = TaskOutcome::error(error, BUSY);
            return self.task_done(TaskDone { id: run.id.clone(), outcome });
        }
        let id = self.fresh_id();
        match self.start_task(id, run) {
            Ok(task) => {
                if let Some(pipe) = &task.output.pipe {
                    let _ = self.poller.add(pipe, Source::Task, id, Interest::Read);
                }
                self.children.insert(task.pid, Child::Task(id));
                self.deadlines
                    .after(Duration::from_millis(run.timeout_ms), Deadline::Task { task: id });
                self.tasks.insert(id, task);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let outcome = TaskOutcome::error(format!("cannot start the task: {error}"), errno);
                self.task_done(TaskDone { id: run.id.clone(), outcome });
            }
        }
    }

    /// A check of which somebody is left would leave another one each time it is asked.
    fn has_left_something(&mut self, check: &TaskKey) -> bool {
        let same = |left: &Leftover| left.id.as_ref().is_some_and(|id| id.is_same_check(check));
        if self.leftovers.iter().any(same) {
            self.clear_leftovers();
        }
        self.leftovers.iter().any(same)
    }

    fn start_task(&mut self, id: u64, run: &RunTask) -> io::Result<Task> {
        let cookie = (cookie::TASK.to_owned(), id.to_string());
        let program = self.context.program(&run.exec, run.job.as_ref(), &[cookie])?;
        let (read, write) = launch::pipe()?;
        let input = if run.input.is_empty() { None } else { Some(input_file(&run.input)?) };
        let stdin = input.as_ref().unwrap_or(&self.context.null);
        let stdio = Some([stdin.as_fd(), write.as_fd(), write.as_fd()]);
        let group = self.context.cgroup.as_ref().and_then(|root| root.task(id).ok());
        let open = group.as_ref().and_then(|group| Some((group, group.open().ok()?)));
        let into = open.as_ref().and_then(|(group, fd)| {
            Some(IntoCgroup { group: fd.as_fd(), procs: launch::c_path(&group.procs_file()).ok()? })
        });
        let descriptors = Descriptors { stdio, extra: Vec::new(), placed: None };
        let cloned = self.context.window.spawn(&program, &descriptors, into.as_ref());
        let entered = cloned.as_ref().is_ok_and(|cloned| cloned.in_group);
        if let Some(group) = group.as_ref().filter(|_| !entered) {
            group.remove();
        }
        let cloned = cloned?;
        Ok(Task {
            id: run.id.clone(),
            ends_with: run.ends_with.clone(),
            pid: cloned.pid,
            tree: Tree::new(group.filter(|_| entered)),
            failure: Some(cloned.failure),
            output: CapturedOutput::from(read),
            timed_out: false,
            forward: run.forward.clone(),
            job: run.job.clone(),
            exec_context: ExecContext::new(&run.exec, &program),
        })
    }

    pub(crate) fn task_ready(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if !task.output.read()
            && let Some(pipe) = task.output.pipe.take()
        {
            self.poller.remove(&pipe);
        }
    }

    pub(crate) fn task_late(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.timed_out = true;
            self.kill_task(id);
        }
    }

    /// Nobody wants to know any more whether a job that has died is well.
    pub(crate) fn cancel_checks(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let ended = Some((&job.name, job.highest));
        let checks = self.tasks.iter().filter(|(_, task)| {
            task.ends_with.as_ref().map(|(job, incarnation)| (job, *incarnation)) == ended
        });
        for id in checks.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.kill_task(id);
        }
    }

    pub(crate) fn kill_task(&mut self, id: u64) {
        let Keeper { tasks, children, context, .. } = self;
        if let Some(task) = tasks.get_mut(&id) {
            let pid = task.pid;
            task.tree.kill(Leader::Held(pid), || orphans_of(id, children, context));
        }
    }

    /// Kills what is still there of tasks that have ended, and forgets those of which nothing is.
    pub(crate) fn clear_leftovers(&mut self) {
        let Keeper { leftovers, children, context, .. } = self;
        leftovers.retain_mut(|Leftover { task, id: _, pid, tree }| {
            let orphans = || orphans_of(*task, children, context);
            let gone = tree.gone(*pid, orphans);
            match tree.group().filter(|_| gone) {
                Some(group) => group.remove(),
                None if !gone => tree.kill(Leader::Reaped(*pid), orphans),
                None => {}
            }
            !gone
        });
    }

    pub(crate) fn task_died(&mut self, id: u64, pid: u32) {
        // Not yet reaped: its pid still names its group. Most leave nothing behind.
        let alone = self
            .tasks
            .get(&id)
            .and_then(|task| task.tree.group())
            .is_some_and(|group| !group.populated());
        if !alone {
            self.kill_task(id);
        }
        let how = reap::reap(pid).map_or(ExitStatus::Code(1), |death| death.how);
        let Some(mut task) = self.tasks.remove(&id) else { return };
        task.output.read_rest();
        if let Some(pipe) = &task.output.pipe {
            self.poller.remove(pipe);
        }
        let mut bytes = [0; 16];
        let failed =
            task.failure.as_ref().and_then(|failure| rustix::io::read(failure, &mut bytes).ok());
        let exit = match (failed.and_then(|count| Failure::from_bytes(&bytes[..count])), how) {
            (Some(failed), _) => Exit::error(task.exec_context.describe(failed), failed.errno),
            (None, ExitStatus::Code(code)) => Exit::Code { code },
            (None, ExitStatus::Signal(_)) if task.timed_out => {
                Exit::Error { error: "its time was up: it was killed".to_owned(), errno: 110 }
            }
            (None, ExitStatus::Signal(number)) => Exit::Signal {
                signal: Signal::from_number(number).unwrap_or(Signal::KILL),
                oom: false,
            },
        };
        self.forward_output(&mut task);
        let left = Leftover { task: id, id: Some(task.id.clone()), pid, tree: task.tree };
        self.leftovers.push(left);
        self.clear_leftovers();
        let (output, truncated) = task.output.to_text();
        let outcome = TaskOutcome { exit, output, truncated };
        self.task_done(TaskDone { id: task.id, outcome });
    }

    /// What a check has written, if that is wanted among the lines of its job.
    fn forward_output(&mut self, task: &mut Task) {
        let (Some(log), Some(job)) = (task.forward.take(), task.job.take()) else { return };
        if let (Some(node), false) = (self.node(), task.output.is_empty()) {
            let text = task.output.kept().0.into_owned();
            node.resources.output.forward_check(CheckLines { job, pid: task.pid, log, text });
        }
    }

    fn task_done(&mut self, done: TaskDone) {
        self.send(&ToAgent::TaskDone(done.clone()));
        if let Some(node) = self.node() {
            node.outcomes.add(done);
        }
    }
}

/// What a task reads on stdin, as a file: it is there as a whole, and nobody waits for a reader.
fn input_file(input: &Bytes) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("mainstay-task-input", flags)?);
    file.write_all(&input.0)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Adopted orphans that a task has started.
fn orphans_of(task: u64, children: &HashMap<u32, Child>, context: &RunContext) -> Vec<u32> {
    let adopted = tree::adopted(|pid| children.contains_key(&pid));
    let own = |pid: &u32| cookie::of_task(*pid, &context.run) == Some(task);
    adopted.into_iter().filter(own).collect()
}
