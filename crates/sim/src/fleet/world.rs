//! A fleet and its time.

use super::{
    Observation,
    mesh::Mesh,
    net::{Dice, Happening, Net, Packet},
    observation::NodeSeen,
    scenario::Scenario,
    script::{Fault, Script},
    sim_node::{Running, SimNode},
};
use mainstay_core::{
    clock::Mono,
    fleet::{
        EngineCommand, EngineEvent, FailureKey, Fleet, FleetCommand, FleetEvent, FleetInput,
        FleetMember, Identity, JobStanding, MemberId, NodeFacts, Number, PlannedJob, RemoteCopy,
        RequestAnswer, RequestId, RunId,
    },
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
    sync::Arc,
    time::Duration,
};

const BEAT: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct FleetWorld {
    scenario: Scenario,
    nodes: BTreeMap<Name, SimNode>,
    net: Net,
    dice: Dice,
    now: Mono,
    runs: u64,
    script: Script,
    answered: Vec<(FailureKey, Name, usize)>,
    /// Who has seen whom join.
    joined: Vec<(Name, Name)>,
    asked: Vec<RequestId>,
    replies: Vec<(RequestId, RequestAnswer)>,
    inputs: VecDeque<(Name, FleetInput)>,
    telling: bool,
    /// What has happened, for people.
    pub trace: String,
}

impl FleetWorld {
    /// All nodes are switched on at once.
    #[must_use]
    pub fn new(scenario: Scenario, script: Script) -> FleetWorld {
        let names = scenario.nodes.clone();
        let mut world = FleetWorld {
            scenario,
            nodes: names.iter().map(|name| (name.clone(), SimNode::default())).collect(),
            net: Net::new(),
            dice: Dice::new(script.seed.wrapping_add(1)),
            now: Mono(0),
            runs: 0,
            script,
            answered: Vec::new(),
            joined: Vec::new(),
            asked: Vec::new(),
            replies: Vec::new(),
            inputs: VecDeque::new(),
            telling: false,
            trace: String::new(),
        };
        for (at, step) in world.script.steps.iter().enumerate() {
            world.net.at(Mono(0).after(step.at), Happening::Fault(at));
        }
        for name in names {
            world.boot(&name);
        }
        world
    }

    #[must_use]
    pub fn now(&self) -> Duration {
        self.now.since(Mono(0))
    }

    /// Lets time pass.
    pub fn run_until(&mut self, end: Duration) {
        let end = Mono(0).after(end);
        while let Some((when, what)) = self.net.pop(end) {
            self.now = self.now.max(when);
            self.happen(what);
        }
        self.now = end;
    }

    /// Lets time pass until this is so; how long that took. `None`: it never was.
    pub fn run_while(
        &mut self,
        limit: Duration,
        mut open: impl FnMut(&Observation) -> bool,
    ) -> Option<Duration> {
        let begin = self.now;
        let end = self.now.after(limit);
        while open(&self.observe()) {
            let (when, what) = self.net.pop(end)?;
            self.now = self.now.max(when);
            self.happen(what);
        }
        Some(self.now.since(begin))
    }

    /// What a node says that a start of an app would do. `None`: it is off.
    #[must_use]
    pub fn plan_start(
        &self,
        node: &Name,
        app: &Name,
    ) -> Option<Result<Vec<PlannedJob>, RequestAnswer>> {
        let running = self.nodes.get(node)?.running.as_ref()?;
        Some(running.fleet.plan_start(running.clock(self.now), app))
    }

    /// What a node knows of a job on other ones; `None`: it is there, or nothing is known.
    #[must_use]
    pub fn elsewhere(&self, node: &Name, job: &Name) -> Option<RemoteCopy> {
        let running = self.nodes.get(node)?.running.as_ref()?;
        running.fleet.elsewhere(job).filter(|_| running.fleet.has_met_all())
    }

    /// A node says that it hands over what it runs, or does not any more.
    pub fn hand_over(&mut self, node: &Name, on: bool) {
        self.tell(node, FleetInput::HandOver { on });
    }

