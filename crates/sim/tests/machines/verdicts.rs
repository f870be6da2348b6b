//! `unhealthy` is a verdict: beside a job with a check, its process and agents that die, a judge
//! keeps in mind only what a person would have seen, and says when it has to be said and when not.

use crate::journaled::written;
use mainstay_core::{
    clock::{Mono, Now},
    event::Kind,
    exit::{Asked, Exit},
    job::{Desired, Job, Phase},
    node::{Command, Held, Input, Node, Request, Token},
    plan::{Check, JobPlan, Plan, Probe, Restart, RestartOn},
    record::Memory,
    signal::Signal,
};
use mainstay_sim::plans;
use proptest::{collection::vec, option, prelude::*};
use std::{collections::BTreeMap, time::Duration};

const JOB: &str = "web";

/// What happens to the job.
#[derive(Debug, Clone, Copy)]
enum Incident {
    ComesUp,
    Passes,
    Fails,
    Ends { code: i32 },
    Starts,
    Stops,
    Restarts,
    AgentDies,
    Waits { ms: u64 },
}

/// A node with one job, whose stops take no time.
struct Stage {
    plan: Plan,
    node: Node,
    now: Mono,
    timers: BTreeMap<Token, Mono>,
    /// The process that the keeper has: its incarnation, and if it has come up.
    live: Option<(u64, bool)>,
    highest: u64,
    judge: Judge,
}

/// What a person knows of the job.
#[derive(Default)]
struct Judge {
    /// Its process has passed, and nothing has failed since.
    passed: bool,
    /// It has been healthy since it was last at rest.
    been_healthy: bool,
    /// The verdict is said, and nobody has restarted it since.
    said: bool,
    /// It has to have passed by then.
    deadline: Option<Mono>,
}

impl Stage {
    fn new(plan: Plan) -> Stage {
        let node = Node::new(plan.clone());
        let (timers, judge) = (BTreeMap::new(), Judge::default());
        let mut stage = Stage { plan, node, now: Mono(0), timers, live: None, highest: 0, judge };
        stage.tell(Input::Boot, false);
        stage
    }

    fn job(&self) -> &Job {
        self.node.job(JOB).expect("the job")
    }

    fn job_plan(&self) -> &JobPlan {
        &self.plan.jobs[0]
    }

    fn play(&mut self, incident: Incident) {
        match (incident, self.live) {
            (Incident::ComesUp, Some((incarnation, false))) => {
                self.live = Some((incarnation, true));
                let (job, pid) = (plans::name(JOB), 7);
                self.tell(Input::Spawned { job, incarnation, pid }, false);
            }
            (Incident::Passes, Some((_, true))) => self.check(true),
            (Incident::Fails, Some((_, true))) => {
                (0..self.job_plan().checks[0].fall).for_each(|_| self.check(false));
            }
            (Incident::Ends { code }, Some(_)) => self.end(Exit::Code { code }, Asked::None),
            (Incident::Starts, _) => {
                self.ask(Request::Start { jobs: vec![plans::name(JOB)], args: None, now: false })
            }
            (Incident::Stops, _) => self.ask(Request::Stop { job: plans::name(JOB) }),
            (Incident::Restarts, _) => {
                self.ask(Request::Restart { jobs: vec![plans::name(JOB)], args: None })
            }
            (Incident::AgentDies, _) => self.replace_agent(),
            (Incident::Waits { ms }, _) => self.wait(self.now.after(Duration::from_millis(ms))),
            (Incident::ComesUp | Incident::Passes | Incident::Fails | Incident::Ends { .. }, _) => {
            }
        }
    }

    fn ask(&mut self, request: Request) {
        self.tell(Input::Request(request), false);
    }

    fn check(&mut self, passed: bool) {
        let Some((incarnation, true)) = self.live else { return };
        let (job, output) = (plans::name(JOB), String::new());
        let failing = !passed && self.judge.passed;
        self.tell(Input::Checked { job, incarnation, check: 0, passed, output }, failing);
    }

    fn end(&mut self, exit: Exit, asked: Asked) {
        let Some((incarnation, _)) = self.live.take() else { return };
        let unexpected = asked == Asked::None && exit != (Exit::Code { code: 0 });
        let was_healthy = self.judge.passed || self.judge.deadline.is_some();
        let input = Input::Exited { job: plans::name(JOB), incarnation, exit, usage: None, asked };
        let before = self.judge.passed;
        let over = self.step(input);
        let (desired, phase) = (self.job().desired(), self.job().phase());
        let ended = desired == Desired::Rest && phase.is_at_rest();
        // One that is given up has failed, whatever it ended with.
        let failed = unexpected || phase == Phase::Fatal;
        self.judge.take(&over, self.now, ended && failed && was_healthy);
        let deadline = self.now.after(self.job_plan().recovers_within());
        match (ended, asked) {
            (true, _) => self.judge = Judge::default(),
            (false, Asked::None) if before => {
                (self.judge.passed, self.judge.deadline) = (false, Some(deadline));
            }
            (false, Asked::None) => {}
            (false, Asked::Stop | Asked::Kill) => {
                (self.judge.passed, self.judge.said) = (false, false);
                self.judge.deadline = self.judge.been_healthy.then_some(deadline);
            }
        }
    }

    fn tell(&mut self, input: Input, justified: bool) {
        let said = self.step(input);
        self.judge.take(&said, self.now, justified);
        if self.job().desired() == Desired::Rest && self.live.is_none() {
            self.judge = Judge::default();
        }
        if self.is_being_stopped() {
            if self.job().desired() == Desired::Rest {
                self.judge.been_healthy = false;
            }
            self.end(Exit::Signal { signal: Signal::TERM, oom: false }, Asked::Stop);
        }
    }

