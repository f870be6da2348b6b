//! What a process is given, and what it is spared.

mod attached;
mod given;
mod spared;
mod stopped;
mod tasks;
