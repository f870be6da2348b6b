//! What happens to a fleet, from outside.

use super::FleetWorld;
use crate::fleet::{
    Dialect,
    fault::{Fault, Written},
    net::Happening,
    scenario::name,
    sim_node::SimNode,
};
use mainstay_core::{
    fleet::{Catalogue, FleetInput, FleetRequest, Kept, NodeFacts},
    name::Name,
};
use std::{sync::Arc, time::Duration};

/// The machine that has what was on the disk of a node.
fn host_of_copy(node: &Name) -> Name {
    name(&format!("{node}-copy"))
}

impl FleetWorld {
    /// Something happens now.
    pub fn inflict(&mut self, fault: Fault) {
        self.note(format_args!("=== {fault}"));
        if fault.divides() {
            self.history().divided = true;
        }
        match fault {
            Fault::Crash(node) => self.crash(&node),
            Fault::Boot(node) => self.boot(&node),
            Fault::Reboot(node) => {
                self.crash(&node);
                self.boot(&node);
            }
            Fault::NewAgent(node) => self.replace_agent(&node),
            Fault::LoseJournal(node) => {
                if let Some(running) = self.running(&node).filter(|it| !it.ends) {
                    running.lose_journal();
                }
                self.replace_agent(&node);
            }
            Fault::Shutdown(node) => self.shut_down(&node, false),
            Fault::HandOver { node, on } => {
                self.hand_over(&node, on);
                if on {
                    let request = FleetRequest::HandOver { node: node.clone() };
                    self.tell(&node, FleetInput::Asked(request));
                }
            }
            Fault::Clone(node) => self.clone_node(&node),
            Fault::EndClone(node) => {
                let host = host_of_copy(&node);
                self.crash(&host);
                self.nodes.remove(&host);
            }
            Fault::Tear(node) => {
                self.history().torn.insert(node.clone());
                if let Some(it) = self.nodes.get_mut(&node) {
                    it.disk = Kept::default();
                }
            }
            Fault::Freeze(node) => {
                if let Some(running) = self.running(&node) {
                    running.frozen.get_or_insert_default();
                }
            }
            Fault::Thaw(node) => {
                let held = self.running(&node).and_then(|it| it.frozen.take());
                for what in held.unwrap_or_default() {
                    self.net.at(self.now, what);
                }
            }
            Fault::Slow { node, by } => {
                if let Some(running) = self.running(&node) {
                    running.late = Duration::from_millis(by);
                }
            }
            Fault::Cut { one, other, one_way } => {
                for (from, to) in one.iter().flat_map(|it| other.iter().map(move |to| (it, to))) {
                    self.net.cut(from, to);
                    if !one_way {
                        self.net.cut(to, from);
                    }
                }
            }
            Fault::Heal => self.net.heal(),
            Fault::Weather { loss, repeats, delay } => {
                (self.net.loss, self.net.repeats, self.net.delay) = (loss, repeats, delay);
            }
            Fault::JobCrash(job) => {
                let hosts: Vec<Name> = self.nodes.keys().cloned().collect();
                for node in hosts {
                    if self.running(&node).is_some_and(|it| it.crash(&job)) {
                        self.tell_jobs(&node);
                    }
                }
            }
            Fault::JobBreaks { job, on: true } => drop(self.broken.insert(job)),
            Fault::JobBreaks { job, on: false } => drop(self.broken.remove(&job)),
            Fault::StartHere { job, node } => {
                let known = self.nodes.get(&node).is_some_and(|it| it.file.jobs.contains_key(&job));
                let ends = self.running(&node).is_none_or(|it| it.ends);
                if known && !ends {
                    let at = self.now();
                    self.history().by_hand.push((at, job.clone()));
                    self.start_there(&node, None, job, Vec::new());
                }
            }
            Fault::StopHere { job, node } => {
                let done = self.running(&node).and_then(|it| it.stop_by_hand(&job));
                self.go_on_there(&node, job, done);
            }
            Fault::Reload { node, job, to } => self.reload(&node, &job, to),
            Fault::Ask { node, request } => self.tell(&node, FleetInput::Asked(request)),
        }
    }

    fn crash(&mut self, node: &Name) {
        if let Some(it) = self.nodes.get_mut(node) {
            it.running = None;
        }
        self.kill_rollout(node);
        self.history().orphan(node);
    }