    /// A user takes a node from the candidates of a job, or gives it back.
    pub fn disable_here(&mut self, node: &Name, job: &Name, on: bool) {
        let running = self.running(node);
        running.into_iter().for_each(|it| it.disable(job, on));
        self.tell_jobs(node);
    }

    /// Something happens now.
    pub fn inflict(&mut self, fault: Fault) {
        self.note(&format!("=== {fault}"));
        match fault {
            Fault::Crash(node) => {
                if let Some(it) = self.nodes.get_mut(&node) {
                    it.running = None;
                }
            }
            Fault::Boot(node) => self.boot(&node),
            Fault::Cut { one, other, one_way } => {
                for from in &one {
                    for to in &other {
                        self.net.cut(from, to);
                        if !one_way {
                            self.net.cut(to, from);
                        }
                    }
                }
            }
            Fault::Heal => self.net.heal(),
            Fault::Weather { loss, repeats, delay } => {
                (self.net.loss, self.net.repeats, self.net.delay) = (loss, repeats, delay);
            }
            Fault::JobCrash(job) => {
                for node in self.scenario.nodes.clone() {
                    let running = self.nodes.get_mut(&node).and_then(|it| it.running.as_mut());
                    if running.is_some_and(|it| it.crash(&job)) {
                        self.tell_jobs(&node);
                    }
                }
            }
            Fault::StartHere { job, node } => {
                let ran = self.observe().homes(&job).any(|it| *it == node);
                self.start_there(&node, None, job.clone(), Vec::new());
                let copy = self.running(&node).and_then(|it| it.jobs.get_mut(&job));
                copy.into_iter().for_each(|it| it.by_hand |= !ran);
                self.tell_jobs(&node);
            }
            Fault::Ask { node, request } => self.tell(&node, FleetInput::Asked(request)),
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Fault(at) => {
                let fault = self.script.steps[at].fault.clone();
                self.inflict(fault);
            }
            Happening::Arrives { from, to, packet } => self.arrive(&from, &to, packet),
            Happening::Beat { node, run } if self.is_run(&node, run) => {
                self.beat(&node);
                self.net.at(self.now.after(BEAT), Happening::Beat { node, run });
            }
            Happening::Tick { node, run } if self.is_run(&node, run) => {
                self.tell(&node, FleetInput::Tick);
                self.say_again(&node);
                self.net.at(self.now.after(TICK), Happening::Tick { node, run });
            }
            Happening::Wake { node, run } if self.is_run(&node, run) => {
                if let Some(running) = self.running(&node) {
                    running.wake = None;
                }
                self.tell(&node, FleetInput::Tick);
            }
            Happening::Job { node, run, job, incarnation } if self.is_run(&node, run) => {
                if self.running(&node).is_some_and(|it| it.progress(&job, incarnation)) {
                    self.tell_jobs(&node);
                }
            }
            // Of a run that is over.
            Happening::Beat { .. }
            | Happening::Tick { .. }
            | Happening::Wake { .. }
            | Happening::Job { .. } => {}
        }
    }

    fn boot(&mut self, name: &Name) {
        let Some(node) = self.nodes.get_mut(name).filter(|it| it.running.is_none()) else { return };
        self.runs += 1;
        let run = self.runs;
        let id = RunId::new(&format!("run{run}"));
        let me = FleetMember { node: name.clone(), run: id.clone(), id: MemberId(run) };
        let machine = self.scenario.machine(name);
        let identity = Identity { name: name.clone(), run: id, machine };
        let core = self.scenario.rules.core.clone();
        let mesh = Mesh::new(me, core, node.disk.highest_term.clone());
        let clock = Mono(1_000_000_000);
        let catalogue = self.scenario.catalogue(name);
        let fleet =
            Fleet::new(identity, self.scenario.rules.clone(), catalogue, node.disk.clone(), clock);
        let (jobs, wake) = (BTreeMap::new(), None);
        node.running = Some(Box::new(Running { run, since: self.now, fleet, mesh, jobs, wake }));
        let name = name.clone();
        let offset = Duration::from_millis(self.dice.below(400));
        self.net.at(self.now, Happening::Beat { node: name.clone(), run });
        self.net.at(self.now.after(offset), Happening::Tick { node: name.clone(), run });
        self.look(&name);
    }

