//! The machines of job and node, as dialogues that people can read (`transcript`), and where those
//! do not reach (`reload`). What happens by chance and in every order is tried in the crate `sim`.

mod journaled;
mod reload;
mod script;
mod transcript;
