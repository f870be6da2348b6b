//! The story of a fleet: what happens to it and when, made from a seed.

use super::{
    fault::{Fault, Written},
    net::Dice,
    scenario::Scenario,
};
use mainstay_core::{
    fleet::{Conciliation, FleetRequest},
    name::Name,
};
use std::{fmt, time::Duration};

/// Until then there is trouble; from then on all is well.
const CALM: Duration = Duration::from_secs(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub at: Duration,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub seed: u64,
    pub steps: Vec<Step>,
}

impl Script {
    /// Nothing happens by itself.
    #[must_use]
    pub fn quiet(seed: u64) -> Script {
        Script { seed, steps: Vec::new() }
    }

    /// Two minutes of trouble; then all is well for as long as it takes.
    #[must_use]
    pub fn random(seed: u64, scenario: &Scenario) -> Script {
        let (apps, jobs) = scenario.names();
        let nodes = scenario.nodes.clone();
        let mut draft = ScriptDraft { dice: Dice::new(seed), nodes, apps, jobs, steps: Vec::new() };
        // Some seeds know no cuts and no losses: there more must hold.
        let whole = draft.dice.chance(400);
        for _ in 0..2 + draft.dice.below(12) {
            let at = Duration::from_millis(3_000 + draft.dice.below(90_000));
            draft.trouble(at, whole);
        }
        draft.rare_trouble(Dice::new(seed ^ 0x5A69_7887_96A5_B4C3));
        draft.calm(scenario);
        let mut steps = draft.steps;
        steps.sort_by_key(|step| step.at);
        Script { seed, steps }
    }
}

struct ScriptDraft {
    dice: Dice,
    nodes: Vec<Name>,
    apps: Vec<Name>,
    jobs: Vec<Name>,
    steps: Vec<Step>,
}

impl ScriptDraft {
    fn push(&mut self, at: Duration, fault: Fault) {
        self.steps.push(Step { at, fault });
    }

    fn node(&mut self) -> Name {
        pick(&mut self.dice, &self.nodes)
    }

    fn job(&mut self) -> Name {
        pick(&mut self.dice, &self.jobs)
    }

    /// One thing that goes wrong, and its end.
    fn trouble(&mut self, at: Duration, whole: bool) {
        let later = at + Duration::from_millis(100 + self.dice.below(15_000));
        match self.dice.below(if whole { 14 } else { 19 }) {
            0..=1 => {
                let node = self.node();
                self.push(at, Fault::Crash(node.clone()));
                if self.dice.chance(150) {
                    self.push(at, Fault::Tear(node.clone()));
                }
                self.push(later, Fault::Boot(node));
            }
            2 => {
                let node = self.node();
                self.push(at, Fault::Reboot(node));
            }
            3 => {
                let node = self.node();
                self.push(at, Fault::NewAgent(node));
            }
            4 => self.end(at, later),
            5 => {
                let (node, by) = (self.node(), 20 + self.dice.below(700));
                self.push(at, Fault::Slow { node: node.clone(), by });
                self.push(later, Fault::Slow { node, by: 0 });
            }
            6 => {
                let job = self.job();
                self.push(at, Fault::JobCrash(job));
            }
            7 => {
                let job = self.job();
                self.push(at, Fault::JobBreaks { job: job.clone(), on: true });
                self.push(later, Fault::JobBreaks { job, on: false });
            }
            8 => {
                let (job, node) = (self.job(), self.node());
                let started = self.dice.chance(700);
                let by_hand = match started {
                    true => Fault::StartHere { job, node },
                    false => Fault::StopHere { job, node },
                };
                self.push(at, by_hand);
            }
            9 => {
                let (job, node) = (self.job(), self.node());
                let to = if self.dice.chance(500) { Written::Not } else { Written::Otherwise };
                self.push(at, Fault::Reload { node: node.clone(), job: job.clone(), to });
                self.push(later, Fault::Reload { node, job, to: Written::AsElsewhere });
            }
            10..=13 => self.requests(at),
            14..=15 => self.cut(at, later),
            16 => self.flap(at),
            17 => {
                let loss = self.dice.below(100);
                let (repeats, delay) = (self.dice.below(200), 5 + self.dice.below(200));
                self.push(at, Fault::Weather { loss, repeats, delay });
                self.push(later, Fault::Weather { loss: 0, repeats: 0, delay: 5 });
            }
            _ => {
                let node = self.node();
                self.push(at, Fault::Freeze(node.clone()));
                self.push(later, Fault::Thaw(node));
            }
        }
    }

