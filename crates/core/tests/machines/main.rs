//! The machines of job and node, tested three ways: as dialogues that people can read
//! (`transcript`), with random inputs and random worlds (`properties`), and exhaustively in small
//! worlds (`exhaustive`).

mod exhaustive;
mod preview;
mod properties;
mod reload;
mod script;
mod transcript;
mod world;
