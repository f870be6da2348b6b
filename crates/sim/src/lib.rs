//! A deterministic world around the machines of `core`, and what must never happen in it.
//!
//! The tests of this crate walk through it by chance (`properties`) and exhaustively
//! (`exhaustive`), and compare what a reload comes to with its preview (`preview`). Only tests use
//! it; `core` does not know it. Whole fleets are in [`fleet`], rollouts in [`rollout`].
#![forbid(unsafe_code)]

pub mod fleet;
pub mod plans;
pub mod rollout;
pub mod sleeper;
pub mod world;
