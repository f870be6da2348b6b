//! The processes of jobs: how they come and go, what they are given, and what they are spared.

mod attached;
mod bytes;
mod given;
mod jobs;
mod notify;
mod sockets;
mod spared;
mod stopped;
mod tasks;
mod window;
