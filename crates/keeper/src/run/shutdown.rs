//! The end of a run: everything is killed, strays too, and then the keeper goes.

use crate::{
    event_loop::deadline::Deadline,
    keeper::Keeper,
    process::{job::Job, tree},
};
use mainstay_core::exit::Asked;
use mainstay_sys::{cgroup::Group, signal};
use mainstay_wire::link::{Figures, ToAgent};
use std::time::Duration;

/// What the last steps of a run may take.
const LAST: Duration = Duration::from_millis(1500);

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
        let Some(node) = self.node() else { return };
        if node.stopping_alone && node.ending.is_none() && self.running().is_empty() {
            self.end_own_stop();
        }
        let Some(code) = self.node().and_then(|node| node.ending) else { return };
        if !self.running().is_empty() || !self.tasks.is_empty() {
            return;
        }
        let strays = tree::adopted(|pid| self.children.contains_key(&pid));
        for stray in &strays {
            let _ = signal::send(*stray, tree::KILL);
            if self.node().is_some_and(|node| node.strays.insert(*stray)) {
                let command = mainstay_sys::proc::command(*stray);
                self.log(format!("killed a stray process: {stray} {command}"));
                self.send(&ToAgent::StrayKilled { pid: *stray, command });
            }
        }
        if !strays.is_empty() {
            return;
        }
        // It has said its last output before it asked for the end.
        self.kill_agent();
        self.exit = Some(code);
    }

    /// The last steps took too long.
    pub(crate) fn last(&mut self) {
        let Some(node) = self.node() else { return };
        let Some(code) = node.ending else { return };
        for (id, _) in self.running() {
            if let Some(job) = self.jobs.get(&id) {
                self.log(format!("{} cannot be killed: it is left behind", job.name));
            }
        }
        self.kill_agent();
        self.clients.clear();
        self.exit = Some(code);
    }
}
