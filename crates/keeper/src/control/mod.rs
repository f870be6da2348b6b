//! Those who talk to the keeper from outside: clients of control sockets and of `keeper.sock`.

pub(crate) mod client;
mod clients;
pub(crate) mod keeper_socket;
mod listener;
