//! The end of a run: everything is killed, strays too, and then the keeper goes.

use crate::{
    event_loop::deadline::Deadline,
    keeper::{Child, Hold, Keeper, Role},
    output::Output,
    process::{job::Job, tree},
};
use mainstay_core::exit::Asked;
use mainstay_sys::{cgroup::Group, clock, signal};
use mainstay_wire::link::{Figures, ToAgent};
use std::time::Duration;

/// What the last steps of a run may take.
pub(crate) const LAST: Duration = Duration::from_millis(1500);

impl Keeper {
    pub(crate) fn figures(&mut self) -> Figures {
        let strays = self.strays();
        let mut figures = Figures {
            version: crate::VERSION.to_owned(),
            pid: signal::own_pid(),
            strays,
            forks: mainstay_sys::spawn::forks(),
            ..Figures::default()
        };
        if let Some(output) = self.output() {
            figures.logs = output.figures();
            figures.forward_dropped = output.forward_dropped();
        }
        figures
    }

    fn strays(&self) -> Vec<mainstay_wire::link::Stray> {
        let adopted = tree::adopted(|pid| self.children.contains_key(&pid));
        if adopted.is_empty() {
            return Vec::new();
        }
        let group = |job: &Job| job.process.as_ref()?.tree.group().map(Group::procs);
        let trees = self.tasks.values().map(|task| &task.tree);
        let trees = trees.chain(self.leftovers.iter().map(|left| &left.tree));
        let of_tasks = trees.filter_map(|tree| tree.group().map(Group::procs));
        let groups = self.jobs.values().filter_map(group).chain(of_tasks);
        let in_cgroups = groups.flatten().collect();
        let live = |name: &str| {
            let id = self.names.get(name);
            id.and_then(|id| self.jobs.get(id)).is_some_and(|job| job.process.is_some())
        };
        tree::strays(&adopted, &self.context.run, &in_cgroups, live)
    }

    /// The run ends: everything is killed; the loop goes on until it is gone.
    pub(crate) fn end(&mut self, code: i32) {
        let Some(node) = self.node() else { return };
        if node.ending.replace(code).is_some() {
            return;
        }
        self.kill_spare();
        for (id, incarnation) in self.running() {
            self.kill_id(id, incarnation, Asked::Kill);
        }
        for id in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.kill_task(id);
        }
        self.close_idle_controls();
        self.deadlines.after(LAST, Deadline::Last);
    }

    /// Leaves when nothing is left: jobs first, then strays, then the agent, which ends by itself.
    pub(crate) fn try_end(&mut self) {
        let Some(node) = self.node() else { return self.try_end_hold() };
        if node.stopping_alone && node.ending.is_none() && self.running().is_empty() {
            self.end_own_stop();
        }
        let Some(code) = self.node().and_then(|node| node.ending) else { return };
        if self.node().is_some_and(|node| node.last_output.is_some()) {
            return self.write_last_output(code);
        }
        if !self.running().is_empty() || !self.tasks.is_empty() {
            return;
        }
        if self.children.values().any(|child| *child == Child::Spare) {
            return;
        }
        let strays = self.kill_strays();
        for stray in &strays {
            if self.node().is_some_and(|node| node.strays.insert(*stray)) {
                let command = mainstay_sys::proc::command(*stray);
                self.log(format!("killed a stray process: {stray} {command}"));
                self.send(&ToAgent::StrayKilled { pid: *stray, command });
            }
        }
        if !strays.is_empty() {
            return;
        }
        self.write_last_output(code);
    }

    /// Kills adopted orphans; those it found, who may not be dead yet.
    fn kill_strays(&self) -> Vec<u32> {
        let strays = tree::adopted(|pid| self.children.contains_key(&pid));
        for stray in &strays {
            let _ = signal::send(*stray, tree::KILL);
        }
        strays
    }

    /// Whatever the command has left is ours, and goes with us.
    fn try_end_hold(&mut self) {
        let Role::Hold(Hold { ending: Some(code), .. }) = self.role else { return };
        if self.exit.is_none() && self.kill_strays().is_empty() {
            self.exit = Some(code);
        }
    }

    /// The last steps took too long.
    pub(crate) fn last(&mut self) {
        if let Role::Hold(Hold { ending: Some(code), .. }) = self.role {
            if self.exit.is_none() {
                self.log("what the command has left cannot be killed: it is left behind");
            }
            self.exit = Some(code);
        }
        let Some(code) = self.node().and_then(|node| node.ending) else { return };
        for (id, _) in self.running() {
            if let Some(job) = self.jobs.get(&id) {
                self.log(format!("{} cannot be killed: it is left behind", job.name));
            }
        }
        self.clients.clear();
        self.write_last_output(code);
    }

    /// Nothing is left to be kept: leaves once the logs are written, or cannot be.
    fn write_last_output(&mut self, code: i32) {
        let Keeper { role: Role::Node(node), deadlines, .. } = self else { return };
        if node.last_output.is_none() {
            node.last_output = Some(LastOutput::new(node.stop_asked, node.stop_timeout));
            deadlines.after(LOOK_AGAIN, Deadline::LastOutput);
            // It has said its last words before it asked for the end.
            self.forget_agent();
        }
        let agent_lives = self.children.values().any(|child| *child == Child::Agent);
        let Some(node) = self.node() else { return };
        let (output, impatient) = (&node.resources.output, node.impatient);
        let Some(last) = &mut node.last_output else { return };
        match last.look(output, agent_lives, impatient) {
            Looked::Written => self.exit = Some(code),
            Looked::NotYet => {}
            Looked::GaveUp => {
                self.log("the last output cannot be written: the disk of the logs does not answer");
                // It is forwarded at once, if somebody reads it.
                self.exit = Some(code);
            }
        }
    }

    pub(crate) fn look_at_last_output(&mut self) {
        if self.exit.is_none() {
            self.deadlines.after(LOOK_AGAIN, Deadline::LastOutput);
        }
    }
}

