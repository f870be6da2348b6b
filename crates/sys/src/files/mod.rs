//! Files and directories of our own: opened below their directory, never through a link.

pub mod disk;
pub mod entries;
pub mod lease;
pub mod own_dir;
pub mod reserved_file;
pub mod run_files;
pub mod state_dir;
