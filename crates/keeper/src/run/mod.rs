//! A run from its first step to its last: directories, `run`, `hold`, the end.

mod dir_error;
pub(crate) mod dirs;

pub(crate) mod hold;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod sweep;
pub(crate) mod terminal;

pub(crate) use dir_error::DirError;
pub(crate) use shutdown::LAST;
