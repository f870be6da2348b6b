//! What goes wrong around a node: each fault gets a clear answer, and nothing else suffers.

mod agent;
mod clock;
mod commands;
mod connections;
mod crash;
mod directories;
mod foreign;
mod frozen_disk;
mod full_disk;
mod journal;
mod kept;
mod leftovers;
mod misbehaviour;
mod reserve;
mod scarcity;
mod stuck_stdout;
mod threads;
mod verdicts;
