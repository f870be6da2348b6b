//! Every order of events in small worlds: whatever dies when, a set of files is the old one or the
//! new one, and services have what is in place.

use mainstay_core::{
    plan::{ReloadMethod, RolloutPlan},
    rollout::{InstanceNumber, RolloutInput, RolloutRequest, ToldState},
};
use mainstay_sim::rollout::{Draft, RolloutWorld, name};
use stateright::{Checker, HasDiscoveries, Model, Property};

const WHOLE: &str = "at rest a set is whole";
const TOLD: &str = "at rest services have what is in place";
const WANTED: &str = "at rest no version is in place that has failed";

struct Rollouts {
    plan: RolloutPlan,
    deaths: u8,
    versions: u8,
    ticks: u8,
    flips: bool,
    /// What the last service cannot use.
    bad: Option<u8>,
    /// A world that forgets something when an agent dies, to see that it is found.
    forgets: Forgets,
}

#[derive(Clone, Copy, PartialEq)]
enum Forgets {
    Nothing,
    TheRecord,
    WhoWasTold,
}

#[derive(Debug, Clone, PartialEq, Hash)]
struct State {
    world: RolloutWorld,
    deaths: u8,
    version: u8,
    ticks: u8,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Choice {
    GoOn,
    Die,
    DieBetweenFiles,
    EndRun,
    Tick,
    Serve(u8),
    Refresh,
}

impl State {
    fn is_at_rest(&self) -> bool {
        let idle = self.world.machine.as_ref().is_some_and(|it| it.is_idle());
        idle && self.world.open.is_empty() && self.world.kept.update.is_none()
    }
}

impl Model for Rollouts {
    type State = State;
    type Action = Choice;

    fn init_states(&self) -> Vec<State> {
        let mut world = RolloutWorld::new(self.plan.clone());
        for service in world.services.values_mut() {
            if self.flips {
                service.instances.active.insert(InstanceNumber::One);
            }
        }
        if let Some(service) = self.plan.services.last() {
            world.services.get_mut(&service.name).expect("there").cannot.extend(self.bad);
        }
        world.start(false);
        vec![State { world, deaths: self.deaths, version: 1, ticks: self.ticks }]
    }

    fn actions(&self, state: &State, choices: &mut Vec<Choice>) {
        if !state.world.open.is_empty() {
            choices.push(Choice::GoOn);
        } else if state.ticks > 0 && state.world.wakes_at().is_some() {
            choices.push(Choice::Tick);
        }
        if state.deaths > 0 {
            choices.extend([Choice::Die, Choice::DieBetweenFiles, Choice::EndRun]);
        }
        if state.version < self.versions {
            choices.push(Choice::Serve(state.version + 1));
        }
        if state.is_at_rest() && state.world.kept.pending.is_some() && state.deaths > 0 {
            choices.push(Choice::Refresh);
        }
    }

    fn next_state(&self, state: &State, choice: Choice) -> Option<State> {
        let mut state = state.clone();
        match choice {
            Choice::GoOn => drop(state.world.carry_out()),
            Choice::Die | Choice::DieBetweenFiles | Choice::EndRun => {
                state.deaths -= 1;
                match choice {
                    Choice::DieBetweenFiles => state.world.die_between_files(),
                    Choice::Die
                    | Choice::EndRun
                    | Choice::GoOn
                    | Choice::Tick
                    | Choice::Serve(_)
                    | Choice::Refresh => state.world.kill(),
                }
                match self.forgets {
                    Forgets::Nothing => {}
                    Forgets::TheRecord => state.world.kept.update = None,
                    Forgets::WhoWasTold => {
                        let record = state.world.kept.update.as_mut();
                        let services = record.into_iter().flat_map(|it| &mut it.services);
                        services.for_each(|it| (it.told, it.ran) = (ToldState::Untold, false));
                    }
                }
                state.world.start(choice != Choice::EndRun);
            }
            Choice::Tick => {
                state.ticks -= 1;
                state.world.tick();
            }
            Choice::Serve(version) => {
                state.version = version;
                let source = state.world.sources.get_mut(&name("a")).expect("a source");
                source.serves = Some(version);
                state.world.step(RolloutInput::Noticed { profile: name("a") });
            }
            Choice::Refresh => {
                state.deaths -= 1;
                // It may be refused.
                let _ = state.world.ask(RolloutRequest::Refresh { profile: None, force: false });
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Rollouts>> {
        vec![
            Property::always(WHOLE, |_, state: &State| {
                !state.is_at_rest() || state.world.is_whole()
            }),
            Property::always(TOLD, |_, state: &State| {
                let world = &state.world;
                let has = |service| world.services[service].has == world.files_of(service);
                let mut all = world.plan.services.iter().map(|it| &it.name);
                !state.is_at_rest() || world.files.is_empty() || all.all(has)
            }),
            Property::always(WANTED, |rollouts: &Rollouts, state: &State| {
                let bad = state.world.files.values().any(|content| Some(*content) == rollouts.bad);
                !state.is_at_rest() || !bad
            }),
            Property::sometimes("something is applied", |_, state: &State| {
                state.is_at_rest() && !state.world.files.is_empty()
            }),
        ]
    }
}

fn two_files() -> Rollouts {
    let plan = Draft::new("a", &[("t", "a"), ("u", "a")], &[("x", "t u"), ("y", "u")]);
    let plan = plan.with(|it| it.on_failure = Some(vec!["tell".to_owned()])).0;
    Rollouts {
        plan,
        deaths: 2,
        versions: 3,
        ticks: 2,
        flips: false,
        bad: Some(3),
        forgets: Forgets::Nothing,
    }
}

fn visit(rollouts: Rollouts) {
    let checker = rollouts.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    println!("{} states", checker.unique_state_count());
}

/// The first promise that is found broken, if any.
fn find_mistake(rollouts: Rollouts) -> Option<&'static str> {
    let builder = rollouts.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    [WHOLE, TOLD, WANTED].into_iter().find(|it| checker.discovery(it).is_some())
}

#[test]
fn two_files_and_two_services_in_every_order() {
    visit(two_files());
}

#[test]
fn two_profiles_in_every_order() {
    let plan = Draft::new("a b", &[("t", "a"), ("u", "a b")], &[("x", "u")]).0;
    visit(Rollouts { plan, deaths: 1, bad: Some(4), ..two_files() });
}

#[test]
fn flip_flop_in_every_order() {
    let plan = Draft::new("a", &[("t", "a")], &[("x", "t")]);
    let plan = plan.with(|it| it.services[0].reload = ReloadMethod::FlipFlop).0;
    visit(Rollouts { plan, deaths: 2, versions: 2, flips: true, bad: None, ..two_files() });
}

#[test]
fn an_agent_that_forgets_the_record_is_found_out() {
    assert!(find_mistake(Rollouts { forgets: Forgets::TheRecord, ..two_files() }).is_some());
}

#[test]
fn an_agent_that_forgets_whom_it_has_told_is_found_out() {
    let rollouts = Rollouts { forgets: Forgets::WhoWasTold, ..two_files() };
    assert_eq!(find_mistake(rollouts), Some(TOLD));
}
