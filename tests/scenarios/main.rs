//! Every promise of Mainstay, seen from outside: one folder a capability.

mod api;
mod command;
mod container;
mod containerpilot;
mod control;
mod discovery;
mod docs;
mod faults;
mod fleet;
mod hold;
mod import;
mod link;
mod node;
mod output;
mod process;
mod soak;
mod telemetry;
mod torture;
mod upgrade;
