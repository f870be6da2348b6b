//! Halves of meshes in virtual time, on a network that a test makes.

mod bad_input;
mod stories;
mod world;
