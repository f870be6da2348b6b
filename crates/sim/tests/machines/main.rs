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