    fn running(&mut self, node: &Name) -> Option<&mut Running> {
        self.nodes.get_mut(node)?.running.as_deref_mut()
    }

    fn is_run(&mut self, node: &Name, run: u64) -> bool {
        self.running(node).is_some_and(|it| it.run == run)
    }

    fn others(&self, node: &Name) -> Vec<Name> {
        self.scenario.nodes.iter().filter(|it| *it != node).cloned().collect()
    }

    fn beat(&mut self, node: &Name) {
        let Some(packet) = self.running(node).map(|it| it.mesh.alive()) else { return };
        self.spread(node, &packet);
        self.look(node);
    }

    fn spread(&mut self, node: &Name, packet: &Packet) {
        for to in self.others(node) {
            self.net.send(self.now, &mut self.dice, node, &to, packet);
        }
    }

    /// NodeFacts are said again, for whoever has missed them.
    fn say_again(&mut self, node: &Name) {
        let facts = self.running(node).and_then(|it| it.fleet.said().cloned());
        if let Some(facts) = facts {
            self.spread(node, &Packet::Said(facts));
        }
    }

    fn look(&mut self, node: &Name) {
        let now = self.now;
        let event = self.running(node).and_then(|it| it.mesh.look(now));
        event.into_iter().for_each(|it| self.tell(node, FleetInput::Engine(it)));
    }

    fn arrive(&mut self, from: &Name, to: &Name, packet: Packet) {
        let now = self.now;
        let Some(running) = self.running(to) else { return };
        match packet {
            Packet::Alive(member) => {
                let event = running.mesh.heard_of(now, member);
                event.into_iter().for_each(|it| self.tell(to, FleetInput::Engine(it)));
            }
            Packet::Said(facts) => {
                let event = running.mesh.claimed(from, &facts);
                let node = from.clone();
                self.tell(to, FleetInput::Engine(EngineEvent::Said { node, facts }));
                event.into_iter().for_each(|it| self.tell(to, FleetInput::Engine(it)));
            }
            Packet::Sent(message) => {
                let from = from.clone();
                self.tell(to, FleetInput::Engine(EngineEvent::Sent { from, message }));
            }
        }
    }

    fn tell_jobs(&mut self, node: &Name) {
        if let Some(jobs) = self.running(node).map(|it| it.jobs.clone()) {
            self.tell(node, FleetInput::Jobs(jobs));
        }
    }

    /// A node takes its inputs one after the other, each with all that it wants done.
    fn tell(&mut self, node: &Name, input: FleetInput) {
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
        let clock = running.clock(now);
        let outcome = running.fleet.step(clock, input);
        let kept = running.fleet.kept();
        let wake = outcome.wake.map(|at| now.after(at.since(clock)));
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
        self.asked.extend(outcome.request);
        self.replies.extend(outcome.answers);
        for event in outcome.events {
            self.note(&format!("{node}: {event:?}"));
            match event {
                FleetEvent::Failure { failure } => {
                    let back = |(by, it): &&(Name, Name)| by == node && *it == failure.node;
                    let times = self.joined.iter().filter(back).count();
                    self.answered.push((failure, node.clone(), times));
                }
                FleetEvent::Joined { node: other } => self.joined.push((node.clone(), other)),
                FleetEvent::Lost { .. }
                | FleetEvent::Isolated { .. }
                | FleetEvent::Refused { .. }
                | FleetEvent::Master { .. }
                | FleetEvent::Stage { .. }
                | FleetEvent::Placed { .. }
                | FleetEvent::NotPlaced { .. }
                | FleetEvent::Conflict { .. }
                | FleetEvent::WavesStopped { .. } => {}
            }
        }
        for command in outcome.engine {
            self.engine(node, command);
        }
        for command in outcome.commands {
            self.obey(node, command);
        }
    }

