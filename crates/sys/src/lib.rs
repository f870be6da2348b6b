//! Linux, as far as Mainstay needs it. The only crate with unsafe code; each block says why it holds.

pub mod apart;
pub mod cgroup;
pub mod clock;
pub mod cookie;
pub mod credentials;
pub mod fd;
mod files;
pub mod heap;
pub mod interface;
pub mod latency;
pub mod memory;
pub mod nonblocking;
pub mod offload;
pub mod proc;
pub mod reap;
pub mod signal;
pub mod spawn;
pub mod sweep;
pub mod user;

pub use files::{disk, entries, lease, own_dir, reserved_file, run_files, state_dir};
