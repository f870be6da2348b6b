//! The machines of job and node, as dialogues that people can read (`transcript`), and where those
//! do not reach (`reload`, `placed`, `updated`). What happens by chance and in every order is tried
//! in the crate `sim`.

mod elsewhere;
mod journaled;
mod placed;
mod reload;
mod script;
mod transcript;
mod updated;
