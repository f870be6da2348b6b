//! Lives: over random plans, requests, crashes and agents that die, each stop runs each hook once,
//! and no job runs that nobody has started.
//!
//! Hooks end in time here, and nobody asks for them: so the runs of a hook are as many as the lives
//! of its source that have ended. A job that rests has been stopped, or has ended for good; from
//! then on only a request for it, or the end of its source if it is a hook, may launch it.

use mainstay_core::{
    event::EventName,
    job::{Desired, Phase},
    node::{NodePhase, Token, Wait},
    plan::{Condition, JobPlan, OnLoss, Plan, Restart, RestartOn, SourceRef, Trigger, While},
};
use mainstay_sim::{
    plans,
    world::{Agency, Choice, Scope, What, World},
};
use proptest::{
    collection::vec, prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner,
};
use std::time::Duration;

const APP: usize = 0;
const HOOKS: [usize; 2] = [1, 2];
const NAMES: [&str; 6] = ["app", "pre", "post", "migrate", "web", "log"];
const SCOPE: Scope =
    Scope { agent_deaths: 6, exits: 12, requests: 12, shutdowns: 1, control_stops: 2 };

/// A world, and what has been seen of it.
struct Chronicle {
    plan: Plan,
    world: World,
    agency: Agency,
    /// The launches of each job.
    runs: Vec<u64>,
    /// The lives of each job that have ended.
    lives: Vec<u64>,
    /// Nobody has asked for it since it came to rest.
    rests: Vec<bool>,
    wrong: Option<String>,
}

impl Chronicle {
    fn new(plan: Plan, agency: Agency) -> Chronicle {
        let jobs = plan.jobs.len();
        let world = World::new(&plan, SCOPE);
        let (runs, lives, rests) = (vec![0; jobs], vec![0; jobs], vec![false; jobs]);
        Chronicle { plan, world, agency, runs, lives, rests, wrong: None }
    }

    /// All that may happen, but for the impatience of stops and the requests for hooks.
    fn choices(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        self.world.choices(&mut all);
        all.retain(|choice| match choice {
            Choice::WaitEnds { index } => {
                let waits = self.world.agent.as_ref().map(|agent| &agent.waits);
                !matches!(
                    waits.and_then(|waits| waits.get(*index)),
                    Some((
                        Token::Job { wait: Wait::StopTimeout, .. }
                            | Token::App { .. }
                            | Token::ShutdownDeadline
                            | Token::ShutdownOverdue,
                        _
                    ))
                )
            }
            Choice::Asks { job, .. } | Choice::ControlStop { job } => !HOOKS.contains(job),
            _ => true,
        });
        all
    }

    fn choose(&mut self, choice: Choice) {
        let before = self.world.journal.clone();
        let highest: Vec<u64> = self.world.keeper.jobs.iter().map(|kept| kept.highest).collect();
        self.world.choose(&self.plan, self.agency, choice);
        let stopping = self.world.journal.state.phase() == NodePhase::Stopping;
        if let Choice::Asks { job, what: What::Start | What::Restart } = choice
            && !stopping
        {
            self.rests[job] = false;
        }
        for (job, highest) in highest.into_iter().enumerate() {
            let (was, is) = (&before.jobs[job], &self.world.journal.jobs[job]);
            let (life, wanted) = (was.incarnation(), is.desired() != Desired::Rest);
            if was.is_of_this_life(life) && !is.is_of_this_life(life) {
                self.lives[job] += 1;
            }
            if self.world.keeper.jobs[job].highest > highest {
                self.runs[job] += 1;
                self.look_at_launch(job);
            }
            if !wanted && !HOOKS.contains(&job) {
                self.rests[job] = true;
            }
        }
    }

    fn look_at_launch(&mut self, job: usize) {
        let ending = self.world.journal.jobs[APP].phase() == Phase::Stopping;
        let ends = self.lives[APP] + u64::from(ending);
        let name = NAMES[job];
        if HOOKS.contains(&job) && self.runs[job] > ends {
            self.wrong = Some(format!("{name} runs {} times for {ends} ends", self.runs[job]));
        } else if self.rests[job] {
            self.wrong = Some(format!("{name} runs, and nobody has started it"));
        }
    }

    /// Lets everything end that is under way, hooks by themselves.
    fn calm_down(&mut self) {
        for _ in 0..3_000 {
            if self.world.exit.is_some() || self.world.broken.is_some() {
                return;
            }
            let left =
                Scope { agent_deaths: 0, exits: 0, requests: 0, shutdowns: 0, control_stops: 0 };
            self.world.left = left;
            let hook = HOOKS.into_iter().find(|hook| {
                self.world.keeper.jobs[*hook].live.as_ref().is_some_and(|live| live.executed)
            });
            let choice = match (self.choices().first().copied(), hook) {
                (Some(choice), _) => choice,
                (None, Some(job)) => {
                    self.world.left.exits = 1;
                    Choice::Ends { job, code: 0 }
                }
                (None, None) => return,
            };
            self.choose(choice);
        }
    }

