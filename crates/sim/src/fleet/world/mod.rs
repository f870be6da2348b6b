//! A fleet and its time.
//!
//! - `faults`: what happens to it
//! - `rollouts`: what is rolled out on them
//! - `steps`: what its nodes do, and what they want done
//! - `seen`: what somebody sees who looks at all of it

mod faults;
mod rollouts;
mod seen;
mod steps;

use super::{
    History, Observation,
    mesh::Mesh,
    net::{Dice, Happening, Net, Packet},
    scenario::Scenario,
    script::Script,
    sim_node::{Clock, Running, SimNode},
};
use mainstay_core::{
    clock::Mono,
    fleet::{
        Catalogue, EngineEvent, Fleet, FleetInput, FleetMember, Identity, Kept, MemberId,
        NodeFacts, PlannedJob, RemoteCopy, RequestAnswer, RunId,
    },
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::{self, Write as _},
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
    history: Arc<History>,
    /// What all files say at first.
    written: Arc<Catalogue>,
    /// Jobs that cannot be started.
    broken: BTreeSet<Name>,
    inputs: VecDeque<(Name, FleetInput)>,
    telling: bool,
    told: bool,
    /// What has happened, for people.
    pub trace: String,
}

impl FleetWorld {
    /// All nodes are switched on at once.
    #[must_use]
    pub fn new(scenario: Scenario, script: Script) -> FleetWorld {
        let names = scenario.nodes.clone();
        let file = Arc::new(scenario.catalogue.clone());
        let node =
            |name: &Name| (name.clone(), SimNode { file: file.clone(), ..SimNode::default() });
        let mut world = FleetWorld {
            nodes: names.iter().map(node).collect(),
            scenario,
            net: Net::new(),
            dice: Dice::new(script.seed.wrapping_add(1)),
            now: Mono(0),
            runs: 0,
            script,
            history: Arc::default(),
            written: file.clone(),
            broken: BTreeSet::new(),
            inputs: VecDeque::new(),
            telling: false,
            told: true,
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

    /// The fleet of a seed, and its story.
    #[must_use]
    pub fn random(seed: u64) -> FleetWorld {
        let scenario = Scenario::random(seed);
        let script = Script::random(seed, &scenario);
        FleetWorld::new(scenario, script)
    }

    /// Without a trace: that is for people.
    #[must_use]
    pub fn untold(mut self) -> FleetWorld {
        self.told = false;
        self
    }

    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
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

    /// What is on the disk of a node.
    #[must_use]
    pub fn kept(&self, node: &Name) -> Option<&Kept> {
        self.nodes.get(node).map(|it| &it.disk)
    }

    /// What a node says that a start of an app would do. `None`: it is off.
    #[must_use]
    pub fn plan_start(
        &self,
        node: &Name,
        app: &Name,
    ) -> Option<Result<Vec<PlannedJob>, RequestAnswer>> {
        let running = self.nodes.get(node)?.running.as_ref()?;
        Some(running.fleet.plan_start(running.clock.shows(self.now), app))
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

    fn happen(&mut self, what: Happening) {
        let Some(node) = what.node().cloned() else {
            return self.happen_now(what);
        };
        let now = self.now;
        let Some(running) = self.running(&node) else { return };
        if let Some(held) = &mut running.frozen {
            return held.push(what);
        }
        match what {
            Happening::Late(what) => self.happen_now(*what),
            what if what.is_for_core()
                && (running.late > Duration::ZERO || now < running.takes_next) =>
            {
                running.takes_next = running.takes_next.max(now.after(running.late));
                let at = running.takes_next;
                self.net.at(at, Happening::Late(Box::new(what)));
            }
            what => self.happen_now(what),
        }
    }

    fn happen_now(&mut self, what: Happening) {
        match what {
            Happening::Fault(at) => {
                let fault = self.script.steps[at].fault.clone();
                self.inflict(fault);
            }
            Happening::Late(what) => self.happen_now(*what),
            Happening::Arrives { from, to, packet } => self.arrive(&from, &to, packet),
            Happening::Beat { node, run } if self.is_run(&node, run) => {
                self.beat(&node);
                self.net.at(self.now.after(BEAT), Happening::Beat { node, run });
            }
            Happening::Tick { node, run } if self.is_run(&node, run) => {
                // No node is told that time has passed, but by what it has asked for.
                self.say_again(&node);
                self.net.at(self.now.after(TICK), Happening::Tick { node, run });
            }
            Happening::Wake { node, run } if self.is_run(&node, run) => {
                if let Some(running) = self.running(&node) {
                    running.wake = None;
                }
                self.tell(&node, FleetInput::Tick);
            }
            Happening::Rollout { node, run } if self.is_run(&node, run) => {
                self.rollout_is_due(&node);
            }
            Happening::Job { node, run, job, incarnation } if self.is_run(&node, run) => {
                self.progress(&node, job, incarnation);
            }
            Happening::Off { node, run, again } if self.is_run(&node, run) => {
                self.leave(&node, again);
            }
            Happening::Told { node, run, input } if self.is_run(&node, run) => {
                self.tell(&node, *input);
            }
            // Of a run that is over.
            Happening::Beat { .. }
            | Happening::Tick { .. }
            | Happening::Wake { .. }
            | Happening::Rollout { .. }
            | Happening::Job { .. }
            | Happening::Told { .. }
            | Happening::Off { .. } => {}
        }
    }

    fn boot(&mut self, name: &Name) {
        let is_off = self.nodes.get(name).is_some_and(|it| it.running.is_none());
        if !is_off {
            return;
        }
        self.runs += 1;
        let run = self.runs;
        let skew = self.scenario.skew;
        let (mut first, mut rate) = (1_000_000_000, 1000);
        if skew > 0 {
            // Hours apart, and not equally fast.
            first += self.dice.below(1 << 44);
            rate += u32::try_from(self.dice.below(2 * u64::from(skew))).unwrap_or(0);
            rate -= skew;
        }
        let clock = Clock { since: self.now, first: Mono(first), rate };
        let Some(running) = self.new_agent(name, run, clock) else { return };
        if let Some(node) = self.nodes.get_mut(name) {
            node.running = Some(Box::new(running));
        }
        let name = name.clone();
        let offset = Duration::from_millis(self.dice.below(400));
        self.net.at(self.now, Happening::Beat { node: name.clone(), run });
        self.net.at(self.now.after(offset), Happening::Tick { node: name.clone(), run });
        self.look(&name);
        self.begin_rollout(&name, false);
    }

    /// An agent of a run, with what is on the disk.
    fn new_agent(&self, name: &Name, run: u64, clock: Clock) -> Option<Running> {
        let node = self.nodes.get(name)?;
        let id = RunId::new(&format!("run{run}"));
        let called = self.called(name).clone();
        let me = FleetMember { node: called.clone(), run: id.clone(), id: MemberId(run) };
        let machine = self.scenario.machine(name);
        let identity = Identity { name: called, run: id, machine };
        let rules = self.scenario.rules.clone();
        let mesh = Mesh::new(me, rules.core.clone(), node.disk.highest_term.clone());
        let now = clock.shows(self.now);
        let fleet = Fleet::new(identity, rules, node.file.clone(), node.disk.clone(), now);
        Some(Running {
            run,
            clock,
            fleet,
            mesh,
            jobs: BTreeMap::new(),
            wake: None,
            ends: false,
            frozen: None,
            late: Duration::ZERO,
            takes_next: Mono(0),
            again: BTreeMap::new(),
        })
    }

    /// The name of a node; that of a copy is the one of the first.
    fn called<'a>(&'a self, host: &'a Name) -> &'a Name {
        self.nodes.get(host).and_then(|it| it.copy_of.as_ref()).unwrap_or(host)
    }

    /// Where a node sends what is for the node of this name.
    fn host_of(&self, sender: &Name, to: &Name) -> Option<Name> {
        if self.nodes.len() == self.scenario.nodes.len() {
            return Some(to.clone());
        }
        let run = self.nodes.get(sender)?.running.as_ref()?.mesh.run_of(to)?;
        let is_it = |it: &SimNode| it.running.as_ref().is_some_and(|it| it.run == run);
        self.nodes.iter().find(|(_, it)| is_it(it)).map(|(host, _)| host.clone())
    }

    fn running(&mut self, node: &Name) -> Option<&mut Running> {
        self.nodes.get_mut(node)?.running.as_deref_mut()
    }

    fn is_run(&mut self, node: &Name, run: u64) -> bool {
        self.running(node).is_some_and(|it| it.run == run)
    }

    fn beat(&mut self, node: &Name) {
        let Some(packet) = self.running(node).map(|it| it.mesh.alive()) else { return };
        self.spread(node, &packet);
        self.look(node);
    }

    fn spread(&mut self, node: &Name, packet: &Packet) {
        for to in self.nodes.keys().filter(|it| *it != node) {
            self.net.send(self.now, &mut self.dice, node, to, packet);
        }
    }

    /// NodeFacts are said again, for whoever has missed them.
    fn say_again(&mut self, node: &Name) {
        let facts = self.running(node).and_then(|it| it.fleet.said().cloned());
        if let Some(facts) = facts {
            self.spread_facts(node, facts);
        }
    }

    /// As its agent puts them.
    fn spread_facts(&mut self, node: &Name, facts: Arc<NodeFacts>) {
        let dialect = self.nodes.get(node).and_then(|it| it.dialect);
        let facts = dialect.map_or(facts.clone(), |dialect| Arc::new(dialect(&facts)));
        self.spread(node, &Packet::Said(facts));
    }

    fn look(&mut self, node: &Name) {
        let now = self.now;
        let event = self.running(node).and_then(|it| it.mesh.look(now));
        event.into_iter().for_each(|it| self.tell(node, FleetInput::Engine(it)));
    }

    fn arrive(&mut self, from: &Name, to: &Name, packet: Packet) {
        let now = self.now;
        let from = &self.called(from).clone();
        let Some(running) = self.running(to) else { return };
        match packet {
            Packet::Alive(member) => {
                let event = running.mesh.heard_of(now, member);
                event.into_iter().for_each(|it| self.tell(to, FleetInput::Engine(it)));
            }
            Packet::Leaves(member) => {
                let event = running.mesh.left(now, &member);
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

    fn note(&mut self, line: fmt::Arguments<'_>) {
        if self.told {
            // A string takes whatever is written to it.
            let _ = writeln!(self.trace, "{:>9.3}s  {line}", self.now.0 as f64 / 1e9);
        }
    }
}
