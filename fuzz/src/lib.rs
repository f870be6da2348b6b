//! Whatever comes from outside, thrown at what reads it.
//!
//! ```text
//!  seeds ─► corpus ─► mutate (seeded: the same numbers every time) ─► target ─► panic? too slow?
//! ```
//!
//! A [`Target`] is a function of bytes that panics when something does not hold: a reader that
//! panics itself, a value that does not survive being written and read again, an answer beyond its
//! bounds. Nothing here looks at coverage; it runs on a stable compiler, thousands of inputs a
//! second. [`one`] has the shape that libFuzzer and others want, for those who have them.

mod importers;
mod mutate;
mod rollout;
mod targets;
mod watch;

pub use targets::{ALL, Target};

use mainstay_tests::Random;
use mutate::Mutator;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Duration, Instant},
};
use watch::Watch;

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Inputs(u64),
    Time(Duration),
}

/// An input that broke a target.
#[derive(Debug)]
pub struct Broken {
    pub target: &'static str,
    pub seed: u64,
    /// Which input of this seed.
    pub number: u64,
    pub file: PathBuf,
}

/// The targets that read what a stranger can send or leave: another user, another machine, a disk.
pub const EXPOSED: [&str; 8] =
    ["sse", "http", "notify", "state", "journal", "datagram", "sealed-datagram", "xmlrpc"];

#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// One input for one target: `fuzz_target!(|data: &[u8]| mainstay_fuzz::one("toml", data))`.
///
/// # Panics
/// When something does not hold, or there is no such target.
pub fn one(name: &str, input: &[u8]) {
    (target(name).expect("a target").run)(input);
}

/// What has broken the target before, or came close: `corpus/TARGET/` in the tree.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    // In the same order on every machine.
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}

/// Runs a target on seeds and what can be made of them; how many inputs it stood.
///
/// # Errors
/// The first input that it did not stand.
pub fn fuzz(target: &'static Target, seed: u64, until: Until) -> Result<u64, Broken> {
    let seeds = (target.seeds)().into_iter().chain(corpus(target.name)).collect();
    let mut mutator = Mutator::new(seeds, target.tokens);
    let mut random = Random::new(seed);
    let watch = Watch::start(target.name, seed);
    let begun = Instant::now();
    let mut number = 0;
    loop {
        let over = match until {
            Until::Inputs(count) => number >= count,
            Until::Time(time) => begun.elapsed() >= time,
        };
        if over {
            return Ok(number);
        }
        let input = mutator.input(number, &mut random);
        watch.begin(number, &input);
        let stood = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        watch.end();
        if stood.is_err() {
            let file = watch::keep(target.name, seed, number, &input);
            return Err(Broken { target: target.name, seed, number, file });
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks on what two changes make of its seed.
    static PLANTED: Target = Target {
        name: "planted",
        run: |input| assert!(!input.windows(2).any(|it| it == b"}{"), "found"),
        seeds: || vec![b"a = 1".to_vec()],
        tokens: &["{", "}"],
        short: 0,
    };

    #[test]
    fn what_a_stranger_can_reach_is_among_the_targets() {
        assert!(EXPOSED.iter().all(|name| target(name).is_some()));
    }

    #[test]
    fn a_defect_is_found_and_kept_and_the_same_seed_finds_it_again() {
        let broken = fuzz(&PLANTED, 1, Until::Inputs(100_000)).expect_err("it is there");
        let kept = std::fs::read(&broken.file).expect("it was kept");
        assert!(kept.windows(2).any(|it| it == b"}{"));
        let again = fuzz(&PLANTED, 1, Until::Inputs(100_000)).expect_err("it is there");
        assert_eq!((again.number, std::fs::read(&again.file).ok()), (broken.number, Some(kept)));
        let _ = std::fs::remove_file(&broken.file);
    }
}
