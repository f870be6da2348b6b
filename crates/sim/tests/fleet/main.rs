//! Fleets in virtual time.

mod seeds;
mod sent;
mod steered;
mod stories;
