//! The machines of job and node in worlds: with random inputs and random worlds (`properties`),
//! exhaustively in small ones (`exhaustive`), with hooks that are counted (`lives`), beside what was told of a reload (`preview`), beside
//! a judge of verdicts (`verdicts`), and on a machine that sleeps (`sleep`).

mod edits;
mod exhaustive;
#[path = "../../../core/tests/machines/journaled.rs"]
mod journaled;
mod lives;
mod preview;
mod properties;
mod sleep;
mod verdicts;

use proptest::test_runner::{Config, RngSeed};

/// So many cases, the same each time, or those of `PROPTEST_RNG_SEED`: a search with other seeds is
/// a work of its own. A failure prints its inputs; the ones worth keeping become transcripts.
fn same_cases(cases: u32) -> Config {
    let asked = Config::default();
    let rng_seed = match asked.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    Config { cases, failure_persistence: None, rng_seed, ..asked }
}
