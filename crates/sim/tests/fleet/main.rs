//! Fleets in virtual time.

mod clones;
mod elsewhere;
mod found;
mod hazards;
mod seeds;
mod sent;
mod shop;
mod size;
mod steered;
mod stories;
mod versions;
mod wanted;
mod waves;