    /// What is wrong once nothing is under way.
    fn verdict(mut self) -> Option<String> {
        self.calm_down();
        if let Some(broken) = self.world.broken {
            return Some(broken.to_owned());
        }
        let missed = HOOKS.into_iter().find(|hook| self.runs[*hook] != self.lives[APP]);
        let told = |hook: usize| {
            let (name, runs, ends) = (NAMES[hook], self.runs[hook], self.lives[APP]);
            format!("{name} has run {runs} times for {ends} ends")
        };
        self.wrong.clone().or_else(|| missed.map(told))
    }
}

fn live(plan: Plan, agency: Agency, steps: &[Index]) -> Option<String> {
    let mut chronicle = Chronicle::new(plan, agency);
    for step in steps {
        let choices = chronicle.choices();
        if choices.is_empty() {
            break;
        }
        chronicle.choose(*step.get(&choices));
    }
    chronicle.verdict()
}

/// A job with hooks, and others that wait for it, follow it, or do neither.
fn plan() -> impl Strategy<Value = Plan> {
    let on = || prop_oneof![Just(RestartOn::Never), Just(RestartOn::Failure), Just(RestartOn::Any)];
    let seconds = || prop_oneof![Just(0u64), Just(1)].prop_map(Duration::from_secs);
    let hook = || any::<bool>();
    let gates = vec((3..6usize, prop_oneof![Just(0usize), Just(3), Just(4)], 0..5u32), 0..4);
    (on(), seconds(), [hook(), hook()], on(), gates).prop_map(|(on, delay, each, other, gates)| {
        let mut jobs: Vec<JobPlan> = NAMES
            .iter()
            .map(|name| JobPlan::new(plans::name(name), vec![format!("./{name}")]))
            .collect();
        jobs[APP].restart = Restart { delay: Some(delay), max_delay: delay, ..Restart::on(on) };
        let ends = [EventName::Stopping, EventName::Stopped];
        for ((hook, end), each) in HOOKS.into_iter().zip(ends).zip(each) {
            let job = &mut jobs[hook];
            job.restart = Restart::on(RestartOn::Never);
            let end = plans::says(NAMES[APP], end);
            match each {
                true => job.when.trigger = Some(Trigger::Each(vec![end])),
                false => job.when.once.push(end),
            }
        }
        jobs[3].restart = Restart::on(RestartOn::Never);
        jobs[3].when.once.push(plans::says(NAMES[APP], EventName::Healthy));
        jobs[4].restart = Restart { delay: Some(delay), max_delay: delay, ..Restart::on(other) };
        for (at, source, how) in gates {
            gate(&mut jobs[at], NAMES[source], how);
        }
        Plan::new(plans::node(), jobs)
    })
}

fn gate(job: &mut JobPlan, source: &str, how: u32) {
    if job.name.as_str() == source {
        return;
    }
    let event = |event| -> Condition { plans::says(source, event) };
    let follows = |on_loss| Some(While { source: SourceRef::Job(plans::name(source)), on_loss });
    match how {
        0 => job.when.once.push(event(EventName::Healthy)),
        1 => job.when.once.push(event(EventName::ExitSuccess)),
        2 => job.follows = follows(OnLoss::Stop),
        3 => job.follows = follows(OnLoss::Restart),
        _ => job.when.once.push(event(EventName::ExitFailed)),
    }
}

proptest! {
    #![proptest_config(crate::same_cases(400))]

    #[test]
    fn each_stop_runs_each_hook_once_and_nobody_runs_unasked(
        plan in plan(),
        steps in vec(any::<Index>(), 0..250),
    ) {
        prop_assert_eq!(live(plan, Agency::Correct, &steps), None);
    }
}

/// An agent that forgets what it had left to do loses a hook.
#[test]
fn a_hook_that_is_lost_is_missed() {
    let mut runner = TestRunner::deterministic();
    let cases = (plan(), vec(any::<Index>(), 100..250));
    let found = (0..400).any(|_| {
        let (plan, steps) = cases.new_tree(&mut runner).expect("a case").current();
        let said = live(plan, Agency::ForgetsToAttach, &steps);
        said.is_some_and(|said| said.contains("has run"))
    });
    assert!(found, "nobody has missed it");
}
