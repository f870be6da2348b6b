//! Fleets in virtual time.

mod seeds;
mod stories;