/// How often it is looked whether the last output is written.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A disk that takes nothing for so long takes nothing.
const NO_PROGRESS: u64 = 2_000_000_000;
/// All that the last output may take.
const LONGEST: u64 = 10_000_000_000;
/// After the time that a stop may take.
const AFTER_STOP: u64 = 500_000_000;
/// The agent was killed: so long it may take to die before its last words do not count.
const AGENT_DIES: u64 = 300_000_000;

/// The last output of a run on its way to the files. All times: CLOCK_BOOTTIME, ns.
#[derive(Debug)]
pub(crate) struct LastOutput {
    begun: u64,
    /// It is left as it is then.
    until: u64,
    asked_for: bool,
    progress: u64,
    progressed: u64,
}

enum Looked {
    Written,
    NotYet,
    GaveUp,
}

impl LastOutput {
    fn new(stop_asked: Option<u64>, stop_timeout: Duration) -> LastOutput {
        let now = clock::boottime();
        let timeout = u64::try_from(stop_timeout.as_nanos()).unwrap_or(u64::MAX);
        let until = match stop_asked {
            Some(asked) => asked.saturating_add(timeout).max(now).saturating_add(AFTER_STOP),
            None => now + LONGEST,
        };
        LastOutput { begun: now, until, asked_for: false, progress: 0, progressed: now }
    }

    fn look(&mut self, output: &Output, agent_lives: bool, impatient: bool) -> Looked {
        let now = clock::boottime();
        if !self.asked_for {
            if agent_lives && now < self.begun + AGENT_DIES {
                return Looked::NotYet;
            }
            self.asked_for = true;
            output.finish();
        }
        let progress = output.progress();
        if progress != self.progress {
            (self.progress, self.progressed) = (progress, now);
        }
        let stuck = now.saturating_sub(self.progressed) >= NO_PROGRESS;
        if output.is_finished() {
            Looked::Written
        } else if now >= self.until || stuck || (impatient && output.hangs()) {
            Looked::GaveUp
        } else {
            Looked::NotYet
        }
    }
}
