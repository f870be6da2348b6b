//! Every promise of Mainstay, seen from outside: one folder a capability.

mod command;
mod container;
mod faults;
mod hold;
mod life;
mod notify;
mod output;
mod process;
mod sockets;
