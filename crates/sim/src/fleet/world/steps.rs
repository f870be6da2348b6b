//! What nodes are told, what they decide, and what they want done.

use super::FleetWorld;
use crate::fleet::{
    History,
    history::{Answer, AskedRequest, FalseAlarm, Placing, TakenOrder, Twice},
    net::{Happening, Packet},
    sim_node::{Habit, NextStep},
};
use mainstay_core::{
    clock::Mono,
    fleet::{
        Catalogue, EngineCommand, EngineEvent, FleetCommand, FleetEvent, FleetInput, Message,
        NodeFacts, Number, PeerState, Role,
    },
    name::Name,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A node that has been on for so long is not one that others hold for its run before.
const KNOWN: Duration = Duration::from_secs(4);

impl FleetWorld {
    pub(super) fn history(&mut self) -> &mut History {
        Arc::make_mut(&mut self.history)
    }

    pub(super) fn tell_jobs(&mut self, node: &Name) {
        if let Some(mut jobs) = self.running(node).map(|it| it.jobs.clone()) {
            // A node that has lost them does not know what a process has.
            jobs.values_mut().filter(|it| it.args_lost).for_each(|it| it.args.clear());
            self.tell(node, FleetInput::Jobs(jobs));
        }
    }

    /// A node takes its inputs one after the other, each with all that it wants done.
    pub(super) fn tell(&mut self, node: &Name, input: FleetInput) {
        self.inputs.push_back((node.clone(), input));
        if std::mem::replace(&mut self.telling, true) {
            return;
        }
        while let Some((node, input)) = self.inputs.pop_front() {
            self.step(&node, input);
        }
        self.telling = false;
    }

    fn step(&mut self, node: &Name, input: FleetInput) {
        let now = self.now;
        let Some(running) = self.running(node) else { return };
        if let Some(held) = &mut running.frozen {
            let (node, run) = (node.clone(), running.run);
            return held.push(Happening::Told { node, run, input: Box::new(input) });
        }
        let clock = running.clock;
        let request = match &input {
            FleetInput::Asked(request) => Some(request.clone()),
            FleetInput::Engine(_)
            | FleetInput::Jobs(_)
            | FleetInput::Known(_)
            | FleetInput::Rules(_)
            | FleetInput::Readmit { .. }
            | FleetInput::HandOver { .. }
            | FleetInput::Waves(_)
            | FleetInput::Ending
            | FleetInput::Tick => None,
        };
        let sender = match &input {
            FleetInput::Engine(EngineEvent::Sent { from, message: Message::Order(order) }) => {
                Some((order.number.clone(), running.fleet.peer_state(from)))
            }
            _ => None,
        };
        let said = running.fleet.said().cloned();
        let known = match &input {
            FleetInput::Known(file) => Some(file.clone()),
            _ => None,
        };
        let outcome = running.fleet.step(clock.shows(now), input);
        let kept = running.fleet.kept();
        let wake = outcome.wake.map(|at| clock.at(at));
        let (run, earlier) = (running.run, running.wake);
        if let Some(at) = wake
            && earlier.is_none_or(|earlier| at < earlier || earlier <= now)
        {
            running.wake = Some(at);
            let at = at.max(now.after(Duration::from_millis(1)));
            self.net.at(at, Happening::Wake { node: node.clone(), run });
        }
        if let Some(it) = self.nodes.get_mut(node) {
            it.disk = kept;
        }
        let at = self.now();
        let asked = request.zip(outcome.request);
        let asked = asked.map(|(request, id)| AskedRequest { at, id, request, is_orphan: false });
        self.history().asked.extend(asked);
        self.history().replies.extend(outcome.answers);
        for event in outcome.events {
            self.note(format_args!("{node}: {event:?}"));
            self.remember(node, event, said.as_deref());
        }
        for command in outcome.engine {
            self.engine(node, command);
        }
        for command in outcome.commands {
            self.obey(node, command, sender.as_ref());
        }
        self.look_at_term(node);
        if let Some(file) = known {
            self.keep_known(node, &file);
        }
        let says = self.running(node).and_then(|it| it.fleet.said().cloned());
        let is_news = match (&said, &says) {
            (Some(said), Some(says)) => !Arc::ptr_eq(said, says),
            (None, says) => says.is_some(),
            (Some(_), None) => true,
        };
        if is_news {
            self.roll_on(node);
        }
    }

    /// Of what a reload has taken from its file a node says nothing any more, and its process ends.
    fn keep_known(&mut self, node: &Name, file: &Catalogue) {
        let Some(running) = self.running(node) else { return };
        if running.jobs.keys().all(|job| file.jobs.contains_key(job)) {
            return;
        }
        running.jobs.retain(|job, _| file.jobs.contains_key(job));
        running.again.retain(|job, _| file.jobs.contains_key(job));
        self.tell_jobs(node);
    }

    /// `said`: what the node had said before it decided that.
    fn remember(&mut self, node: &Name, event: FleetEvent, said: Option<&NodeFacts>) {
        match event {
            FleetEvent::Failure { failure } => {
                let back = |(by, it): &&(Name, Name)| by == node && *it == failure.node;
                let times = self.history.joined.iter().filter(back).count();
                let term = self.running(node).and_then(|it| it.fleet.term().cloned());
                self.history().answered.push(Answer { failure, by: node.clone(), times, term });
            }
            FleetEvent::Joined { node: other } => {
                self.history().joined.push((node.clone(), other));
            }
            FleetEvent::Lost { node: other } => {
                let now = self.now;
                let lives = self.running(&other).is_some_and(|it| {
                    now.since(it.clock.since) > KNOWN && !it.ends && it.frozen.is_none()
                });
                if lives {
                    let at = self.now();
                    let alarm = FalseAlarm { by: node.clone(), node: other, at };
                    self.history().false_alarms.push(alarm);
                }
            }
            FleetEvent::Placed { job, node: to } => {
                let placing = self.placing(node, job, to, said);
                self.history().placements.extend(placing);
            }
            FleetEvent::Master { term } => {
                if term.master == *self.called(node)
                    && let Some(run) = self.run_id(node)
                {
                    self.history().reigns.insert((term, node.clone(), run));
                }
            }
            // From then on they are two fleets.
            FleetEvent::Isolated { .. } => self.history().divided = true,
            FleetEvent::Refused { .. }
            | FleetEvent::Stage { .. }
            | FleetEvent::NotPlaced { .. }
            | FleetEvent::Conflict { .. }
            | FleetEvent::WavesStopped { .. } => {}
        }
    }

    fn run_id(&mut self, node: &Name) -> Option<mainstay_core::fleet::RunId> {
        let run = self.running(node)?.run;
        Some(mainstay_core::fleet::RunId::new(&format!("run{run}")))
    }

    /// What a master knows of a node that it gives a job to. What it has placed there in the same
    /// step is not in what it was told, and comes from what it says.
    fn placing(
        &mut self,
        master: &Name,
        job: Name,
        node: Name,
        said: Option<&NodeFacts>,
    ) -> Option<Placing> {
        let me = self.called(master).clone();
        let fleet = &self.running(master)?.fleet;
        // A frozen one has not heard of a reload yet.
        let known_there = fleet.said()?.catalogue.clone();
        let views = fleet.nodes();
        let target = views.iter().find(|it| it.name == node)?;
        let placed = fleet.placed_job(&job)?;
        let work = fleet.said()?.work.clone();
        let rules = |job: &Name| {
            let known = views.iter().filter_map(|it| it.facts.as_ref()?.catalogue.jobs.get(job));
            known_there.jobs.get(job).or(known.clone().next()).map_or(0, |it| it.place.load)
        };
        let facts = target.facts.as_ref()?;
        let drains = said.and_then(|it| it.work.as_ref()?.drains.get(&node).copied());
        let drained = said.filter(|_| node == me).map_or(facts.drained, |it| it.drained);
        // Before it decided, or after: it may be drained no more by the same decision.
        let after = work.as_ref().and_then(|work| work.drains.get(&node).copied());
        let is_drained = after.unwrap_or(facts.drained);
        // The same decision may be to end the fleet.
        let is_ending = said.filter(|_| node == me).map_or(facts.ending, |it| it.ending);
        let mut jobs: BTreeMap<(&Name, &Name), u32> = BTreeMap::new();
        for view in &views {
            let Some(there) = view.facts.as_ref().filter(|it| it.machine == facts.machine) else {
                continue;
            };
            let active = there.jobs.iter().filter(|(_, copy)| copy.state.is_active());
            jobs.extend(active.map(|(job, _)| ((&view.name, job), rules(job))));
            let ordered = work.iter().flat_map(|work| work.orders.iter());
            let ordered = ordered.filter(|(_, node, order)| {
                **node == view.name && order.what != mainstay_core::fleet::OrderKind::Stop
            });
            jobs.extend(ordered.map(|(job, ..)| ((&view.name, job), rules(job))));
        }
        Some(Placing {
            takes_part: target.state == PeerState::Running,
            is_drained: drains.unwrap_or(drained) && is_drained,
            is_ending,
            hands_over: facts.hands_over,
            is_known: placed.known_by.contains(&node),
            load: jobs.values().sum(),
            job,
            node,
        })
    }

    fn look_at_term(&mut self, node: &Name) {
        let Some(running) = self.running(node) else { return };
        let Some(term) = running.fleet.term() else { return };
        if running.fleet.peer_state(&term.master) == PeerState::Isolated {
            let followed = (node.clone(), term.clone());
            self.history().followed_isolated.push(followed);
        }
    }

    fn engine(&mut self, node: &Name, command: EngineCommand) {
        match command {
            EngineCommand::Say(facts) => {
                if let Some(work) = &facts.work {
                    self.history().work_is(work);
                }
                self.spread_facts(node, facts);
            }
            EngineCommand::Send { to, message } => {
                let Some(host) = self.host_of(node, &to) else { return };
                self.net.send(self.now, &mut self.dice, node, &host, &Packet::Sent(message));
            }
            EngineCommand::Campaign { role: Role::Master, among } => {
                let event = self.running(node).and_then(|it| it.mesh.campaign(among));
                event.into_iter().for_each(|it| self.tell(node, FleetInput::Engine(it)));
            }
        }
    }

    fn obey(&mut self, node: &Name, command: FleetCommand, sender: Option<&(Number, PeerState)>) {
        self.note(format_args!("{node} > {command:?}"));
        match command {
            FleetCommand::Start { order, job, args, .. } => {
                self.take_order(node, &order, &job, sender);
                self.start_there(node, Some(order), job, args);
            }
            FleetCommand::Stop { order, job } => {
                self.take_order(node, &order, &job, sender);
                let Some(running) = self.running(node) else { return };
                let done = running.stop(Some(order), &job);
                self.go_on_there(node, job, done);
            }
            FleetCommand::EndRun { again } => {
                self.history().ended_with_fleet.push(node.clone());
                self.shut_down(node, again);
            }
            FleetCommand::GiveProfile { to, profile, version } => {
                self.give_profile(node, &to, profile, version);
            }
            FleetCommand::TakeProfile(delivery) => self.take_profile(node, &delivery),
        }
    }

    fn take_order(
        &mut self,
        node: &Name,
        number: &Number,
        job: &Name,
        sender: Option<&(Number, PeerState)>,
    ) {
        let Some(run) = self.run_id(node) else { return };
        let highest = self.nodes.get(node).and_then(|it| it.disk.highest_term.clone());
        let isolated = |it: &&(Number, PeerState)| it.0 == *number && it.1 == PeerState::Isolated;
        let taken = TakenOrder {
            node: node.clone(),
            run,
            job: job.clone(),
            number: number.clone(),
            highest,
            from_isolated: sender.filter(isolated).is_some(),
        };
        self.history().taken.push(taken);
    }

    /// By order of the fleet, or by hand.
    pub(super) fn start_there(
        &mut self,
        node: &Name,
        order: Option<Number>,
        job: Name,
        args: Vec<String>,
    ) {
        let now = self.now;
        let ordered = order.is_some();
        let Some(running) = self.running(node) else { return };
        let done = running.start(now, order, &job, args);
        if ordered && done.is_some() {
            self.look_for_copies(&job);
        }
        self.go_on_there(node, job, done);
    }

    /// A job was started by order: does it run elsewhere, by order as well?
    fn look_for_copies(&mut self, job: &Name) {
        let runs = |node: &Name| {
            let running = self.nodes.get(node)?.running.as_ref()?;
            let copy = running.jobs.get(job)?;
            (copy.state.is_active() && !copy.by_hand).then(|| node.clone())
        };
        let nodes: Vec<Name> = self.nodes.keys().filter_map(runs).collect();
        if nodes.len() > 1 {
            let at = self.now();
            self.history().twice.push(Twice { job: job.clone(), nodes, at });
        }
    }

    pub(super) fn go_on_there(&mut self, node: &Name, job: Name, done: Option<NextStep>) {
        self.do_next(node, job, done);
        self.tell_jobs(node);
    }

    fn do_next(&mut self, node: &Name, job: Name, next: Option<NextStep>) {
        let run = self.running(node).map(|it| it.run);
        if let (Some((incarnation, after)), Some(run)) = (next, run) {
            let node = node.clone();
            self.net.at(self.now.after(after), Happening::Job { node, run, job, incarnation });
        }
    }

    pub(super) fn progress(&mut self, node: &Name, job: Name, incarnation: u64) {
        let exits = self.scenario.catalogue.jobs.get(&job).is_some_and(|it| it.place.wait_exit);
        let habit = match (self.broken.contains(&job), exits) {
            (true, _) => Habit::Breaks,
            (false, true) => Habit::Exits,
            (false, false) => Habit::Runs,
        };
        let now: Mono = self.now;
        let next = self.running(node).and_then(|it| it.progress(now, &job, incarnation, habit));
        if let Some(next) = next {
            self.go_on_there(node, job, next);
        }
    }
}
