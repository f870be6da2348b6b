//! Fleets in all the trouble that a seed makes.

use mainstay_sim::fleet::{FleetWorld, invariants};
use std::time::Duration;

/// A minute and a half of trouble, then calm for as long as a user needs to mend things.
const END: Duration = Duration::from_secs(160);
/// So many are played with the other tests.
const COUNT: u64 = 2_000;

/// The fleet of a seed, which has not begun.
pub(crate) fn world(seed: u64) -> FleetWorld {
    FleetWorld::random(seed)
}

/// What is broken in the fleet of a seed, and the story of it.
fn play(seed: u64) -> Option<String> {
    let mut world = world(seed).untold();
    world.run_until(END);
    let seen = world.observe();
    let broken = [invariants::always(&seen), invariants::settled(&seen)].concat();
    (!broken.is_empty()).then(|| {
        let (scenario, script) = (world.scenario(), world.script());
        format!(
            "{seed}: {}\n{scenario}\n{script}\nreplay: MAINSTAY_FLEET_SEED={seed} cargo test \
             --release -p mainstay-sim --test fleet one_seed -- --nocapture\n",
            broken.join("\n")
        )
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|it| it.parse().ok())
}

/// A part of them: two tests take two processors.
fn play_all(part: u64, parts: u64) {
    let first = number("MAINSTAY_FLEET_FIRST").unwrap_or(0);
    let count = number("MAINSTAY_FLEET_SEEDS").unwrap_or(COUNT);
    let seeds = (first..first + count).filter(|seed| seed % parts == part);
    let broken: Vec<String> = seeds.filter_map(play).collect();
    let first: Vec<&str> = broken.iter().filter_map(|it| it.lines().next()).take(40).collect();
    assert!(broken.is_empty(), "{} are broken:\n{}\n{}", broken.len(), first.join("\n"), broken[0]);
}

#[test]
fn whatever_happens_a_fleet_comes_to_rest_as_it_should() {
    play_all(0, 2);
}

#[test]
fn whatever_happens_a_fleet_comes_to_rest_with_odd_seeds_as_well() {
    play_all(1, 2);
}

/// One of them again, with all that has happened.
#[test]
fn one_seed() {
    let Some(seed) = number("MAINSTAY_FLEET_SEED") else { return };
    let mut world = world(seed);
    world.run_until(END);
    println!("{}", world.trace);
    assert_eq!(play(seed), None);
}
