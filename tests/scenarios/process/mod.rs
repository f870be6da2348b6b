//! What a process is given, and what it is spared.

mod given;
mod spared;
mod stopped;
