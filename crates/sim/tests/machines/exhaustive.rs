//! Every order of events in small worlds.

use mainstay_core::{
    event::EventName,
    plan::{ExitRule, JobPlan, NodePlan, Plan, Restart, RestartOn, Trigger},
};
use mainstay_sim::{
    plans,
    world::{Agency, Choice, Scope, World},
};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::time::Duration;

const KEPT: &str = "no promise is broken";
const SETTLED: &str = "what is quiet is settled";
const SECOND: Duration = Duration::from_secs(1);

struct Worlds {
    plan: Plan,
    scope: Scope,
    agency: Agency,
}

impl Model for Worlds {
    type State = World;
    type Action = Choice;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.plan, self.scope)]
    }

    fn actions(&self, world: &World, choices: &mut Vec<Choice>) {
        world.choices(choices);
    }

    fn next_state(&self, world: &World, choice: Choice) -> Option<World> {
        let mut world = world.clone();
        world.choose(&self.plan, self.agency, choice);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Worlds>> {
        vec![
            Property::always(KEPT, |_, world: &World| world.broken.is_none()),
            Property::always(SETTLED, |worlds: &Worlds, world: &World| {
                !world.is_quiet() || world.is_settled(&worlds.plan)
            }),
            Property::sometimes("it comes to that", |_, world: &World| {
                world.is_quiet() || world.exit.is_some()
            }),
        ]
    }
}

fn worlds(jobs: Vec<JobPlan>, exit: ExitRule, scope: Scope, agency: Agency) -> Worlds {
    let node = NodePlan { exit, ..plans::node() };
    Worlds { plan: Plan::new(node, jobs), scope, agency }
}

fn visit(jobs: Vec<JobPlan>, exit: ExitRule, scope: Scope) {
    let worlds = worlds(jobs, exit, scope, Agency::Correct);
    let begin = std::time::Instant::now();
    let checker = worlds.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    println!("{} worlds in {:?}", checker.unique_state_count(), begin.elapsed());
}

/// The first promise that is found broken, if any.
fn find_mistake(jobs: Vec<JobPlan>, scope: Scope, agency: Agency) -> Option<&'static str> {
    let worlds = worlds(jobs, ExitRule::Never, scope, agency);
    let builder = worlds.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    let broken = checker.discovery(KEPT).map(|path| path.last_state().broken.expect("broken"));
    broken.or_else(|| checker.discovery(SETTLED).map(|_| SETTLED))
}

fn job(name: &str, on: RestartOn) -> JobPlan {
    let mut job = JobPlan::new(plans::name(name), vec![format!("./{name}")]);
    // A delay that does not grow: back-off is the business of other tests.
    job.restart = Restart { delay: Some(SECOND), max_delay: SECOND, ..Restart::on(on) };
    job
}

/// Everything that takes time, and everything that is decided by it.
fn slow_job(name: &str) -> JobPlan {
    let mut job = job(name, RestartOn::Any);
    job.start_seconds = SECOND;
    job.stop.exec = Some(vec!["./drain".to_owned()]);
    job
}

const NOTHING: Scope =
    Scope { agent_deaths: 0, exits: 0, requests: 0, shutdowns: 0, control_stops: 0 };

#[test]
fn one_job_and_two_requests_in_every_order() {
    let scope = Scope { agent_deaths: 1, exits: 1, requests: 2, ..NOTHING };
    visit(vec![slow_job("web")], ExitRule::Never, scope);
}

#[test]
fn one_job_and_two_agent_deaths_in_every_order() {
    let scope = Scope { agent_deaths: 2, exits: 2, requests: 1, ..NOTHING };
    visit(vec![slow_job("web")], ExitRule::Never, scope);
}

#[test]
fn one_job_and_a_control_socket_in_every_order() {
    let scope = Scope { agent_deaths: 1, exits: 1, requests: 1, control_stops: 1, ..NOTHING };
    visit(vec![job("web", RestartOn::Any)], ExitRule::Never, scope);
}

#[test]
fn two_jobs_in_every_order() {
    let jobs = vec![job("web", RestartOn::Failure), job("log", RestartOn::Never)];
    let scope = Scope { agent_deaths: 2, exits: 1, requests: 1, ..NOTHING };
    visit(jobs, ExitRule::Never, scope);
}

#[test]
fn a_shutdown_in_every_order() {
    let mut web = job("web", RestartOn::Failure);
    web.main = true;
    let jobs = vec![web, job("log", RestartOn::Failure)];
    let scope = Scope { agent_deaths: 1, shutdowns: 2, exits: 1, ..NOTHING };
    visit(jobs, ExitRule::Main, scope);
}

#[test]
fn a_job_a_follower_and_a_hook_in_every_order() {
    let mut web = job("web", RestartOn::Never);
    web.when.once = vec![plans::says("db", EventName::Healthy)];
    let mut hook = job("hook", RestartOn::Never);
    hook.when.trigger = Some(Trigger::Each(vec![plans::says("db", EventName::Stopping)]));
    let jobs = vec![job("db", RestartOn::Never), web, hook];
    let scope = Scope { agent_deaths: 1, shutdowns: 1, ..NOTHING };
    visit(jobs, ExitRule::All, scope);
}

#[test]
#[ignore = "millions of worlds: minutes"]
fn larger_worlds_in_every_order() {
    let scope = Scope { agent_deaths: 2, exits: 2, requests: 2, control_stops: 1, ..NOTHING };
    visit(vec![slow_job("web")], ExitRule::Never, scope);
    let jobs = vec![job("web", RestartOn::Failure), job("log", RestartOn::Any)];
    let scope = Scope { agent_deaths: 2, exits: 2, requests: 1, ..NOTHING };
    visit(jobs, ExitRule::Never, scope);
}

#[test]
fn a_record_acknowledged_before_it_is_journaled_is_an_exit_lost() {
    let scope = Scope { agent_deaths: 1, exits: 1, ..NOTHING };
    let jobs = vec![job("web", RestartOn::Failure)];
    let mistake = find_mistake(jobs, scope, Agency::AcknowledgesTooEarly);
    assert_eq!(mistake, Some("an end is lost"));
}

#[test]
fn a_record_replayed_onto_a_later_incarnation_is_an_exit_that_never_was() {
    let scope = Scope { agent_deaths: 1, exits: 1, ..NOTHING };
    let jobs = vec![job("web", RestartOn::Failure)];
    let mistake = find_mistake(jobs, scope, Agency::IgnoresIncarnations);
    assert_eq!(mistake, Some("an exit is told that never was"));
}

#[test]
fn a_takeover_without_reconciliation_never_settles() {
    let scope = Scope { agent_deaths: 1, ..NOTHING };
    let jobs = vec![job("web", RestartOn::Failure)];
    let mistake = find_mistake(jobs, scope, Agency::ForgetsToAttach);
    assert_eq!(mistake, Some(SETTLED));
}
