//! The machine of rollouts in small worlds: as stories, one for each case that somebody has thought
//! of (`stories`, `failures`, `hindered`, `services`, `steered`), and in every order of events
//! (`exhaustive`).

mod exhaustive;
mod failures;
mod hindered;
mod ready;
mod services;
mod steered;
mod stories;
mod waves;

use mainstay_core::{plan::RolloutPlan, rollout::Rollout};
use mainstay_sim::rollout::{Draft, RolloutWorld, name};

/// One profile, one template, one service, all told.
fn small() -> RolloutWorld {
    world(Draft::new("app", &[("conf", "app")], &[("web", "conf")]).0)
}

fn world(plan: RolloutPlan) -> RolloutWorld {
    let mut world = RolloutWorld::new(plan);
    world.told = Some(Vec::new());
    world
}

/// A world that has booted with version 1 of everything.
fn booted(plan: RolloutPlan) -> RolloutWorld {
    let mut world = world(plan);
    world.start(false);
    world.run();
    told(&mut world);
    world
}

fn machine(world: &RolloutWorld) -> &Rollout {
    world.machine.as_ref().expect("an agent")
}

/// What has happened since the last time.
fn told(world: &mut RolloutWorld) -> Vec<String> {
    world.told.replace(Vec::new()).unwrap_or_default()
}

fn serve(world: &mut RolloutWorld, profile: &str, content: u8) {
    world.sources.get_mut(&name(profile)).expect("a source").serves = Some(content);
}

fn silence(world: &mut RolloutWorld, profile: &str) {
    world.sources.get_mut(&name(profile)).expect("a source").serves = None;
}

/// A service that cannot use a content.
fn spoil(world: &mut RolloutWorld, service: &str, content: u8) {
    world.services.get_mut(&name(service)).expect("a service").cannot.insert(content);
}

fn applied(world: &RolloutWorld, profile: &str) -> Option<u8> {
    Some(world.kept.profiles.get(&name(profile))?.applied.as_ref()?.digest.0[0])
}

fn file(world: &RolloutWorld, template: &str) -> Option<u8> {
    world.files.get(&name(template)).copied()
}