    fn is_being_stopped(&self) -> bool {
        self.live.is_some() && self.job().phase() == Phase::Stopping
    }

    /// What the job has said.
    fn step(&mut self, input: Input) -> Vec<Kind> {
        let outcome = self.node.step(Now { mono: self.now, wall: 0 }, input);
        for command in outcome.commands {
            match command {
                Command::Spawn { incarnation, .. } if incarnation > self.highest => {
                    (self.live, self.highest) = (Some((incarnation, false)), incarnation);
                }
                Command::SetTimer { token, at } => drop(self.timers.insert(token, at)),
                _ => {}
            }
        }
        outcome.events.into_iter().map(|event| event.kind).collect()
    }

    fn replace_agent(&mut self) {
        let mut memory = Memory::default();
        self.node.snapshot().iter().for_each(|record| memory.take(written(record)));
        memory.told(self.node.seq());
        self.node = memory.restore(self.plan.clone());
        self.timers.clear();
        let live = self.live.filter(|(_, up)| *up).map(|(incarnation, _)| (incarnation, 7));
        let pending = self.live.is_some_and(|(_, up)| !up);
        let open = self.live.is_some();
        let (job, highest) = (plans::name(JOB), self.highest);
        let held = vec![Held { job, highest, live, pending, open, summary: None }];
        let (agent_restarts, upgraded, lost) = (1, Vec::new(), None);
        self.tell(Input::Attached { held, agent_restarts, upgraded, lost }, false);
    }

    /// Waits end in their order.
    fn wait(&mut self, until: Mono) {
        while let Some((token, at)) =
            self.timers.iter().min_by_key(|(_, at)| **at).map(|(token, at)| (token.clone(), *at))
            && at <= until
        {
            self.timers.remove(&token);
            self.now = self.now.max(at);
            self.tell(Input::Timer { token }, false);
        }
        self.now = until;
    }
}

impl Judge {
    /// `justified`: what has happened is reason enough for the verdict.
    fn take(&mut self, said: &[Kind], now: Mono, justified: bool) {
        for kind in said {
            match kind {
                Kind::Healthy => {
                    assert!(!self.passed, "once, of each process");
                    *self = Judge { passed: true, been_healthy: true, said: false, deadline: None };
                }
                Kind::Unhealthy => {
                    let late = self.deadline.is_some_and(|at| at <= now);
                    assert!(justified || late, "there is no reason for it");
                    assert!(self.been_healthy && !self.said, "it is not news");
                    (self.passed, self.said, self.deadline) = (false, true, None);
                }
                _ => {}
            }
        }
    }

    fn is_satisfied(&self, now: Mono) -> bool {
        self.deadline.is_none_or(|at| now < at)
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let seconds = |most: u64| (0..most).prop_map(Duration::from_secs);
    let on = prop_oneof![Just(RestartOn::Never), Just(RestartOn::Failure), Just(RestartOn::Any)];
    (on, seconds(4), option::of(0u32..3), 1..3u32, seconds(3), seconds(3)).prop_map(
        |(on, delay, limit, fall, start_period, start_seconds)| {
            let mut job = JobPlan::new(plans::name(JOB), vec!["./web".to_owned()]);
            let max_delay = Duration::from_secs(4);
            job.restart = Restart { delay: Some(delay), max_delay, limit, ..Restart::on(on) };
            job.start_seconds = start_seconds;
            let interval = Duration::from_secs(1);
            let check = Check::new("tcp".to_owned(), Probe::Tcp("[::1]:1".to_owned()));
            job.checks = vec![Check { interval, fall, start_period, ..check }];
            Plan::new(plans::node(), vec![job])
        },
    )
}

fn incident() -> impl Strategy<Value = Incident> {
    prop_oneof![
        6 => Just(Incident::ComesUp),
        6 => Just(Incident::Passes),
        2 => Just(Incident::Fails),
        3 => (0..2).prop_map(|code| Incident::Ends { code }),
        1 => Just(Incident::Starts),
        1 => Just(Incident::Stops),
        2 => Just(Incident::Restarts),
        2 => Just(Incident::AgentDies),
        4 => (0u64..4_000).prop_map(|ms| Incident::Waits { ms }),
    ]
}

proptest! {
    #![proptest_config(crate::same_cases(1000))]

    #[test]
    fn unhealthy_is_said_when_it_is_true_and_once(plan in plan(), incidents in vec(incident(), 0..60)) {
        let mut stage = Stage::new(plan);
        for incident in incidents {
            stage.play(incident);
            prop_assert!(stage.judge.is_satisfied(stage.now), "nobody has said it");
        }
        stage.play(Incident::Waits { ms: 60_000 });
        prop_assert!(stage.judge.is_satisfied(stage.now), "nobody has said it");
    }
}

/// An agent that does not set the wait again would keep the verdict for itself.
#[test]
fn the_judge_misses_a_verdict_that_is_not_said() {
    let mut job = JobPlan::new(plans::name(JOB), vec!["./web".to_owned()]);
    job.checks = vec![Check::new("tcp".to_owned(), Probe::Tcp("[::1]:1".to_owned()))];
    let mut stage = Stage::new(Plan::new(plans::node(), vec![job]));
    for incident in [Incident::ComesUp, Incident::Passes, Incident::Ends { code: 1 }] {
        stage.play(incident);
    }
    stage.timers.clear();
    stage.play(Incident::Waits { ms: 60_000 });
    assert!(!stage.judge.is_satisfied(stage.now));
}
