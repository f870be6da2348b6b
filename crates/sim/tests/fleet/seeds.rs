//! Fleets in all the trouble that a seed makes.

use mainstay_core::plan::{OnFailure, Place};
use mainstay_sim::fleet::{FleetWorld, Script, invariants, scenario::Scenario};
use std::time::Duration;

/// Two minutes, of which the last are quiet.
const END: Duration = Duration::from_secs(130);

fn scenario() -> Scenario {
    let required = |start_sequence| Place { start_sequence, required: true, ..Place::default() };
    Scenario::of("a b c d e")
        .app("base", OnFailure::RestartProcess)
        .job_of("db", 40, required(1))
        .job("cache", 1, 30)
        .app("shop", OnFailure::RestartApp)
        .job("cart", 1, 20)
        .job("web", 2, 50)
        .app("extra", OnFailure::Continue)
        .job("mail", 1, 10)
}

/// The fleet of a seed, which has not begun.
pub(crate) fn world(seed: u64) -> FleetWorld {
    let scenario = scenario();
    let (apps, jobs) = scenario.names();
    let script = Script::random(seed, &scenario.nodes, &apps, &jobs);
    FleetWorld::new(scenario, script)
}

/// What is broken in the fleet of a seed, and the story of it.
fn play(seed: u64) -> Option<String> {
    let scenario = scenario();
    let (apps, jobs) = scenario.names();
    let script = Script::random(seed, &scenario.nodes, &apps, &jobs);
    let mut world = FleetWorld::new(scenario, script.clone());
    world.run_until(END);
    let seen = world.observe();
    let broken = [invariants::always(&seen), invariants::settled(&seen)].concat();
    (!broken.is_empty()).then(|| {
        format!("{seed}: {}\n{script}\nreplay: MAINSTAY_FLEET_SEED={seed} cargo test -p mainstay-sim --test fleet one_seed -- --nocapture\n", broken.join("\n"))
    })
}

#[test]
fn whatever_happens_a_fleet_comes_to_rest_as_it_should() {
    let count = std::env::var("MAINSTAY_FLEET_SEEDS").ok().and_then(|it| it.parse().ok());
    let first =
        std::env::var("MAINSTAY_FLEET_FIRST").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let seeds = first..first + count.unwrap_or(30);
    let broken: Vec<String> = seeds.filter_map(play).collect();
    let first: Vec<&str> = broken.iter().filter_map(|it| it.lines().next()).take(30).collect();
    assert!(broken.is_empty(), "{} are broken:\n{}\n{}", broken.len(), first.join("\n"), broken[0]);
}

/// One of them again, with all that has happened.
#[test]
fn one_seed() {
    let Some(seed) = std::env::var("MAINSTAY_FLEET_SEED").ok().and_then(|it| it.parse().ok())
    else {
        return;
    };
    let mut world = world(seed);
    world.run_until(END);
    println!("{}", world.trace);
    assert_eq!(play(seed), None);
}
