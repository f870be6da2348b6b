//! Fleets in all the trouble that a seed makes.

use mainstay_sim::fleet::{FleetWorld, Script, invariants, scenario::Scenario};
use std::time::Duration;

/// A minute and a half of trouble, then calm for as long as a user needs to mend things.
const END: Duration = Duration::from_secs(160);
/// Whatever was broken is mended then.
const CALM: Duration = Duration::from_secs(100);
/// So many are played with the other tests.
const COUNT: u64 = 2_000;

/// The fleet of a seed, which has not begun.
pub(crate) fn world(seed: u64) -> FleetWorld {
    FleetWorld::random(seed)
}

/// What is broken at the end of a story.
fn broken(scenario: &Scenario, script: &Script) -> Vec<String> {
    let mut world = FleetWorld::new(scenario.clone(), script.clone()).untold();
    world.run_until(END);
    let seen = world.observe();
    [invariants::always(&seen), invariants::settled(&seen)].concat()
}

/// What is broken in the fleet of a seed, in a line.
fn play(seed: u64) -> Option<String> {
    let (scenario, script) = story(seed);
    let broken = broken(&scenario, &script);
    (!broken.is_empty()).then(|| format!("{seed}: {}", broken.join("; ")))
}

fn story(seed: u64) -> (Scenario, Script) {
    let scenario = Scenario::random(seed);
    let script = Script::random(seed, &scenario);
    (scenario, script)
}

/// The story of a broken seed, without all the trouble that it breaks without.
fn told(seed: u64) -> String {
    let (scenario, mut script) = story(seed);
    let rule = |broken: &[String]| Some(broken.first()?.split_once(':')?.0.to_owned());
    let whole = rule(&broken(&scenario, &script));
    let trouble = |script: &Script| script.steps.iter().filter(|step| step.at < CALM).count();
    let mut size = trouble(&script);
    while size > 0 {
        let mut at = 0;
        while at < trouble(&script) {
            let mut less = script.clone();
            less.steps.drain(at..trouble(&script).min(at + size));
            match rule(&broken(&scenario, &less)) == whole {
                true => script = less,
                false => at += size,
            }
        }
        size /= 2;
    }
    let broken = broken(&scenario, &script).join("\n");
    format!(
        "{seed}: {broken}\n{scenario}\n{script}\nreplay: MAINSTAY_FLEET_SEED={seed} cargo test \
         --release -p mainstay-sim --test fleet one_seed -- --nocapture\n"
    )
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
    let Some(first) = broken.first().and_then(|it| it.split_once(':')?.0.parse().ok()) else {
        return;
    };
    let some = broken.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    panic!("{} are broken:\n{some}\n{}", broken.len(), told(first));
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
    assert!(play(seed).is_none(), "{}", told(seed));
}
