//! Linux, as far as Mainstay needs it. The only crate with unsafe code; each block says why it holds.

pub mod apart;
pub mod cgroup;
pub mod clock;
pub mod cookie;
pub mod credentials;
pub mod fd;
pub mod heap;
pub mod interface;
pub mod latency;
pub mod memory;
pub mod nonblocking;
pub mod offload;
pub mod own_dir;
pub mod proc;
pub mod reap;
pub mod run_files;
pub mod signal;
pub mod spawn;
pub mod state_dir;
pub mod sweep;
pub mod user;