    fn engine(&mut self, node: &Name, command: EngineCommand) {
        match command {
            EngineCommand::Say(facts) => self.spread(node, &Packet::Said(facts)),
            EngineCommand::Send { to, message } => {
                self.net.send(self.now, &mut self.dice, node, &to, &Packet::Sent(message));
            }
            EngineCommand::Campaign { among, .. } => {
                let event = self.running(node).and_then(|it| it.mesh.campaign(among));
                event.into_iter().for_each(|it| self.tell(node, FleetInput::Engine(it)));
            }
        }
    }

    fn obey(&mut self, node: &Name, command: FleetCommand) {
        self.note(&format!("{node} > {command:?}"));
        match command {
            FleetCommand::Start { order, job, args, .. } => {
                self.start_there(node, Some(order), job, args);
            }
            FleetCommand::Stop { order, job } => {
                let Some(running) = self.running(node) else { return };
                let done = running.stop(order, &job);
                self.go_on_there(node, job, done);
            }
            FleetCommand::EndRun { again } => {
                if let Some(it) = self.nodes.get_mut(node) {
                    it.running = None;
                }
                if again {
                    self.boot(node);
                }
            }
        }
    }

    /// By order of the fleet, or by hand.
    fn start_there(&mut self, node: &Name, order: Option<Number>, job: Name, args: Vec<String>) {
        let now = self.now;
        let Some(running) = self.running(node) else { return };
        let done = running.start(now, order, &job, args);
        self.go_on_there(node, job, done);
    }

    fn go_on_there(&mut self, node: &Name, job: Name, done: Option<(u64, Duration)>) {
        let run = self.running(node).map(|it| it.run);
        if let (Some((incarnation, after)), Some(run)) = (done, run) {
            let node = node.clone();
            self.net.at(self.now.after(after), Happening::Job { node, run, job, incarnation });
        }
        self.tell_jobs(node);
    }

    fn note(&mut self, line: &str) {
        // A string takes whatever is written to it.
        let _ = writeln!(self.trace, "{:>9.3}s  {line}", self.now.0 as f64 / 1e9);
    }

    /// As the master has it.
    fn given_up(&self) -> BTreeSet<Name> {
        let running = self.nodes.values().filter_map(|node| node.running.as_ref());
        let work = running.filter_map(|it| it.fleet.said()?.work.as_ref());
        let ended = |standing: &JobStanding| match standing {
            JobStanding::Ended { .. } | JobStanding::OrderFailed { .. } => true,
            JobStanding::Rest
            | JobStanding::Up { .. }
            | JobStanding::Lost { .. }
            | JobStanding::NotPlaced(_) => false,
        };
        let jobs = work.flat_map(|work| work.jobs.iter().filter(|(_, it)| ended(it)));
        jobs.map(|(job, _)| job.clone()).collect()
    }

    /// What the nodes that run have said last.
    pub fn facts(&self) -> impl Iterator<Item = &Arc<NodeFacts>> {
        self.nodes.values().filter_map(|node| node.running.as_ref()?.fleet.said())
    }

    #[must_use]
    pub fn observe(&self) -> Observation {
        let seen = |node: &SimNode| {
            let it = node.running.as_ref()?;
            let facts = it.fleet.said()?;
            Some(NodeSeen {
                run: facts.run.clone(),
                machine: facts.machine.clone(),
                stage: it.fleet.stage(),
                term: it.fleet.term().cloned(),
                is_master: it.fleet.is_master(),
                jobs: it.jobs.iter().map(|(job, copy)| (job.clone(), copy.state)).collect(),
                by_hand: it
                    .jobs
                    .iter()
                    .filter(|(_, copy)| copy.by_hand && copy.state.is_active())
                    .map(|(job, _)| job.clone())
                    .collect(),
                args: it.jobs.iter().map(|(job, copy)| (job.clone(), copy.args.clone())).collect(),
                wishes: it.fleet.wishes().clone(),
            })
        };
        let nodes = self.nodes.iter().filter_map(|(name, node)| Some((name.clone(), seen(node)?)));
        Observation {
            nodes: nodes.collect(),
            answered: self.answered.clone(),
            asked: self.asked.clone(),
            replies: self.replies.clone(),
            was_cut: self.script.has_cut(),
            given_up: self.given_up(),
            loads: self.scenario.loads(),
        }
    }
}