    /// In some seeds, and with dice of its own: whatever else happens is what happened before there
    /// was this.
    fn rare_trouble(&mut self, mut dice: Dice) {
        if dice.chance(150) {
            let at = Duration::from_millis(3_000 + dice.below(90_000));
            let node = pick(&mut dice, &self.nodes);
            self.push(at, Fault::LoseJournal(node));
        }
    }

    /// A user ends a node; some hand over before what it runs, and some of those think better of it.
    fn end(&mut self, at: Duration, later: Duration) {
        let node = self.node();
        let hands_over = self.dice.chance(400);
        let mut off = at;
        if hands_over {
            off += Duration::from_millis(self.dice.below(4_000));
            self.push(at, Fault::HandOver { node: node.clone(), on: true });
        }
        if hands_over && self.dice.chance(250) {
            return self.push(off, Fault::HandOver { node, on: false });
        }
        self.push(off, Fault::Shutdown(node.clone()));
        self.push(off + (later - at), Fault::Boot(node));
    }

    fn sides(&mut self) -> (Vec<Name>, Vec<Name>) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for node in self.nodes.clone() {
            if self.dice.chance(500) { one.push(node) } else { other.push(node) }
        }
        (one, other)
    }

    fn cut(&mut self, at: Duration, later: Duration) {
        let (one, other) = self.sides();
        let one_way = self.dice.chance(250);
        self.push(at, Fault::Cut { one, other, one_way });
        self.push(later, Fault::Heal);
    }

    /// There and gone, again and again.
    fn flap(&mut self, at: Duration) {
        let (one, other) = self.sides();
        let (one_way, period) = (self.dice.chance(250), 300 + self.dice.below(4_000));
        let mut at = at;
        for _ in 0..2 + self.dice.below(5) {
            let cut = Fault::Cut { one: one.clone(), other: other.clone(), one_way };
            self.push(at, cut);
            self.push(at + Duration::from_millis(period / 2), Fault::Heal);
            at += Duration::from_millis(period);
        }
    }

    /// One or two, which may come at once, at several nodes.
    fn requests(&mut self, at: Duration) {
        for _ in 0..=self.dice.below(2) {
            let (node, request) = (self.node(), self.request());
            let at = at + Duration::from_millis(self.dice.below(40));
            self.push(at, Fault::Ask { node, request });
        }
    }

    fn request(&mut self) -> FleetRequest {
        let (app, job) = (pick(&mut self.dice, &self.apps), self.job());
        let number = self.dice.below(9);
        let args = Some(vec![format!("-{number}")]).filter(|_| number < 6);
        match self.dice.below(32) {
            0..=2 => FleetRequest::StartApp { app },
            3..=5 => FleetRequest::StopApp { app },
            6..=7 => FleetRequest::RestartApp { app, wave: None },
            8..=9 => {
                let size = u32::try_from(1 + self.dice.below(3)).unwrap_or(1);
                FleetRequest::RestartApp { app, wave: Some(size) }
            }
            10..=12 => FleetRequest::StartJob { job, args },
            13..=15 => FleetRequest::StopJob { job },
            16..=17 => FleetRequest::RestartJob { job, args },
            18..=19 => FleetRequest::MoveJob { job, to: self.node() },
            20 => FleetRequest::MoveApp { app, to: self.node() },
            21..=22 => FleetRequest::Drain { node: self.node(), on: true },
            23 => FleetRequest::Drain { node: self.node(), on: false },
            24 => FleetRequest::Readmit { node: self.node() },
            25..=26 => {
                let rule = self.rule();
                let job = Some(job).filter(|_| self.dice.chance(300));
                FleetRequest::Conciliate { job, rule }
            }
            27 => FleetRequest::EndFleet { again: self.dice.chance(700) },
            28..=29 => FleetRequest::DisableJob { job },
            _ => FleetRequest::EnableJob { job },
        }
    }

    fn rule(&mut self) -> Conciliation {
        match self.dice.below(6) {
            0 => Conciliation::Senicide,
            1 => Conciliation::Infanticide,
            2 => Conciliation::User,
            3 => Conciliation::Stop,
            4 => Conciliation::Restart,
            _ => Conciliation::RunningFailure,
        }
    }

    /// All that is broken is whole again, and a user has done whatever waits for one.
    fn calm(&mut self, scenario: &Scenario) {
        let nodes = self.nodes.clone();
        self.push(CALM, Fault::Weather { loss: 0, repeats: 0, delay: 5 });
        self.push(CALM, Fault::Heal);
        for node in &nodes {
            self.push(CALM, Fault::Thaw(node.clone()));
            self.push(CALM, Fault::Slow { node: node.clone(), by: 0 });
            self.push(CALM, Fault::Boot(node.clone()));
            self.push(CALM, Fault::HandOver { node: node.clone(), on: false });
            for job in self.jobs.clone() {
                let (node, to) = (node.clone(), Written::AsElsewhere);
                self.push(CALM, Fault::Reload { node, job, to });
            }
        }
        for job in self.jobs.clone() {
            self.push(CALM, Fault::JobBreaks { job, on: false });
        }
        let ask = |node: &Name, request| Fault::Ask { node: node.clone(), request };
        if scenario.rules.auto_fence {
            for (node, other) in nodes.iter().flat_map(|it| nodes.iter().map(move |to| (it, to))) {
                if node != other {
                    let request = FleetRequest::Readmit { node: other.clone() };
                    self.push(CALM + Duration::from_secs(20), ask(node, request));
                }
            }
        }
        // What was asked of a node that had no master is done now: the end of the fleet as well.
        for node in &nodes {
            self.push(CALM + Duration::from_secs(22), Fault::Boot(node.clone()));
        }
        // What was drained may stay so.
        for node in nodes.clone() {
            if self.dice.chance(700) {
                let request = FleetRequest::Drain { node, on: false };
                self.push(CALM + Duration::from_secs(24), ask(&nodes[0], request));
            }
        }
        if scenario.rules.conciliation == Conciliation::User {
            for after in [27, 31] {
                let request = FleetRequest::Conciliate { job: None, rule: Conciliation::Senicide };
                self.push(CALM + Duration::from_secs(after), ask(&nodes[0], request));
            }
        }
    }
}

fn pick(dice: &mut Dice, of: &[Name]) -> Name {
    let at = usize::try_from(dice.below(of.len() as u64)).unwrap_or(0);
    of[at].clone()
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        let mut calm = true;
        for Step { at, fault } in &self.steps {
            // What is mended at the end would hide what has happened.
            let mends = matches!(
                fault,
                Fault::Reload { to: Written::AsElsewhere, .. }
                    | Fault::JobBreaks { on: false, .. }
                    | Fault::Thaw(_)
                    | Fault::Slow { by: 0, .. }
                    | Fault::HandOver { on: false, .. }
            );
            if *at == CALM && mends {
                if std::mem::take(&mut calm) {
                    writeln!(f, "{:>8.3}s  whatever is broken is mended", at.as_secs_f64())?;
                }
                continue;
            }
            writeln!(f, "{:>8.3}s  {fault}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
