//! How single values are written: text in, value or mistake out. Nothing here knows of keys or files.

pub(crate) mod address;
pub mod cron;
pub mod duration;
pub mod env_file;
pub(crate) mod expand;
pub mod shell_words;
pub(crate) mod size;
