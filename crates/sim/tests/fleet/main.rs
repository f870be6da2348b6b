//! Fleets in virtual time.

mod elsewhere;
mod seeds;
mod sent;
mod steered;
mod stories;
mod wanted;