    fn clone_node(&mut self, node: &Name) {
        let host = host_of_copy(node);
        let Some(it) = self.nodes.get(node).filter(|_| !self.nodes.contains_key(&host)) else {
            return;
        };
        let (disk, file) = (it.disk.clone(), it.file.clone());
        let copy = SimNode { copy_of: Some(node.clone()), disk, file, ..SimNode::default() };
        self.nodes.insert(host.clone(), copy);
        self.boot(&host);
    }

    /// Its agent is replaced by one of another version; the jobs go on.
    pub fn upgrade(&mut self, node: &Name, dialect: Option<Dialect>) {
        let version = if dialect.is_some() { "the next version" } else { "this version" };
        self.note(format_args!("=== {node} is upgraded to {version}"));
        if let Some(it) = self.nodes.get_mut(node) {
            it.dialect = dialect;
        }
        self.replace_agent(node);
    }

    /// What happened to the agent before and was not taken is lost; the jobs and their orders are
    /// the keeper's and the journal's.
    fn replace_agent(&mut self, name: &Name) {
        let Some(before) = self.running(name).filter(|it| !it.ends) else { return };
        let (run, clock) = (before.run, before.clock);
        let (jobs, again) = (std::mem::take(&mut before.jobs), std::mem::take(&mut before.again));
        let held = before.frozen.take().unwrap_or_default();
        self.history().orphan(name);
        let Some(mut agent) = self.new_agent(name, run, clock) else { return };
        (agent.jobs, agent.again) = (jobs, again);
        agent.fleet = agent.fleet.resuming(clock.shows(self.now));
        if let Some(node) = self.nodes.get_mut(name) {
            node.running = Some(Box::new(agent));
        }
        for what in held.into_iter().filter(Happening::outlives_an_agent) {
            self.net.at(self.now, what);
        }
        self.look(name);
        self.tell_jobs(name);
        self.kill_rollout(name);
        self.begin_rollout(name, true);
    }

    /// The others know that it ends; its jobs stop; then it goes.
    pub(super) fn shut_down(&mut self, node: &Name, again: bool) {
        let Some(running) = self.running(node).filter(|it| !it.ends && it.frozen.is_none()) else {
            return;
        };
        running.ends = true;
        let (run, id) = (running.run, running.fleet.said().map(|it| it.run.clone()));
        let jobs: Vec<Name> = running.jobs.keys().cloned().collect();
        self.history().ended.extend(id.map(|id| (node.clone(), id)));
        self.tell(node, FleetInput::Ending);
        self.end_rollout(node);
        for job in jobs {
            let done = self.running(node).and_then(|it| it.stop(None, &job));
            self.go_on_there(node, job, done);
        }
        // Its connections are closed when all that it said has arrived.
        let after = Duration::from_millis(80 + 2 * self.net.delay) + self.late(node);
        let node = node.clone();
        self.net.at(self.now.after(after), Happening::Off { node, run, again });
    }

    pub(super) fn leave(&mut self, node: &Name, again: bool) {
        if let Some(packet) = self.running(node).map(|it| it.mesh.leaves()) {
            self.spread(node, &packet);
        }
        self.crash(node);
        if again {
            self.boot(node);
        }
    }

    fn late(&mut self, node: &Name) -> Duration {
        self.running(node).map_or(Duration::ZERO, |it| it.late)
    }

    fn reload(&mut self, node: &Name, job: &Name, to: Written) {
        let Some(written) = self.scenario.catalogue.jobs.get(job).cloned() else { return };
        let Some(it) = self.nodes.get_mut(node) else { return };
        let mut file = Catalogue::clone(&it.file);
        match to {
            Written::AsElsewhere => drop(file.jobs.insert(job.clone(), written)),
            Written::Otherwise => {
                let written = mainstay_core::fleet::JobRules { definition: 2, ..written };
                file.jobs.insert(job.clone(), written);
            }
            Written::Not => drop(file.jobs.remove(job)),
        }
        if file == *it.file {
            return;
        }
        it.file = Arc::new(file);
        let file = it.file.clone();
        self.tell(node, FleetInput::Known(file));
    }

    /// What the nodes that run have said last.
    pub fn facts(&self) -> impl Iterator<Item = &Arc<NodeFacts>> {
        self.nodes.values().filter_map(|node| node.running.as_ref()?.fleet.said())
    }
}
